import type { Sql } from '../platform/postgres.ts';
import { overWithin, Sleeper } from '../platform/timing.ts';
import { qualityFrom } from './formula.ts';
import {
  selectActiveServices,
  selectEvidence,
  selectJudgedServices,
  selectTypicalLatencies,
  storeQualities,
} from './quality-sql.ts';

/** How often the services that were called lately are judged. With the flush and the gateways' look: a call counts within a minute. */
const EVERY_MS = 15_000;
/**
 * How often all services are judged: calls age, and so a quality changes without any call. In five minutes it changes by less than
 * a tenth of a point.
 */
const ALL_EVERY_MS = 300_000;
/** Services per query. The sums of a service with 1 000 buyers take Postgres about 5 ms. */
const PAGE = 50;
/** Share of the time that the job keeps Postgres busy: calls and pages come first. A service with very many buyers waits longer. */
const BUSY_SHARE = 0.1;
const LONGEST_PAUSE_MS = 30_000;

export type QualityJobOptions = {
  readonly sql: Sql;
  /** Whether this process judges. Several that do make the same rows; one of them is enough. */
  readonly isActive: () => boolean;
  readonly everyMs?: number;
  readonly log: { warn(fields: object, message: string): void };
};

/**
 * Computes the quality of services from the sums by hour (docs/quality.md): of those called lately every 15 s, of all every five
 * minutes. Everything is computed anew each time, so an error never stays, and nothing is counted twice.
 */
export class QualityJob {
  readonly #options: QualityJobOptions;
  readonly #sleeper = new Sleeper();
  #running: Promise<void> | null = null;
  #stopping = false;
  #judgedAllAt = Number.NEGATIVE_INFINITY;
  #typical: ReadonlyMap<string, number> = new Map();
  #failing = false;

  constructor(options: QualityJobOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Resolves when the query under way has ended, or after `timeoutMs`. */
  async stop(timeoutMs: number): Promise<void> {
    this.#stopping = true;
    this.#sleeper.wake();
    if (this.#running !== null) await overWithin(this.#running, timeoutMs);
  }

  async #run(): Promise<void> {
    while (!this.#stopping) {
      try {
        if (this.#options.isActive()) await this.#judge();
        this.#failing = false;
      } catch (error) {
        if (!this.#failing)
          this.#options.log.warn({ err: error }, 'quality: cannot compute; the last values stay in use');
        this.#failing = true;
      }
      if (!this.#stopping) await this.#sleeper.sleep(this.#options.everyMs ?? EVERY_MS);
    }
  }

  async #judge(): Promise<void> {
    const { sql } = this.#options;
    if (performance.now() - this.#judgedAllAt < ALL_EVERY_MS) {
      const active = await selectActiveServices(sql);
      for (let from = 0; from < active.length; from += PAGE) await this.#judgePage(active.slice(from, from + PAGE));
      return;
    }
    this.#typical = await selectTypicalLatencies(sql);
    let page: string[] = [];
    do {
      page = await selectJudgedServices(sql, page.at(-1) ?? null, PAGE);
      await this.#judgePage(page);
    } while (page.length === PAGE && !this.#stopping);
    this.#judgedAllAt = performance.now();
  }

  async #judgePage(ids: readonly string[]): Promise<void> {
    if (ids.length === 0 || this.#stopping) return;
    const { sql } = this.#options;
    const startedAt = performance.now();
    const evidence = await selectEvidence(sql, ids);
    const judged = evidence.map((of) => ({ ...of, quality: qualityFrom(of, this.#typical.get(of.category) ?? null) }));
    await storeQualities(sql, judged);
    const busyMs = performance.now() - startedAt;
    if (!this.#stopping)
      await this.#sleeper.sleep(Math.min((busyMs * (1 - BUSY_SHARE)) / BUSY_SHARE, LONGEST_PAUSE_MS));
  }
}
