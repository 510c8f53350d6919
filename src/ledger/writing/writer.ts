import { type Clock, systemClock } from '../../platform/clock.ts';
import { RedisNotSent, type RedisStore } from '../../platform/redis.ts';
import type { RedisKeys } from '../../platform/redis-keys.ts';
import { overWithin, Sleeper } from '../../platform/timing.ts';
import { layoutOf } from '../layout.ts';
import { EventWait } from './event-wait.ts';
import { Flusher } from './flusher.ts';
import { backoffMs, Pace, SHORT_PAUSE_MS } from './pace.ts';
import { ReadOver } from './read-over.ts';
import { type Batch, isAnyWaiting, readBatch, ShardsAway, type StreamSource } from './stream.ts';
import { StreamNotices } from './stream-notices.ts';
import { trim } from './trim.ts';
import { WriterSession } from './writer-session.ts';

/** How much longer than its timeout `stop` may take, so that the writer can still log how many events it leaves. */
const GRACE_MS = 500;
/**
 * A writer that has failed for this long gives up its shards, so that a writer that reaches both stores can take them. It comes
 * back when it is connected to Redis again.
 */
const GIVE_UP_MS = 5_000;
type WriterLog = {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
};

export type UsageWriterOptions = {
  /** The writer opens its own connection, not through PgBouncer, because the session's locks say which shards this writer has. */
  readonly databaseUrl: string;
  /** Id of the installation the database must belong to; if absent, this is not checked. */
  readonly installation?: string;
  readonly redis: RedisStore;
  /**
   * The URL of `redis`. The writer opens a second connection there, to wait for events. Null: a cluster, where no command waits for
   * streams of several shards. There an idle writer looks every 800 ms.
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
  /** Called when Redis may have changed since it was compared: wallets may have too much money until it is compared again. */
  readonly onDoubt?: () => void;
  /** Called between the commit and the deletion from the stream. Tests kill the process here. */
  readonly afterCommit?: () => Promise<void> | void;
};

type WriterStats = {
  /** Calls stored since the start. A call that Postgres already had is not counted again. */
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
 * Brings usage events from the streams into Postgres, in batches. Each event takes effect once, and is deleted from its stream only
 * after the commit.
 *
 *   connect ──► read a batch ──► BEGIN, lock, look, store, COMMIT ──► trim and mark ──┐
 *      ▲             ▲    ▲                          │      │                          │
 *      │             │    └── read ahead ◄─────┼────────┘                              │
 *      │             └─ none: wait for some ◄──┼───────────────────────────────────────┘
 *      └─ wait 50 ms … 1 s ◄── any failure: events stay in the stream
 *
 * If the writer is killed between commit and deletion, the next writer reads the same events again. COPY fails for them, so the
 * batch is stored by `storeEntries`, and calls that are already in Postgres change nothing. Several writers share the shards
 * (`OwnedShards`): those of a writer that ended are taken within a second or two, those of a suspended one after 5 to 15 s.
 */
export class UsageWriter {
  readonly #options: UsageWriterOptions;
  readonly #source: StreamSource;
  readonly #notices: StreamNotices;
  readonly #batchSize: number;
  readonly #pace = new Pace(performance.now());
  readonly #events: EventWait | null;
  /** An event ended the last wait, and the writer has found none to store since. */
  #wokenInVain = false;
  /**
   * The last wait ended without an event. There is no need to ask again before the next wait, which would end at once if there were
   * any.
   */
  #waitedInVain = false;
  readonly #session: WriterSession;
  readonly #flusher: Flusher;
  #stopping = false;
  /** Whether the timeout of `stop` has passed. */
  #outOfTime = false;
  readonly #sleeper = new Sleeper();
  #running: Promise<void> | null = null;
  #failures = 0;
  #failingSince = 0;
  #reported = '';
  #ahead: Promise<Batch> | null = null;
  #trim: Promise<void> = Promise.resolve();
  #backlog: number | null = null;

  constructor(options: UsageWriterOptions) {
    this.#options = options;
    this.#notices = new StreamNotices(options.log);
    this.#flusher = new Flusher(options);
    this.#source = {
      ...options,
      readOver: new ReadOver(),
      onNewer: (shard, events) => this.#notices.newer(shard, events),
      onLook: (shard, isDamaged) => this.#notices.looked(shard, isDamaged),
      onAway: (shard) => this.#session.leaveOut([shard]),
    };
    const { redisUrl: url, keys, log } = options;
    this.#events = url === null ? null : new EventWait({ url, keys, log });
    this.#batchSize = options.batchSize ?? 10_000;
    this.#session = new WriterSession({ ...options, clock: options.clock ?? systemClock }, layoutOf(options));
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /**
   * Stores everything that is in the streams now, then ends the session. Failures are retried until `timeoutMs` has passed. Events
   * that are not stored by then are left for the next writer, and a line is logged.
   */
  async stop(timeoutMs = 5_000): Promise<void> {
    this.#stopping = true;
    // The batch that was read ahead lacks the events that arrived after it was read. So it is dropped: the last look must be a new
    // one.
    this.#ahead = null;
    this.#session.lookSoon();
    this.#sleeper.wake();
    const timer = setTimeout(() => {
      this.#outOfTime = true;
      this.#session.close();
      this.#sleeper.wake();
    }, timeoutMs);
    // The writer notices the timeout only between two commands, and a slow Redis may delay each. Do not wait for that.
    await overWithin(this.#running ?? Promise.resolve(), timeoutMs + GRACE_MS);
    clearTimeout(timer);
  }

  stats(): WriterStats {
    return {
      ...this.#flusher.stats(),
      newerEvents: this.#notices.newerEvents,
      backlog: this.#backlog,
      ownedShards: this.#session.shards.length,
      working: this.#failures === 0,
    };
  }

  /** Shards for which Postgres is older than Redis. While there is one, nothing is stored. */
  get fencedShards(): ReadonlySet<number> {
    return this.#flusher.fencedShards;
  }

  /** Whether this writer has the shard. Work that only one of several writers must do is done by the one that has shard 0. */
  owns(shard: number): boolean {
    return this.#session.shards.includes(shard);
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
    this.#session.close();
    this.#events?.close();
    if (!emptied || this.fencedShards.size > 0)
      this.#options.log.warn({ events: this.#backlog }, 'writer stops and leaves events for the next writer');
  }

  async #pause(): Promise<void> {
    // Events of locked shards have waited already, so pause only briefly.
    if (this.#flusher.hasPassedOver) await this.#sleeper.sleep(SHORT_PAUSE_MS);
    else if (!this.#mayWaitForEvents || !(await this.#waitForEvent())) await this.#sleeper.sleep(this.#pace.pauseMs);
    else return;
    this.#wokenInVain = false;
  }

  /**
   * Whether to block on Redis until an event arrives. Not while another writer has shards: they may become free at any moment. Not
   * while events arrive steadily: each would be stored at once, and storing many together costs less per event.
   */
  get #mayWaitForEvents(): boolean {
    return !this.#wokenInVain && this.#pace.isQuiet && this.#session.hasAllShards;
  }

  /** @returns false when it could not wait */
  async #waitForEvent(): Promise<boolean> {
    if (this.#events === null) return false;
    const end = await Promise.race([
      this.#sleeper.woken(),
      this.#events.next(this.#session.shards, this.#source.readOver),
    ]);
    // This holds until a batch proves the opposite. Otherwise the next wait would end at once too, and the writer would never
    // pause.
    this.#wokenInVain = end === 'event';
    this.#waitedInVain = end === 'time over';
    return end !== 'cannot';
  }

  /** Stores one batch, if there are events. @returns whether to continue at once */
  async #cycle(): Promise<boolean> {
    if (!this.#session.isOpen) {
      // A new session would take shards away from writers that work.
      if (this.#failures > 0 && !this.#options.redis.ready) throw new RedisNotSent();
      // The batch that was read ahead may have shards that another writer has by now.
      this.#ahead = null;
    }
    const session = await this.#session.ready(() => this.#endWork());
    const ahead = this.#ahead;
    this.#ahead = null;
    // A new read would find the entries again that are being trimmed.
    if (ahead === null) await this.#trim;
    if (
      this.#pace.isQuiet &&
      (this.#sawNothing() || !(await isAnyWaiting(this.#source, this.#session.usableShards())))
    ) {
      this.#pace.found(0, performance.now());
      this.#backlog = 0;
      return false;
    }
    const batch = (await ahead) ?? (await readBatch(this.#source, this.#session.usableShards(), this.#batchSize, null));
    this.#pace.found(batch.size, performance.now());
    this.#backlog = batch.size + batch.behind;
    if (batch.size === 0) {
      await this.#trim;
      return false;
    }
    this.#wokenInVain = false;
    const stored = await this.#flusher.flush(session, batch, {
      stopping: this.#stopping,
      trimmed: this.#trim,
      onStoring: (part) => this.#readAhead(part),
    });
    if (stored === 'fenced') {
      this.#ahead = null;
      this.#session.leaveOut(this.#session.shards);
      return false;
    }
    if (stored === 'nothing') {
      this.#ahead = null;
      return true;
    }
    // Other processes have locked all shards of the batch. While stopping, continue at once: the next flush waits for a lock.
    if (stored === 'locked') return this.#stopping;
    await this.#options.afterCommit?.();
    // The next flush awaits this, and throws its failure: it must see the mark. Without the second line Node would report an unhandled
    // rejection until then. Entries that were not deleted are read again.
    this.#trim = trim(this.#options, stored);
    this.#trim.catch(() => {});
    const { behind, size } = stored.batch;
    this.#backlog = behind;
    const more = behind > (this.#stopping ? 0 : batch.size - size);
    if (!more) await this.#trim;
    return more;
  }

  /** Whether the wait that has just ended shows that there is no event, so that another wait follows. A stop looks anew. */
  #sawNothing(): boolean {
    const sawNothing = this.#waitedInVain && this.#mayWaitForEvents && !this.#stopping;
    this.#waitedInVain = false;
    return sawNothing;
  }

  /** Reads and prepares the next batch (8 µs of the writer's CPU per event) while Postgres stores this one (11 µs per event). */
  #readAhead(batch: Batch): void {
    if (batch.behind === 0) return;
    this.#ahead = this.#trim.then(() => readBatch(this.#source, this.#session.usableShards(), this.#batchSize, batch));
    // If this read fails, the next cycle throws its error. If the flush fails as well, only the flush's error is reported.
    this.#ahead.catch(() => {});
  }

  /** Ends all work on the streams, so that another writer finds no event that is stored already. */
  async #endWork(): Promise<void> {
    this.#ahead = null;
    await this.#trim;
  }

  /** Logs one line when the cause changes, so that an outage of an hour does not fill the disk. */
  #failed(error: unknown): void {
    const now = performance.now();
    if (this.#failures++ === 0) this.#failingSince = now;
    if (now - this.#failingSince >= GIVE_UP_MS) this.#session.close();
    if (error instanceof ShardsAway) this.#session.leaveOut(error.shards);
    this.#ahead = null;
    this.#trim = Promise.resolve();
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
