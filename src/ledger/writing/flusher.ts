import { type PostgresSession, sqlState } from '../../platform/postgres.ts';
import type { RedisStore } from '../../platform/redis.ts';
import type { RedisKeys } from '../../platform/redis-keys.ts';
import { type Judged, judgeShards, storeFlush } from '../history/histories-sql.ts';
import { isExact } from './call-sums.ts';
import { type FlushResult, needsCare, storeEntries, storeNewCalls } from './flush.ts';
import { lockShards } from './flush-locks.ts';
import { lookAt } from './look.ts';
import { reportRejected } from './rejected-events.ts';
import { type Batch, ofShards, readAgain } from './stream.ts';
import type { Stored } from './trim.ts';

/**
 * How often the writer waits for the flush lock of a shard that it had to leave out. A wait takes at most 250 ms (`LOCK_WAIT_MS`),
 * so the other shards lose at most 25 % of the time.
 */
const LOCK_WAIT_EVERY_MS = 1_000;
const LOCK_NOT_AVAILABLE = '55P03';

type Options = {
  readonly redis: RedisStore;
  readonly keys: RedisKeys;
  readonly feeBasisPoints: number;
  /** Called after a flush has stored that Redis may have changed. */
  readonly onDoubt?: () => void;
  readonly log: { warn(fields: object, message: string): void; error(fields: object, message: string): void };
};

/**
 * Stores batches, each in one transaction: takes the flush locks, checks whether Redis still has the events and whether Postgres is
 * the right one, and stores them.
 */
export class Flusher {
  readonly #options: Options;
  /** Store the next batch by `storeEntries`: Postgres refused a call of the last batch, or had stored it already. */
  #careful = false;
  /** Shards left out of the last flush because another process had locked them. */
  #passedOver: readonly number[] = [];
  #waitedForLockAt = Number.NEGATIVE_INFINITY;
  #flushes = 0;
  #storedCalls = 0;
  #rejectedEvents = 0;
  /** Shards for which Postgres was found to be older. While there is one, nothing is stored. */
  readonly #fenced = new Set<number>();

  constructor(options: Options) {
    this.#options = options;
  }

  get hasPassedOver(): boolean {
    return this.#passedOver.length > 0;
  }

  /** Shards for which Postgres lacks flushes after which they were trimmed. While there is one, nothing is stored. */
  get fencedShards(): ReadonlySet<number> {
    return this.#fenced;
  }

  stats() {
    return { flushes: this.#flushes, storedCalls: this.#storedCalls, rejectedEvents: this.#rejectedEvents };
  }

  /**
   * Stores a batch in one transaction.
   *
   * @param how  `stopping`: each flush waits for the lock of a shard that it had to leave out; `trimmed`: ends when the batch before has
   *   left its streams, with its mark; `onStoring`: called while Postgres stores the part of the batch whose shards are locked
   * @returns the part of the batch that is now stored, which is everything except the shards that another process has locked; 'locked'
   *   when all its shards are; 'fenced' when Postgres is older than Redis; 'nothing' when nothing was stored and the writer must
   *   read the streams again
   */
  async flush(
    session: PostgresSession,
    batch: Batch,
    how: { readonly stopping: boolean; readonly trimmed: Promise<void>; readonly onStoring: (part: Batch) => void },
  ): Promise<Stored | 'locked' | 'fenced' | 'nothing'> {
    const { log } = this.#options;
    const careful = this.#careful || !isExact(batch.pages);
    const waitFor = this.#lockToWaitFor(batch, how.stopping);
    try {
      const stored = await session.transaction(async () => {
        const locked = ofShards(batch, await lockShards(session, batch.shards, waitFor));
        this.#passedOver = batch.shards.filter((shard) => !locked.shards.includes(shard));
        if (locked.size === 0) return 'locked';
        await how.trimmed;
        // The batch was read before this transaction took the shards' flush locks. If Redis has lost it since then, wallets may
        // have been loaded from Postgres without these charges, so the charges must not be stored now.
        const seen = await lookAt(this.#options, locked, this.#alsoSeen);
        if (seen === null) return 'lost';
        const all = await judgeShards(session.query.bind(session), seen);
        if (this.#isOlder(all)) return 'fenced';
        const judged = new Map(locked.shards.map((shard) => [shard, all.get(shard) as Judged]));
        const storing = careful ? this.#storeCarefully(session, locked) : storeNewCalls(session, locked.pages);
        if (!careful) how.onStoring(locked);
        const result = await storing;
        const mark = await storeFlush(session.query.bind(session), result.flushId, judged);
        const saw = new Map(Array.from(judged, ([shard, its]) => [shard, its.seen.mark]));
        const isDoubt = Array.from(judged.values()).some(({ verdict }) => verdict === 'redis may have changed');
        return { result, isDoubt, flushed: { batch: locked, mark, saw } };
      });
      if (stored === 'locked' || stored === 'fenced') return stored;
      this.#careful = false;
      if (stored === 'lost') {
        log.warn(
          { events: batch.size },
          'usage events that were about to be stored have left their stream: reading again',
        );
        return 'nothing';
      }
      if (stored.isDoubt) this.#options.onDoubt?.();
      this.#flushes++;
      this.#storedCalls += stored.result.inserted;
      this.#rejectedEvents += stored.result.rejected.length;
      reportRejected(stored.result, log);
      return stored.flushed;
    } catch (error) {
      if (waitFor !== null && sqlState(error) === LOCK_NOT_AVAILABLE) return 'nothing';
      if (careful || !needsCare(error)) throw error;
      this.#careful = true;
      return 'nothing';
    }
  }

  /**
   * Which shards are checked in addition to those of the batch: one older shard is enough, because a Postgres goes back as a whole.
   */
  get #alsoSeen(): readonly number[] {
    const { redis, keys } = this.#options;
    return redis.isCluster ? Array.from(this.#fenced) : Array.from(keys.mark.keys());
  }

  #isOlder(judged: ReadonlyMap<number, Judged>): boolean {
    for (const [shard, { verdict }] of judged) this.#fence(shard, verdict === 'postgres is older');
    return this.#fenced.size > 0;
  }

  #fence(shard: number, isOlder: boolean): void {
    if (isOlder === this.#fenced.has(shard)) return;
    if (isOlder) this.#fenced.add(shard);
    else this.#fenced.delete(shard);
    const message = isOlder
      ? 'postgres lacks flushes of this shard that it had stored: nothing is stored until the right postgres is back'
      : 'postgres has all flushes of this shard again';
    this.#options.log.error({ shard }, message);
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
  #lockToWaitFor(batch: Batch, stopping: boolean): number | null {
    const now = performance.now();
    const shard = this.#passedOver.find((passed) => batch.shards.includes(passed));
    if (shard === undefined || (!stopping && now - this.#waitedForLockAt < LOCK_WAIT_EVERY_MS)) return null;
    this.#waitedForLockAt = now;
    // If the lock does not become free in time, the other passed-over shards get their turn before this one.
    this.#passedOver = [...this.#passedOver.filter((passed) => passed !== shard), shard];
    return shard;
  }
}
