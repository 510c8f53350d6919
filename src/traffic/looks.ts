import { performance } from 'node:perf_hooks';
import type { Sql } from '../platform/postgres.ts';
import type { RedisStore } from '../platform/redis.ts';
import { decodeReport, type Report } from './report.ts';
import { LOOKED_AT_MS, REPORT_EVERY_MS, REPORTING_KEY, type Reporter, reportKey } from './reporter.ts';

/** Postgres channel on which all processes hear that somebody is watching. The message is empty. */
export const LOOKS = 'tollgate_looks';
/** Interval at which the processes are told that somebody is still watching: a lost message must not silence them. */
const TELL_EVERY_MS = LOOKED_AT_MS / 3;
/** Readings that begin within this time share one, so that many watchers cost Redis as much as one. */
const SHARED_MS = 800;
/** How long the first look waits until the other processes have heard of it and have written. */
export const FIRST_REPORTS_MS = 400;
/** The same, until the reports also cover a full second. */
export const FIRST_WINDOW_MS = 1_500;

/**
 * Collects reports of all processes, for those who ask this gateway.
 *
 *   look() ──NOTIFY──► every gateway and writer reports to Redis each second, for 10 s ──► read()
 *
 * Nothing is written while nobody is watching.
 *
 * Tested by test/traffic/traffic.test.ts.
 */
export class Looks {
  readonly #sql: Sql;
  readonly #redis: Pick<RedisStore, 'command'>;
  readonly #reporter: Pick<Reporter, 'looked' | 'since'>;
  #toldAt = Number.NEGATIVE_INFINITY;
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<Report[]> = Promise.resolve([]);

  constructor(options: {
    readonly sql: Sql;
    readonly redis: Pick<RedisStore, 'command'>;
    /** This gateway's own reporter: it hears of the look even while Postgres is away. */
    readonly reporter: Pick<Reporter, 'looked' | 'since'>;
  }) {
    this.#sql = options.sql;
    this.#redis = options.redis;
    this.#reporter = options.reporter;
  }

  /**
   * Announces that somebody is watching. Resolves when the processes have had this time to report; at once if somebody was already
   * watching.
   *
   * @param settledMs FIRST_REPORTS_MS: all have reported; FIRST_WINDOW_MS: their reports also cover the last second
   */
  async look(settledMs = 0): Promise<void> {
    this.#reporter.looked();
    const now = performance.now();
    if (now - this.#toldAt >= TELL_EVERY_MS) {
      this.#toldAt = now;
      // Not awaited, and failures are ignored: without Postgres, each gateway that was asked itself still reports.
      this.#sql`SELECT pg_notify(${LOOKS}, '')`.catch(() => {});
    }
    const dueMs = (this.#reporter.since ?? now) + settledMs - now;
    if (dueMs > 0) await new Promise((resolve) => setTimeout(resolve, dueMs));
  }

  /** The latest report of every living process, in a stable order. Rejects when Redis is away. */
  read(): Promise<Report[]> {
    const now = performance.now();
    // A reading that began before all had reported is not shared.
    const isSettled = this.#readAt >= (this.#reporter.since ?? now) + FIRST_REPORTS_MS;
    if (isSettled && now - this.#readAt < SHARED_MS) return this.#reading;
    this.#readAt = now;
    this.#reading = this.#read();
    this.#reading.catch(() => {
      this.#readAt = Number.NEGATIVE_INFINITY;
    });
    return this.#reading;
  }

  /**
   * This process reports too. So if there are no reports, Redis has lost them, for example in a restart. They are all back within a
   * second.
   */
  async #read(): Promise<Report[]> {
    const reports = await this.#readNow();
    if (reports.length > 0) return reports;
    await new Promise((resolve) => setTimeout(resolve, REPORT_EVERY_MS + FIRST_REPORTS_MS));
    return this.#readNow();
  }

  async #readNow(): Promise<Report[]> {
    const instances = (await this.#redis.command('smembers', [REPORTING_KEY])) as string[];
    if (instances.length === 0) return [];
    const texts = (await this.#redis.command('mget', instances.map(reportKey))) as (string | null)[];
    const gone = instances.filter((_, at) => texts[at] === null);
    if (gone.length > 0) await this.#redis.command('srem', [REPORTING_KEY, ...gone]);
    return texts
      .flatMap((text) => (text === null ? [] : (decodeReport(text) ?? [])))
      .sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1));
  }
}

/** Gateways before writers, then by machine and number, so that rows do not move from second to second. */
const orderOf = ({ role, host, worker, startedAtMs, instance }: Report): string =>
  `${role} ${host} ${String(worker ?? 0).padStart(4, '0')} ${startedAtMs} ${instance}`;
