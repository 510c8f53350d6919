import { Job, type JobOptions } from '../../platform/job.ts';
import { PostgresSession, sqlState } from '../../platform/postgres.ts';
import { RETENTION_LOCK } from '../locks.ts';
import {
  closeDay,
  countOverdueDays,
  type DaySums,
  dropDay,
  newestDayWithCalls,
  nextDueDay,
  readClosedDay,
  selectClosedDays,
  sumClosedDay,
} from './close-day.ts';
import { checkExportDir, exportDay, type Manifest } from './export-file.ts';

const DAY_MS = 86_400_000;
/**
 * This many of the newest days with calls are never closed, whatever the clock says. If the clocks of this machine and of Postgres
 * jump ahead, every day looks old, and a closed day never takes calls again: after the clock is corrected, today's calls would be
 * charged and rejected. This bound keeps today and the days around it open. The wrong clock itself adds days with calls, but only
 * one a day. USAGE_RETENTION_DAYS cannot be less than this (config.ts).
 */
const KEPT_DAYS = 30;
/** Time from one look to the next. A day becomes due once a day. */
const EVERY_MS = 600_000;
/** Time from a start to the first look, because waiting events come first. */
const FIRST_MS = 30_000;
/**
 * Pause after the locks were not free. It doubles with each attempt up to `EVERY_MS`, because each attempt may make a flush wait
 * 100 ms.
 */
const RETRY_MS = 5_000;
/** Share of the time for which the job works when many days are due, because calls and pages come first. */
const BUSY_SHARE = 0.2;
const LONGEST_REST_MS = 60_000;
/** Bounds one statement. A day of ten million calls is summed in seconds. */
const STATEMENT_MS = 600_000;
const SESSION_SETTINGS = {
  statement_timeout: STATEMENT_MS,
  // Pages of an export follow an index. Without statistics of the day, Postgres sorted all its calls for each page: 46 µs a call
  // instead of 12.
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
/** No day with calls is earlier. */
const NO_DAY = '0001-01-01';

export type RetentionJobOptions = {
  /** The job opens its own connection, not through PgBouncer, because a lock of the session says which process does the work. */
  readonly databaseUrl: string;
  readonly installation: string;
  /** Calls of this many days before today (UTC) are kept. 0: all. */
  readonly retentionDays: number;
  /** Folder for the files of dropped days; null: they are dropped without an export. */
  readonly exportDir: string | null;
  /** How many of the newest days with calls are never closed. Default: `KEPT_DAYS`. */
  readonly keptDays?: number;
  readonly firstMs?: number;
  readonly everyMs?: number;
  readonly retryMs?: number;
  readonly now?: () => number;
  /** Called when a day is closed and when it is exported. Tests kill the process here. */
  readonly afterStep?: (step: 'closed' | 'exported', day: string) => Promise<void> | void;
  readonly log: JobOptions['log'];
};

/** How a round ended: everything is done; another process is working; a lock was not free, so try again soon. */
export type RoundEnd = 'done' | 'elsewhere' | 'locked';

/**
 * Drops the calls of days that are older than the retention, and not among the newest `KEPT_DAYS` days with calls. It closes a day,
 * exports it if asked, and drops it, then goes on to the next. A day that was closed by a process that died is exported and dropped
 * first. Of several writers, the one with the lock works.
 */
export class RetentionJob extends Job {
  readonly #options: RetentionJobOptions;
  #session: PostgresSession | null = null;
  /** Rounds in a row that found the locks taken. */
  #tries = 0;
  #droppedDays = 0;
  #overdueDays = 0;

  constructor(options: RetentionJobOptions) {
    const { firstMs = FIRST_MS, everyMs = EVERY_MS, log } = options;
    super({
      firstMs,
      everyMs,
      busyShare: BUSY_SHARE,
      longestRestMs: LONGEST_REST_MS,
      log,
      messages: {
        failing: 'cannot drop the calls of days past USAGE_RETENTION_DAYS now: retrying',
        again: 'can drop the calls of days past USAGE_RETENTION_DAYS again',
      },
    });
    this.#options = options;
  }

  /** Days dropped since the start. */
  get droppedDays(): number {
    return this.#droppedDays;
  }

  /** Days that should be gone but were still stored at the end of this job's last round. Days kept by `KEPT_DAYS` do not count. */
  get overdueDays(): number {
    return this.#overdueDays;
  }

  override start(): void {
    if (this.#options.retentionDays > 0) super.start();
  }

  /** Ends after the statement under way, or after `timeoutMs`. The next process does the rest. */
  override async stop(timeoutMs?: number): Promise<void> {
    await super.stop(timeoutMs);
    this.#session?.close();
  }

  protected override async round(): Promise<void> {
    const { everyMs = EVERY_MS, retryMs = RETRY_MS } = this.#options;
    const tries = this.#tries;
    // Set to 0 before the round, because a round that fails ends the series of tries, too.
    this.#tries = 0;
    if ((await this.runOnce()) !== 'locked') return;
    this.#tries = tries + 1;
    this.nextIn(Math.min(everyMs, retryMs * 2 ** tries));
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
      for (const day of await selectClosedDays(session)) {
        if (this.stopping.aborted) return 'done';
        await this.paced(() => this.#drop(session, day));
      }
      for (;;) {
        const due = await nextDueDay(session, limitDay);
        if (due === null || this.stopping.aborted) return 'done';
        await closeDay(session, due);
        await this.#options.afterStep?.('closed', due.day);
        await this.paced(() => this.#drop(session, due.day));
      }
    } catch (error) {
      if (sqlState(error) === LOCK_NOT_AVAILABLE) return 'locked';
      throw error;
    } finally {
      if (session.open) this.#overdueDays = await countOverdueDays(session, limitDay);
    }
  }

  /**
   * The first day that is kept: the earliest by both clocks and by `KEPT_DAYS`, because a clock that is ahead must not drop much.
   */
  async #limitDay(session: PostgresSession): Promise<string> {
    const { now, retentionDays, keptDays = KEPT_DAYS } = this.#options;
    const rows = await session.query<{ ms: number }>('SELECT (extract(epoch FROM now()) * 1000)::bigint AS ms');
    const nowMs = now?.() ?? Math.min(Date.now(), rows[0]?.ms as number);
    const limitDay = new Date(nowMs - retentionDays * DAY_MS).toISOString().slice(0, 10);
    const keptFrom = keptDays === 0 ? limitDay : ((await newestDayWithCalls(session, keptDays)) ?? NO_DAY);
    return [limitDay, keptFrom].sort()[0] as string;
  }

  async #drop(session: PostgresSession, day: string): Promise<void> {
    // Nobody adds calls to a closed day, so these sums remain right.
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
    return exportDay(exportDir, { installation, day, expected }, lines, this.stopping);
  }
}
