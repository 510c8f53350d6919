import type { Sql } from '../platform/postgres.ts';
import { overWithin, Sleeper } from '../platform/timing.ts';
import { type ChangeCursor, type ChangedQuality, type FoundQuality, selectChangedQualities } from './quality-sql.ts';

/** How often a gateway asks for changed qualities: one query by an index. */
const EVERY_MS = 10_000;
const PAGE = 2_000;

export type QualityFeedOptions = {
  readonly sql: Sql;
  readonly take: (qualities: ReadonlyMap<string, FoundQuality>) => Promise<void>;
  readonly everyMs?: number;
  readonly log: { warn(fields: object, message: string): void };
};

/** Carries qualities from Postgres into the catalog of a gateway. While Postgres is away, the last values stay in use. */
export class QualityFeed {
  readonly #options: QualityFeedOptions;
  readonly #sleeper = new Sleeper();
  /** All changes up to this one were taken over. */
  #settled: ChangeCursor | null = null;
  #running: Promise<void> | null = null;
  #stopping = false;
  #failing = false;

  constructor(options: QualityFeedOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    this.#sleeper.wake();
    if (this.#running !== null) await overWithin(this.#running, 1_000);
  }

  async #run(): Promise<void> {
    while (!this.#stopping) {
      try {
        await this.#look();
        this.#failing = false;
      } catch (error) {
        if (!this.#failing && !this.#stopping)
          this.#options.log.warn({ err: error }, 'quality: cannot read from Postgres; the last values stay in use');
        this.#failing = true;
      }
      if (!this.#stopping) await this.#sleeper.sleep(this.#options.everyMs ?? EVERY_MS);
    }
  }

  async #look(): Promise<void> {
    const { sql, take } = this.#options;
    let after = this.#settled;
    let page: ChangedQuality[];
    do {
      page = await selectChangedQualities(sql, after, PAGE);
      await take(new Map(page.map(({ serviceId, value, trend, rated }) => [serviceId, { value, trend, rated }])));
      after = page.at(-1) ?? after;
      this.#settled = page.findLast(({ isSettled }) => isSettled) ?? this.#settled;
    } while (page.length === PAGE && !this.#stopping);
  }
}
