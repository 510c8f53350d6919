import { Job, type JobOptions } from '../platform/job.ts';
import { type Sql, sqlState } from '../platform/postgres.ts';
import { lowerBoundFrom, qualityFrom, trendFrom } from './formula.ts';
import {
  selectEvidence,
  selectJudgedServices,
  selectRecentCalls,
  selectTypicalLatencies,
  storeQualities,
} from './quality-sql.ts';

/** How long a round takes. Flush, round and the gateways' reading together make a call count within a minute. */
const EVERY_MS = 15_000;
/**
 * How often all services are judged. Calls age, so a quality changes even without calls, but by less than a tenth of a point in
 * five minutes.
 */
const ALL_EVERY_MS = 300_000;
const HOUR_MS = 3_600_000;
/** Hours before the present one in which the job looks for new calls. */
const RECENT_HOURS = 2;
/** Services per query. */
const PAGE = 50;
/**
 * A service with more rows in `key_hours` than this is judged by itself, after the others. So a page of other services causes at
 * most 0.3 s of work.
 */
const HEAVY_ROWS = 2_000;
/**
 * Share of the time for which the job keeps Postgres busy, because calls and pages come first. A service with very many buyers
 * waits longer.
 */
const BUSY_SHARE = 0.1;
/** SQLSTATE of a statement that took longer than the session permits. */
const QUERY_CANCELED = '57014';

type QualityJobOptions = {
  readonly sql: Sql;
  /** Whether this process does the work. Several processes would write the same rows, so one is enough. */
  readonly isActive: () => boolean;
  readonly everyMs?: number;
  readonly log: JobOptions['log'];
};

/**
 * Computes the quality of services from the sums by hour (docs/quality.md), in rounds of 15 s. A round first judges the services
 * that were called since the last round. The remaining time is shared in turns between one service with very many buyers and one
 * page of all services, so that neither delays the others. All are judged within five minutes, or as soon as possible.
 *
 * Everything is computed anew each time, so no error persists, and nothing is counted twice.
 */
export class QualityJob extends Job {
  readonly #options: QualityJobOptions;
  /** The calls of each service since the hour `#sinceMs`, at the last look. */
  #seen: ReadonlyMap<string, number> = new Map();
  /** 0 before the first look. */
  #sinceMs = 0;
  /** Services to be judged, the longest waiting first. */
  readonly #due = new Set<string>();
  /** Services with more than `HEAVY_ROWS`. */
  readonly #heavy = new Set<string>();
  /** The last service that the walk through all services has judged; null: it begins; 'over': it has ended. */
  #walk: string | null | 'over' = 'over';
  #walkBeganAt = Number.NEGATIVE_INFINITY;
  #typical: ReadonlyMap<string, number> = new Map();

  constructor(options: QualityJobOptions) {
    super({
      everyMs: options.everyMs ?? EVERY_MS,
      isActive: options.isActive,
      busyShare: BUSY_SHARE,
      messages: {
        failing: 'quality: cannot compute; the last values stay in use',
        again: 'quality: can compute again',
      },
      log: options.log,
    });
    this.#options = options;
  }

  protected override async round(): Promise<void> {
    const { sql, everyMs = EVERY_MS } = this.#options;
    const endAt = performance.now() + everyMs;
    if (this.#walk === 'over' && performance.now() - this.#walkBeganAt >= ALL_EVERY_MS) {
      this.#typical = await this.paced(() => selectTypicalLatencies(sql));
      this.#walkBeganAt = performance.now();
      this.#walk = null;
    }
    await this.#look();
    const called = Array.from(this.#due).filter((id) => !this.#heavy.has(id));
    for (let from = 0; from < called.length; from += PAGE) await this.#judgePage(called.slice(from, from + PAGE));
    let isMore = true;
    while (isMore && !this.stopping.aborted) {
      const heavy = Array.from(this.#due).find((id) => this.#heavy.has(id));
      if (heavy !== undefined) await this.#judgePage([heavy]);
      await this.#walkOn();
      isMore = performance.now() < endAt && (heavy !== undefined || this.#walk !== 'over');
    }
    this.nextIn(endAt - performance.now());
  }

  /**
   * Finds out which services were called since the last look: they have more calls since the same hour. A call that took longer
   * than `RECENT_HOURS` is noticed by the walk.
   */
  async #look(): Promise<void> {
    const laterMs = Math.max(this.#sinceMs, (Math.floor(Date.now() / HOUR_MS) - RECENT_HOURS) * HOUR_MS);
    const since = new Date(this.#sinceMs === 0 ? laterMs : this.#sinceMs);
    const recent = await this.paced(() => selectRecentCalls(this.#options.sql, since, new Date(laterMs)));
    for (const { id, calls } of recent) if (this.#seen.get(id) !== calls) this.#due.add(id);
    this.#seen = new Map(recent.filter(({ later }) => later > 0).map(({ id, later }) => [id, later]));
    this.#sinceMs = laterMs;
  }

  async #walkOn(): Promise<void> {
    if (this.#walk === 'over' || this.stopping.aborted) return;
    const { sql } = this.#options;
    const after = this.#walk;
    const page = await this.paced(() => selectJudgedServices(sql, after, PAGE));
    for (const id of page) this.#due.add(id);
    await this.#judgePage(page.filter((id) => !this.#heavy.has(id)));
    this.#walk = page.length === PAGE ? (page.at(-1) as string) : 'over';
  }

  async #judgePage(ids: readonly string[]): Promise<void> {
    if (ids.length === 0 || this.stopping.aborted) return;
    for (const id of ids) this.#due.delete(id);
    try {
      await this.paced(() => this.#judgeNow(ids));
    } catch (error) {
      const isTooMuch = sqlState(error) === QUERY_CANCELED;
      if (!isTooMuch || ids.length > 1) for (const id of ids) this.#due.add(id);
      if (!isTooMuch) throw error;
      // One of these services is at fault. It must not prevent the others from being judged.
      for (const id of ids) this.#heavy.add(id);
      if (ids.length === 1)
        this.#options.log.warn(
          { err: error, service_id: ids[0] },
          'quality: judging this service takes too long; its quality stays as it was',
        );
    }
  }

  async #judgeNow(ids: readonly string[]): Promise<void> {
    const { sql } = this.#options;
    const evidence = await selectEvidence(sql, ids);
    const judged = evidence.map((of) => {
      const typicalUs = this.#typical.get(of.category) ?? null;
      return {
        ...of,
        quality: qualityFrom(of, typicalUs),
        trend: trendFrom(of, of.before, typicalUs),
        lowerBound: lowerBoundFrom(of, typicalUs),
      };
    });
    await storeQualities(sql, judged);
    for (const { serviceId, rows } of evidence) {
      if (rows > HEAVY_ROWS) this.#heavy.add(serviceId);
      else this.#heavy.delete(serviceId);
    }
  }
}
