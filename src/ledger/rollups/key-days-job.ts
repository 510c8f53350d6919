import { Job, type JobOptions } from '../../platform/job.ts';
import type { Sql } from '../../platform/postgres.ts';
import { addHours } from './key-days.ts';

/** Time from one look to the next. An hour ends once an hour. */
const EVERY_MS = 300_000;
/** Pause while flushes of the hour are still under way. */
const BUSY_MS = 10_000;
/** An hour of a hundred thousand keys takes about a second. */
const STATEMENT_MS = 120_000;

/**
 * Adds each hour that is over to the sums by day (`key-days.ts`). Of several writers, one adds it. While that fails, pages read more
 * rows of `key_hours`.
 */
export class KeyDaysJob extends Job {
  readonly #sql: Sql;

  constructor({ sql, log }: { readonly sql: Sql } & Pick<JobOptions, 'log'>) {
    super({
      everyMs: EVERY_MS,
      messages: {
        failing: 'cannot add hours to the sums by day: retrying',
        again: 'adds hours to the sums by day again',
      },
      log,
    });
    this.#sql = sql;
  }

  protected override async round(): Promise<void> {
    for (;;) {
      const added = await this.#sql.begin(async (tx) => {
        await tx`${tx.text(`SET LOCAL statement_timeout = ${STATEMENT_MS}`)}`;
        return addHours(tx);
      });
      if (added === 'busy') this.nextIn(BUSY_MS);
      if (added !== 'some' || this.stopping.aborted) return;
    }
  }
}
