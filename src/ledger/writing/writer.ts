import { type Clock, systemClock } from '../../platform/clock.ts';
import { PostgresSession, sqlState } from '../../platform/postgres.ts';
import { RedisNotSent, type RedisStore } from '../../platform/redis.ts';
import type { RedisKeys } from '../../platform/redis-keys.ts';
import { overWithin, Sleeper } from '../../platform/timing.ts';
import { EventWait } from './event-wait.ts';
import { type FlushResult, needsCare, storeEntries, storeNewCalls } from './flush.ts';
import { lockShards } from './flush-locks.ts';
import { OwnedShards } from './owned-shards.ts';
import { backoffMs, Pace, SHORT_PAUSE_MS } from './pace.ts';
import { makePartitions } from './partitions.ts';
import { ReadOver } from './read-over.ts';
import { reportRejected } from './rejected-log.ts';
import {
  type Batch,
  deleteBatch,
  isAnyWaiting,
  isExact,
  isStillThere,
  ofShards,
  readAgain,
  readBatch,
  ShardsAway,
  type StreamSource,
} from './stream.ts';
import { StreamNotices } from './stream-notices.ts';

const PARTITIONS_MS = 3_600_000;
const PARTITIONS_RETRY_MS = 60_000;
const QUERY_TIMEOUT_MS = 20_000;
/**
 * How often the writer waits for the flush lock of a shard that it had to leave out. A wait takes 250 ms (`LOCK_WAIT_MS`) at
 * most, so the other shards lose at most 25 % of the time.
 */
const LOCK_WAIT_EVERY_MS = 1_000;
/** How much longer than its timeout `stop` may take, so that the writer can still log how many events it leaves. */
const GRACE_MS = 500;
/**
 * A writer that has failed for so long gives up its shards, so that a writer that does reach both stores can have them. It comes back
 * when it is connected to Redis again.
 */
const GIVE_UP_MS = 5_000;
/** How long the writer leaves out a shard of a cluster whose node has failed it. The other shards must not wait for its timeouts. */
const LEFT_OUT_MS = 2_000;
const LOCK_NOT_AVAILABLE = '55P03';

/** Settings of the writer's session. */
const SESSION_SETTINGS = {
  lock_timeout: 5_000,
  // The session keeps its query plans for its whole life. A plan made while `entries` is small would scan the whole table, and
  // would still do so once the table is large.
  enable_seqscan: 'off',
  // A writer process that is suspended in the middle of a flush keeps flush locks: it must not block the loading of wallets.
  idle_in_transaction_session_timeout: 5_000,
  // Between two flushes it keeps its shards: other writers must get them. A working writer asks Postgres at least every 6 s
  // (`BLOCK_MS` and `REPLY_MS` of event-wait.ts).
  idle_session_timeout: 8_000,
  // If the writer's machine vanishes, its locks are free after about 11 s.
  tcp_keepalives_idle: 5,
  tcp_keepalives_interval: 2,
  tcp_keepalives_count: 3,
};

export type WriterLog = {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
};

export type UsageWriterOptions = {
  /** The writer opens its own connection, not through PgBouncer: the session's locks say which shards this writer has. */
  readonly databaseUrl: string;
  /** Id of the installation the database must belong to; if absent, this is not checked. */
  readonly installation?: string;
  readonly redis: RedisStore;
  /**
   * The URL of `redis`. The writer opens a second connection there, to wait for events. Null: a cluster, where no command waits for
   * streams of several shards. There an idle writer looks twice a second.
   */
  readonly redisUrl: string | null;
  readonly keys: RedisKeys;
  /** The platform's share of a charge in basis points: 10 000 is the whole charge. */
  readonly feeBasisPoints: number;
  readonly log: WriterLog;
  /**
   * Maximum number of events in one transaction; the others are left for the next one. The transaction locks its shards
   * (`FLUSH_LOCK`) until it ends, so a larger one would block the loading of wallets for longer. Postgres' CPU per event, with
   * 2 000 accounts: 19.6 µs at 2 000 events, 8.7 at 10 000 (the default), 7.7 at 20 000.
   */
  readonly batchSize?: number;
  readonly clock?: Clock;
  /** Called between the commit and the deletion from the stream. Tests kill the process here. */
  readonly afterCommit?: () => Promise<void> | void;
};

export type WriterStats = {
  /** Calls stored since the start. A call that Postgres had already is not counted again. */
  readonly storedCalls: number;
  readonly rejectedEvents: number;
  /** Events of a newer version that the writer's last look at the streams left there. */
  readonly newerEvents: number;
  readonly flushes: number;
  /** Entries in the streams of the writer's shards at its last look; null before the first look. */
  readonly backlog: number | null;
  readonly ownedShards: number;
  /** False while a failure of Postgres or Redis stops the writer. */
  readonly working: boolean;
};

/**
 * Carries usage events from the streams into Postgres, in batches. Each event takes effect once, and is deleted from its stream
 * only after the commit.
 *
 *   connect ──► read a batch ──► BEGIN, lock, still there?, store, COMMIT ──► delete ──┐
 *      ▲             ▲    ▲                    │        │                              │
 *      │             │    └── read ahead ◄─────┼────────┘                              │
 *      │             └─ none: wait for some ◄──┼───────────────────────────────────────┘
 *      └─ wait 50 ms … 1 s ◄── any failure: events stay in the stream
 *
 * If the writer is killed between commit and deletion, the next writer reads the same events again. COPY fails for them, so the
 * batch is stored by `storeEntries`, and calls that are in Postgres already change nothing. Several writers share the shards
 * (`OwnedShards`): those of one that ended are taken within a second or two, those of one that is suspended after 5 to 15 s.
 */
export class UsageWriter {
  readonly #options: UsageWriterOptions;
  readonly #source: StreamSource;
  readonly #notices: StreamNotices;
  readonly #batchSize: number;
  readonly #clock: Clock;
  readonly #pace = new Pace(performance.now());
  readonly #events: EventWait | null;
  /** An event ended the last wait, and the writer has found none to store since. */
  #wokenInVain = false;
  readonly #owned: OwnedShards;
  #session: PostgresSession | null = null;
  /** Shards of a cluster that are left out, and until when (ms). */
  readonly #leftOut = new Map<number, number>();
  #madePartitionsAt = 0;
  #stopping = false;
  /** The timeout of `stop` is over. */
  #outOfTime = false;
  readonly #sleeper = new Sleeper();
  #running: Promise<void> | null = null;
  #failures = 0;
  #failingSince = 0;
  #reported = '';
  #ahead: Promise<Batch> | null = null;
  #deletion: Promise<void> = Promise.resolve();
  /** Store the next batch by `storeEntries`: Postgres refused a call of the last batch, or had stored it already. */
  #careful = false;
  /** Shards left out of the last flush because another process had locked them. */
  #passedOver: readonly number[] = [];
  #waitedForLockAt = Number.NEGATIVE_INFINITY;
  #storedCalls = 0;
  #rejectedEvents = 0;
  #flushes = 0;
  #backlog: number | null = null;

  constructor(options: UsageWriterOptions) {
    this.#options = options;
    this.#notices = new StreamNotices(options.log);
    this.#owned = new OwnedShards(options.keys.shards);
    this.#source = {
      ...options,
      readOver: new ReadOver(),
      onNewer: (shard, events) => this.#notices.newer(shard, events),
      onLook: (shard, isDamaged) => this.#notices.looked(shard, isDamaged),
      onAway: (shard) => this.#leaveOut([shard]),
    };
    const { redisUrl: url, keys, log } = options;
    this.#events = url === null ? null : new EventWait({ url, keys, log });
    this.#batchSize = options.batchSize ?? 10_000;
    this.#clock = options.clock ?? systemClock;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /**
   * Stores everything that is in the streams now, then ends the session. Failures are retried until `timeoutMs` is over. Events
   * that are not stored by then stay for the next writer, and a line is logged.
   */
  async stop(timeoutMs = 5_000): Promise<void> {
    this.#stopping = true;
    // The batch that was read ahead lacks the events that came after it was read. So drop it: the last look must be a new one.
    this.#ahead = null;
    // Another writer may just have ended and left shards that no writer has: try to take them at once.
    this.#owned.lookSoon();
    this.#sleeper.wake();
    const timer = setTimeout(() => {
      this.#outOfTime = true;
      this.#session?.close();
      this.#sleeper.wake();
    }, timeoutMs);
    // The writer notices the timeout only between two commands, and a slow Redis may delay each. Do not wait for that.
    await overWithin(this.#running ?? Promise.resolve(), timeoutMs + GRACE_MS);
    clearTimeout(timer);
  }

  stats(): WriterStats {
    return {
      storedCalls: this.#storedCalls,
      rejectedEvents: this.#rejectedEvents,
      newerEvents: this.#notices.newerEvents,
      flushes: this.#flushes,
      backlog: this.#backlog,
      ownedShards: this.#session?.open ? this.#owned.shards.length : 0,
      working: this.#failures === 0,
    };
  }

  /** Whether this writer has the shard. What one of several writers must do is done by the one that has shard 0. */
  owns(shard: number): boolean {
    return this.#session?.open === true && this.#owned.shards.includes(shard);
  }

  async #run(): Promise<void> {
    let emptied = false;
    while (!emptied && !this.#outOfTime) {
      // The last look at the streams must begin after the writer was told to stop.
      const last = this.#stopping;
      try {
        const more = await this.#cycle();
        this.#recovered();
        if (more) continue;
        emptied = last;
        if (!this.#stopping) await this.#pause();
      } catch (error) {
        this.#failed(error);
        if (!this.#outOfTime) await this.#sleeper.sleep(backoffMs(this.#failures));
      }
    }
    this.#session?.close();
    this.#events?.close();
    if (!emptied)
      this.#options.log.warn({ events: this.#backlog }, 'writer stops and leaves events for the next writer');
  }

  async #pause(): Promise<void> {
    // Events of locked shards have waited already, so pause only briefly.
    if (this.#passedOver.length > 0) await this.#sleeper.sleep(SHORT_PAUSE_MS);
    else if (!this.#mayWaitForEvents || !(await this.#waitForEvent())) await this.#sleeper.sleep(this.#pace.pauseMs);
    else return;
    this.#wokenInVain = false;
  }

  /**
   * Whether to block on Redis until an event arrives. Not while another writer has shards: they may become free at any moment.
   * Not while events come steadily: each would be stored at once, and storing many together costs less per event.
   */
  get #mayWaitForEvents(): boolean {
    return !this.#wokenInVain && this.#pace.isQuiet && this.#owned.hasAll;
  }

  /** @returns false when it could not wait */
  async #waitForEvent(): Promise<boolean> {
    if (this.#events === null) return false;
    const end = await Promise.race([
      this.#sleeper.woken(),
      this.#events.next(this.#owned.shards, this.#source.readOver),
    ]);
    // Until a batch proves the opposite: then the next wait would end at once too, and the writer would never pause.
    this.#wokenInVain = end === 'event';
    return end !== 'cannot';
  }

  /** Stores one batch, if there are events. @returns whether to continue at once */
  async #cycle(): Promise<boolean> {
    const session = await this.#ready();
    const ahead = this.#ahead;
    this.#ahead = null;
    // A new read would find the entries again whose deletion is still under way, so wait for the deletion.
    if (ahead === null) await this.#deletion;
    if (this.#pace.isQuiet && !(await isAnyWaiting(this.#source, this.#usable()))) {
      this.#pace.found(0, performance.now());
      this.#backlog = 0;
      return false;
    }
    const batch = (await ahead) ?? (await readBatch(this.#source, this.#usable(), this.#batchSize, null));
    this.#pace.found(batch.size, performance.now());
    this.#backlog = batch.size + batch.behind;
    if (batch.size === 0) {
      await this.#deletion;
      return false;
    }
    this.#wokenInVain = false;
    const stored = await this.#flush(session, batch);
    if (stored === 'nothing') return true;
    // Other processes have locked all shards of the batch. While stopping, continue at once: the next flush waits for a lock.
    if (stored === 'locked') return this.#stopping;
    await this.#options.afterCommit?.();
    const previous = this.#deletion;
    const deletion = deleteBatch(this.#options, stored);
    // While there is more to store, this deletion is awaited one batch later, and its failure is thrown there. Without this line
    // Node would report an unhandled rejection until then. Entries that were not deleted are read again.
    deletion.catch(() => {});
    this.#deletion = deletion;
    await previous;
    this.#backlog = stored.behind;
    const leftOut = batch.size - stored.size;
    const more = stored.behind > (this.#stopping ? 0 : leftOut);
    if (!more) await deletion;
    return more;
  }

  /**
   * Stores a batch in one transaction.
   *
   * @returns the part of the batch that is now stored, which is everything except the shards that another process has locked;
   *   'locked' when all its shards are; 'nothing' when nothing was stored and the writer must read the streams again
   */
  async #flush(session: PostgresSession, batch: Batch): Promise<Batch | 'locked' | 'nothing'> {
    const { log } = this.#options;
    const careful = this.#careful || !isExact(batch.pages);
    const waitFor = this.#lockToWaitFor(batch);
    try {
      const stored = await session.transaction(async () => {
        const part = ofShards(batch, await lockShards(session, batch.shards, waitFor));
        this.#passedOver = batch.shards.filter((shard) => !part.shards.includes(shard));
        if (part.size === 0) return 'locked';
        // The batch was read before this transaction took the shards' flush locks. If Redis has lost it since then, wallets may
        // have been loaded from Postgres without these charges, so the charges must not be stored now. (If this Redis belongs to
        // another installation by now, `isStillThere` throws.)
        if (!(await isStillThere(this.#options, part))) return 'lost';
        if (careful) return { part, result: await this.#storeCarefully(session, part) };
        const storing = storeNewCalls(session, part.pages);
        if (part.behind > 0) this.#readAhead(part);
        return { part, result: await storing };
      });
      if (stored === 'locked') return 'locked';
      this.#careful = false;
      if (stored === 'lost') {
        this.#ahead = null;
        log.warn({ events: batch.size }, 'redis lost usage events that were about to be stored');
        return 'nothing';
      }
      this.#flushes++;
      this.#storedCalls += stored.result.inserted;
      this.#rejectedEvents += stored.result.rejected.length;
      reportRejected(stored.result, log);
      return stored.part;
    } catch (error) {
      this.#ahead = null;
      if (waitFor !== null && sqlState(error) === LOCK_NOT_AVAILABLE) return 'nothing';
      if (careful || !needsCare(error)) throw error;
      this.#careful = true;
      return 'nothing';
    }
  }

  async #storeCarefully(session: PostgresSession, part: Batch): Promise<FlushResult> {
    const entries = await readAgain(this.#options, part);
    if (entries.length !== part.size)
      throw new Error(`${part.size - entries.length} usage events disappeared from their streams`);
    return storeEntries(session, entries, this.#options.feeBasisPoints);
  }

  /**
   * The passed-over shard whose flush lock this flush should wait for. Null when there is none, or when the last such wait was
   * less than `LOCK_WAIT_EVERY_MS` ago.
   */
  #lockToWaitFor(batch: Batch): number | null {
    const now = performance.now();
    const shard = this.#passedOver.find((passed) => batch.shards.includes(passed));
    if (shard === undefined || (!this.#stopping && now - this.#waitedForLockAt < LOCK_WAIT_EVERY_MS)) return null;
    this.#waitedForLockAt = now;
    // If the lock does not become free in time, the other passed-over shards get their turn before this one.
    this.#passedOver = [...this.#passedOver.filter((passed) => passed !== shard), shard];
    return shard;
  }

  /** The shards of this writer that are not left out. */
  #usable(): readonly number[] {
    const { shards } = this.#owned;
    if (this.#leftOut.size === 0) return shards;
    const now = performance.now();
    for (const [shard, until] of this.#leftOut) if (until <= now) this.#leftOut.delete(shard);
    return shards.filter((shard) => !this.#leftOut.has(shard));
  }

  #leaveOut(shards: readonly number[]): void {
    for (const shard of shards) this.#leftOut.set(shard, performance.now() + LEFT_OUT_MS);
  }

  /** Reads and prepares the next batch (8 µs of the writer's CPU per event) while Postgres stores this one (11 µs per event). */
  #readAhead(batch: Batch): void {
    this.#ahead = this.#deletion.then(() => readBatch(this.#source, this.#usable(), this.#batchSize, batch));
    // If this read fails, the next cycle throws its error. If the flush fails as well, only the flush's error is reported.
    this.#ahead.catch(() => {});
  }

  /** An open session. It has the shards of its share, and has made the partitions of the coming days. */
  async #ready(): Promise<PostgresSession> {
    const session = this.#session?.open ? this.#session : await this.#connect();
    const now = performance.now();
    if (await this.#owned.balance(session, () => this.#endWork())) {
      this.#options.log.info({ shards: this.#owned.shards }, 'writer has other shards');
    }
    if (now - this.#madePartitionsAt >= PARTITIONS_MS) {
      this.#madePartitionsAt = now;
      await this.#makePartitions(session);
    }
    return session;
  }

  /**
   * Making a partition fails while a long query is reading `calls`. That must not stop the writer: the default partition takes
   * calls of days without a partition.
   */
  async #makePartitions(session: PostgresSession): Promise<void> {
    try {
      await makePartitions(session, this.#clock(), this.#options.log);
    } catch (error) {
      if (!session.open) throw error;
      this.#options.log.warn({ err: error }, 'cannot make partitions of calls now, trying again in a minute');
      this.#madePartitionsAt += PARTITIONS_RETRY_MS - PARTITIONS_MS;
    }
  }

  /** Ends all work on the streams, so that another writer finds no event that is stored already. */
  async #endWork(): Promise<void> {
    this.#ahead = null;
    await this.#deletion;
  }

  async #connect(): Promise<PostgresSession> {
    // Its session would take shards away from writers that work.
    if (this.#failures > 0 && !this.#options.redis.ready) throw new RedisNotSent();
    // What was read ahead may be of shards that another writer has by now.
    this.#ahead = null;
    this.#owned.reset();
    this.#madePartitionsAt = Number.NEGATIVE_INFINITY;
    const { databaseUrl, installation } = this.#options;
    const options = { url: databaseUrl, applicationName: 'tollgate-writer', settings: SESSION_SETTINGS };
    this.#session = new PostgresSession({ ...options, ...(installation && { installation }) }, QUERY_TIMEOUT_MS);
    return this.#session;
  }

  /** Logs one line when the cause changes, so that an outage of an hour does not fill the disk. */
  #failed(error: unknown): void {
    const now = performance.now();
    if (this.#failures++ === 0) this.#failingSince = now;
    if (now - this.#failingSince >= GIVE_UP_MS) this.#session?.close();
    if (error instanceof ShardsAway) this.#leaveOut(error.shards);
    this.#ahead = null;
    this.#deletion = Promise.resolve();
    const reason = error instanceof Error ? error.message : String(error);
    if (reason === this.#reported) return;
    this.#reported = reason;
    this.#options.log.warn({ err: error }, 'writer cannot work, events wait in the stream');
  }

  #recovered(): void {
    if (this.#failures > 0) this.#options.log.info({ failures: this.#failures }, 'writer works again');
    this.#failures = 0;
    this.#reported = '';
  }
}
