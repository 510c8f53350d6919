import { PostgresSession, sqlState } from '../../platform/postgres.ts';
import { overWithin, Sleeper } from '../../platform/timing.ts';
import { RETENTION_LOCK } from '../locks.ts';
import {
  closeDay,
  countOverdueDays,
  type DaySums,
  dropDay,
  NotRolledUp,
  nextDueDay,
  readClosedDay,
  selectClosedDays,
  sumClosedDay,
} from './closing.ts';
import { checkExportDir, exportDay, type Manifest } from './export-file.ts';

const DAY_MS = 86_400_000;
/** Time from one look to the next. A day becomes due once a day. */
const EVERY_MS = 600_000;
/** First look after a start: the events that wait come first. */
const FIRST_MS = 30_000;
/** Pause after the locks were not free. It doubles from try to try up to `EVERY_MS`: each try may make a flush wait 100 ms. */
const RETRY_MS = 5_000;
/** Share of the time in which the job works, when many days are due: calls and pages come first. */
const BUSY_SHARE = 0.2;
const LONGEST_PAUSE_MS = 60_000;
const STOP_MS = 2_000;
/** Bounds one statement. A day of ten million calls is summed in seconds. */
const STATEMENT_MS = 600_000;
const SESSION_SETTINGS = {
  statement_timeout: STATEMENT_MS,
  // Pages of an export follow an index. Without statistics of the day Postgres sorted all its calls for each: 46 µs a call instead of 12.
  enable_sort: 'off',
  enable_bitmapscan: 'off',
  // If the machine of the process vanishes, its lock is free after about 11 s.
  tcp_keepalives_idle: 5,
  tcp_keepalives_interval: 2,
  tcp_keepalives_count: 3,
};
/** Calls that one query reads for an export: about 2 MB. */
const PAGE_CALLS = 5_000;
const LOCK_NOT_AVAILABLE = '55P03';

export type RetentionJobOptions = {
  /** The job opens its own connection, not through PgBouncer: a lock of the session says which process does the work. */
  readonly databaseUrl: string;
  readonly installation: string;
  /** Calls of this many days before today (UTC) are kept. 0: all. */
  readonly retentionDays: number;
  /** Folder for the files of days that are dropped; null: they are dropped without one. */
  readonly exportDir: string | null;
  readonly firstMs?: number;
  readonly everyMs?: number;
  readonly retryMs?: number;
  readonly now?: () => number;
  /** Called when a day is closed and when it is exported. Tests kill the process here. */
  readonly afterStep?: (step: 'closed' | 'exported', day: string) => Promise<void> | void;
  readonly log: { warn(fields: object, message: string): void; info(fields: object, message: string): void };
};

/** How a round ended: all is done; another process is at it; a lock was not free, so try again soon; the sums by hour come first. */
export type RoundEnd = 'done' | 'elsewhere' | 'locked' | 'not rolled up';

/**
 * Drops the calls of days older than the retention: closes a day, exports it if asked, and drops it, then the next. A day that was
 * closed by a process that died is exported and dropped first. Of several writers, the one with the lock works.
 */
export class RetentionJob {
  readonly #options: RetentionJobOptions;
  readonly #sleeper = new Sleeper();
  readonly #stopping = new AbortController();
  #session: PostgresSession | null = null;
  #running: Promise<void> | null = null;
  #failing = false;
  #droppedDays = 0;
  #overdueDays = 0;

  constructor(options: RetentionJobOptions) {
    this.#options = options;
  }

  /** Days dropped since the start. */
  get droppedDays(): number {
    return this.#droppedDays;
  }

  /** Days that should be gone and were still stored at the end of this job's last round. */
  get overdueDays(): number {
    return this.#overdueDays;
  }

  start(): void {
    if (this.#options.retentionDays > 0) this.#running ??= this.#run();
  }

  /** Ends after the statement under way, or after `timeoutMs`. What is not done is done by the next process. */
  async stop(timeoutMs = STOP_MS): Promise<void> {
    this.#stopping.abort();
    this.#sleeper.wake();
    if (this.#running !== null) await overWithin(this.#running, timeoutMs);
    this.#session?.close();
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  async #run(): Promise<void> {
    const { firstMs = FIRST_MS, everyMs = EVERY_MS, retryMs = RETRY_MS } = this.#options;
    let pauseMs = firstMs;
    let tries = 0;
    while (!this.#isStopping) {
      await this.#sleeper.sleep(pauseMs);
      if (this.#isStopping) return;
      tries = (await this.#round()) === 'locked' ? tries + 1 : 0;
      pauseMs = tries === 0 ? everyMs : Math.min(everyMs, retryMs * 2 ** (tries - 1));
    }
  }

  /** A round that fails is logged once, and leaves everything to the next. */
  async #round(): Promise<RoundEnd | 'failed'> {
    try {
      const end = await this.runOnce();
      this.#failing = false;
      return end;
    } catch (error) {
      if (!this.#failing && !this.#isStopping)
        this.#options.log.warn({ err: error }, 'cannot drop the calls of days past USAGE_RETENTION_DAYS now: retrying');
      this.#failing = true;
      return 'failed';
    }
  }

  /** Makes one round. */
  async runOnce(): Promise<RoundEnd> {
    const { databaseUrl, installation, exportDir } = this.#options;
    if (exportDir !== null) await checkExportDir(exportDir);
    // A session for each round: its end frees the lock, whatever has happened. The export has times in UTC.
    const settings = { ...SESSION_SETTINGS, timezone: 'UTC', datestyle: 'ISO' };
    const options = { url: databaseUrl, applicationName: 'tollgate-retention', installation, settings };
    const session = new PostgresSession(options, STATEMENT_MS + 5_000);
    this.#session = session;
    try {
      const rows = await session.query<{ locked: boolean }>('SELECT pg_try_advisory_lock($1::int, 0) AS locked', [
        RETENTION_LOCK,
      ]);
      return rows[0]?.locked === true ? await this.#work(session) : 'elsewhere';
    } finally {
      session.close();
    }
  }

  async #work(session: PostgresSession): Promise<RoundEnd> {
    const limitDay = await this.#limitDay(session);
    try {
      for (const day of await selectClosedDays(session)) await this.#paced(() => this.#drop(session, day));
      for (;;) {
        const due = await nextDueDay(session, limitDay);
        if (due === null || this.#isStopping) return 'done';
        await closeDay(session, due);
        await this.#options.afterStep?.('closed', due.day);
        await this.#paced(() => this.#drop(session, due.day));
      }
    } catch (error) {
      if (sqlState(error) === LOCK_NOT_AVAILABLE) return 'locked';
      if (error instanceof NotRolledUp) return 'not rolled up';
      throw error;
    } finally {
      if (session.open) this.#overdueDays = await countOverdueDays(session, limitDay);
    }
  }

  /** The first day that is kept. By the earlier of two clocks: a clock that is ahead must not drop anything. */
  async #limitDay(session: PostgresSession): Promise<string> {
    const rows = await session.query<{ ms: number }>('SELECT (extract(epoch FROM now()) * 1000)::bigint AS ms');
    const nowMs = this.#options.now?.() ?? Math.min(Date.now(), rows[0]?.ms as number);
    return new Date(nowMs - this.#options.retentionDays * DAY_MS).toISOString().slice(0, 10);
  }

  async #drop(session: PostgresSession, day: string): Promise<void> {
    // Nobody adds calls to a closed day, so these sums stay right.
    const sums = await sumClosedDay(session, day);
    const exported = await this.#export(session, day, sums);
    if (exported !== null) await this.#options.afterStep?.('exported', day);
    await dropDay(session, { day, sums, fileSha256: exported?.sha256 ?? null });
    this.#droppedDays++;
    this.#options.log.info({ day, ...sums, file: exported?.file ?? null }, 'dropped the calls of a day');
  }

  async #export(session: PostgresSession, day: string, expected: DaySums): Promise<Manifest | null> {
    const { exportDir, installation } = this.#options;
    if (exportDir === null) return null;
    const lines = readClosedDay(session, day, PAGE_CALLS);
    return exportDay(exportDir, { installation, day, expected }, lines, this.#stopping.signal);
  }

  async #paced(work: () => Promise<void>): Promise<void> {
    if (this.#isStopping) return;
    const startedAt = performance.now();
    await work();
    const pauseMs = ((performance.now() - startedAt) * (1 - BUSY_SHARE)) / BUSY_SHARE;
    if (!this.#isStopping) await this.#sleeper.sleep(Math.min(pauseMs, LONGEST_PAUSE_MS));
  }
}
