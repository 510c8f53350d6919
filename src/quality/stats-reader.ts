import { isPostgresUnavailable, type Sql } from '../platform/postgres.ts';
import { within } from '../platform/timing.ts';
import { type ServiceStats, selectStats } from './stats-sql.ts';

/** How long an answer is reused. Anybody may ask without a key, and one reading takes Postgres up to 20 ms. */
const FRESH_MS = 30_000;
/** Maximum number of answers kept, of about 20 KB each. Beyond it the oldest is dropped. */
const MAX_KEPT = 500;

/** Maximum time that `readSoon` waits. */
const SOON_MS = 500;
const TOO_LATE = new Error('statistics were not read in time');

type Kept = { readonly stats: Promise<ServiceStats>; readonly readAtMs: number };

/** Reads the statistics of services, each at most once in `FRESH_MS`, and once for all who ask at the same time. */
export class StatsReader {
  readonly #sql: Sql;
  readonly #kept = new Map<string, Kept>();
  /** Readings under way that `readSoon` no longer waits for. */
  #late = 0;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  read(serviceId: string): Promise<ServiceStats> {
    return this.#fresh(serviceId) ?? this.#begin(serviceId);
  }

  /**
   * As `read`, but null if Postgres is away or does not answer within `SOON_MS`. The statement then goes on, although the page that
   * asked for it has given its permit back (src/http/page-permits.ts). So no other statement is begun here until it ends: otherwise
   * pages could take all connections.
   */
  async readSoon(serviceId: string): Promise<ServiceStats | null> {
    const fresh = this.#fresh(serviceId);
    if (fresh === undefined && this.#late > 0) return null;
    const reading = fresh ?? this.#begin(serviceId);
    try {
      return await within(reading, SOON_MS, () => TOO_LATE);
    } catch (error) {
      if (isPostgresUnavailable(error)) return null;
      if (error !== TOO_LATE) throw error;
    }
    this.#late++;
    const isOver = (): void => {
      this.#late--;
    };
    reading.then(isOver, isOver);
    return null;
  }

  #fresh(serviceId: string): Promise<ServiceStats> | undefined {
    const kept = this.#kept.get(serviceId);
    return kept !== undefined && performance.now() - kept.readAtMs < FRESH_MS ? kept.stats : undefined;
  }

  #begin(serviceId: string): Promise<ServiceStats> {
    const read = { stats: selectStats(this.#sql, serviceId), readAtMs: performance.now() };
    this.#kept.delete(serviceId);
    this.#kept.set(serviceId, read);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= MAX_KEPT) break;
      this.#kept.delete(oldest);
    }
    // Failures are not kept.
    read.stats.catch(() => {
      if (this.#kept.get(serviceId) === read) this.#kept.delete(serviceId);
    });
    return read.stats;
  }
}
