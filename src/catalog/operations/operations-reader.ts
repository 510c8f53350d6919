import type { Sql } from '../../platform/postgres.ts';
import type { Listing } from '../listing.ts';
import { selectOperationsText } from '../sql.ts';
import type { Operation } from './operation.ts';

/**
 * Maximum characters of all cached texts: enough for 128 listings with the longest operations. In memory a character takes one
 * octet, or two if its text is not Latin-1.
 */
const MAX_CACHED_LENGTH = 33_554_432;

/** Announced operations begin to count without a change of the row: `termsFromMs` distinguishes them from earlier ones. */
type Cached = { readonly version: number; readonly termsFromMs: number | null; readonly text: string };

/**
 * Reads the operations of a listing with their schemas and examples. The catalog in memory has only their prices. Anybody may ask,
 * so the result is cached until the listing changes; beyond `MAX_CACHED_LENGTH`, the texts used least recently are dropped.
 *
 * The text is cached, not the objects: they can take twenty times its memory, and strangers choose them.
 *
 * Tested by test/catalog/operations/operations-reader.test.ts.
 */
export class OperationsReader {
  readonly #sql: Sql;
  /** By listing id, least recently used first. */
  readonly #cached = new Map<string, Cached>();
  #length = 0;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  async read({ id, operationTerms, updatedAtMicros, termsFromMs }: Listing): Promise<readonly Operation[]> {
    if (operationTerms === null) return [];
    const cached = this.#cached.get(id);
    const isFresh = cached !== undefined && cached.version === updatedAtMicros && cached.termsFromMs === termsFromMs;
    const text = isFresh ? cached.text : await selectOperationsText(this.#sql, id);
    this.#forget(id);
    this.#cached.set(id, { version: updatedAtMicros, termsFromMs, text });
    this.#length += text.length;
    for (const oldest of this.#cached.keys()) {
      if (this.#length <= MAX_CACHED_LENGTH) break;
      this.#forget(oldest);
    }
    return JSON.parse(text) as Operation[];
  }

  #forget(id: string): void {
    this.#length -= this.#cached.get(id)?.text.length ?? 0;
    this.#cached.delete(id);
  }
}
