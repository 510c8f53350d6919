import type { Sql } from '../../platform/postgres.ts';
import type { Listing } from '../listing.ts';
import { selectOperations } from '../sql.ts';
import type { Operation } from './operation.ts';

/** Maximum cached listings, and the bound of `MAX_OPERATIONS_LENGTH` of each makes that 128 MB of text in the worst case. */
const MAX_CACHED = 256;

/**
 * Reads the operations of a listing with their schemas and examples. The catalog in memory has only their prices. Anybody may ask,
 * so what was read is kept until the listing changes; beyond `MAX_CACHED`, what was used least recently is dropped.
 */
export class OperationsReader {
  readonly #sql: Sql;
  /** By listing id, least recently used first. */
  readonly #cached = new Map<string, { readonly version: number; readonly operations: readonly Operation[] }>();

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  async read({ id, operationTerms, updatedAtMicros }: Listing): Promise<readonly Operation[]> {
    if (operationTerms === null) return [];
    const cached = this.#cached.get(id);
    const isFresh = cached !== undefined && cached.version === updatedAtMicros;
    const operations = isFresh ? cached.operations : await selectOperations(this.#sql, id);
    this.#cached.delete(id);
    this.#cached.set(id, { version: updatedAtMicros, operations });
    if (this.#cached.size > MAX_CACHED) {
      const [oldest] = this.#cached.keys();
      this.#cached.delete(oldest as string);
    }
    return operations;
  }
}
