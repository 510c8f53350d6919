import type { Quality } from '../catalog/quality.ts';
import { Job, type JobOptions } from '../platform/job.ts';
import type { Sql } from '../platform/postgres.ts';
import { type ChangeCursor, type ChangedQuality, selectChangedQualities } from './quality-sql.ts';

/** How often a gateway asks for changed qualities: one query by an index. */
const EVERY_MS = 10_000;
const PAGE = 2_000;

type QualityFeedOptions = {
  readonly sql: Sql;
  readonly take: (qualities: ReadonlyMap<string, Quality>) => Promise<void>;
  readonly everyMs?: number;
  readonly log: JobOptions['log'];
};

/** Brings qualities from Postgres into the catalog of a gateway. While Postgres is away, the last values stay in use. */
export class QualityFeed extends Job {
  readonly #options: QualityFeedOptions;
  /** All changes up to this one have been applied. */
  #settled: ChangeCursor | null = null;

  constructor(options: QualityFeedOptions) {
    super({
      everyMs: options.everyMs ?? EVERY_MS,
      messages: {
        failing: 'quality: cannot read from Postgres; the last values stay in use',
        again: 'quality: can read from Postgres again',
      },
      log: options.log,
    });
    this.#options = options;
  }

  protected override async round(): Promise<void> {
    const { sql, take } = this.#options;
    let after = this.#settled;
    let page: ChangedQuality[];
    do {
      page = await selectChangedQualities(sql, after, PAGE);
      await take(new Map(page.map(({ serviceId, quality }) => [serviceId, quality])));
      after = page.at(-1) ?? after;
      this.#settled = page.findLast(({ isSettled }) => isSettled) ?? this.#settled;
    } while (page.length === PAGE && !this.stopping.aborted);
  }
}
