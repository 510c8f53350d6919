import { Job, type JobOptions } from '../platform/job.ts';
import type { Sql } from '../platform/postgres.ts';
import { deleteEnded } from './sessions-sql.ts';

const EVERY_MS = 3_600_000;
/** Maximum rows of one statement. */
const PAGE = 1_000;

/**
 * Removes the rows of sessions that ended by themselves. They have no use after their end.
 *
 * Tested by test/sessions/ended-sessions.test.ts.
 */
export class EndedSessions extends Job {
  readonly #sql: Sql;

  constructor({ sql, isActive, log }: { sql: Sql; isActive: () => boolean; log: JobOptions['log'] }) {
    super({
      everyMs: EVERY_MS,
      retryMs: 60_000,
      isActive,
      messages: {
        failing: 'sessions that have ended cannot be removed; trying again',
        again: 'sessions that have ended are removed again',
      },
      log,
    });
    this.#sql = sql;
  }

  protected override async round(): Promise<void> {
    while (!this.stopping.aborted && (await deleteEnded(this.#sql, PAGE)) === PAGE);
  }
}
