import type { Sql } from '../platform/postgres.ts';
import { type ServiceStats, selectStats } from './stats-sql.ts';

/** How long an answer is used again. Anybody may ask without a key, and one reading takes Postgres up to 20 ms. */
const FRESH_MS = 30_000;
/** Maximum number of kept answers, of about 20 KB each. At the bound the oldest is dropped. */
const MAX_KEPT = 500;

type Kept = { readonly stats: Promise<ServiceStats>; readonly readAtMs: number };

/** Reads the statistics of services, each at most once in `FRESH_MS`, and once for all who ask at the same time. */
export class StatsReader {
  readonly #sql: Sql;
  readonly #kept = new Map<string, Kept>();

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  read(serviceId: string): Promise<ServiceStats> {
    const kept = this.#kept.get(serviceId);
    if (kept !== undefined && performance.now() - kept.readAtMs < FRESH_MS) return kept.stats;
    const read = { stats: selectStats(this.#sql, serviceId), readAtMs: performance.now() };
    this.#kept.delete(serviceId);
    this.#kept.set(serviceId, read);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= MAX_KEPT) break;
      this.#kept.delete(oldest);
    }
    // A failure must not be kept.
    read.stats.catch(() => {
      if (this.#kept.get(serviceId) === read) this.#kept.delete(serviceId);
    });
    return read.stats;
  }
}
