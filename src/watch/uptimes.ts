import { Job, type JobOptions } from '../platform/job.ts';
import type { Sql } from '../platform/postgres.ts';
import { type FoundUptimes, selectUptimes } from './watch-sql.ts';

/**
 * How often uptimes are read again. A check may be written up to a minute after it was made, so reading more often gains nothing.
 */
const READ_MS = 30_000;

type UptimesOptions = {
  readonly sql: Sql;
  readonly take: (uptimes: FoundUptimes) => Promise<void>;
  readonly log: JobOptions['log'];
  readonly readMs?: number | undefined;
};

/** Brings the uptimes of all services with a health path from Postgres into the catalog of a gateway. */
export class Uptimes extends Job {
  readonly #options: UptimesOptions;

  constructor(options: UptimesOptions) {
    super({
      everyMs: options.readMs ?? READ_MS,
      messages: {
        failing: 'watch: uptimes cannot be read; the last ones stay in use',
        again: 'watch: uptimes are read again',
      },
      log: options.log,
    });
    this.#options = options;
  }

  protected override async round(): Promise<void> {
    await this.#options.take(await selectUptimes(this.#options.sql));
  }
}
