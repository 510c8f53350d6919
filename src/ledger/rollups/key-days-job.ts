import { Job, type JobOptions } from '../../platform/job.ts';
import { PostgresSession } from '../../platform/postgres.ts';
import { templateTag } from '../../platform/postgres-query.ts';
import type { SessionOptions } from '../../platform/postgres-session.ts';
import { addHour } from './key-days.ts';

/** Time from one look to the next. An hour ends once an hour. */
const EVERY_MS = 300_000;
/** Pause while flushes of the hour are still under way. */
const BUSY_MS = 10_000;
/** An hour of a hundred thousand keys takes about a second. */
const STATEMENT_MS = 120_000;

type Options = Pick<JobOptions, 'log'> & {
  readonly databaseUrl: string;
  readonly installation?: string | undefined;
};

/**
 * Adds each hour that is over to the sums by day (`key-days.ts`). Of several writers, one adds it. While that fails, pages read more
 * rows of `key_hours`.
 */
export class KeyDaysJob extends Job {
  readonly #options: SessionOptions;
  #session: PostgresSession | null = null;

  constructor({ databaseUrl, installation, log }: Options) {
    super({
      everyMs: EVERY_MS,
      messages: {
        failing: 'cannot add hours to the sums by day: retrying',
        again: 'adds hours to the sums by day again',
      },
      log,
    });
    const settings = { statement_timeout: STATEMENT_MS };
    const options = { url: databaseUrl, applicationName: 'tollgate-key-days', settings };
    this.#options = { ...options, ...(installation && { installation }) };
  }

  /** Ends after the statement under way, or after `timeoutMs`. Then the hour is added by the next process. */
  override async stop(timeoutMs?: number): Promise<void> {
    await super.stop(timeoutMs);
    this.#session?.close();
  }

  protected override async round(): Promise<void> {
    // A session for each round, because sessions of the pool give a statement less time.
    const session = new PostgresSession(this.#options, STATEMENT_MS + 5_000);
    this.#session = session;
    const tx = templateTag((text, parameters, options) => session.query(text, parameters, options));
    try {
      let added = await session.transaction(() => addHour(tx));
      while (added === 'one' && !this.stopping.aborted) added = await session.transaction(() => addHour(tx));
      if (added === 'busy') this.nextIn(BUSY_MS);
    } finally {
      session.close();
    }
  }
}
