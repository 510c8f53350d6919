import { isCommandTimeout, RedisClient, type RedisLog } from '../../platform/redis.ts';
import type { RedisKeys } from '../../platform/redis-keys.ts';
import type { ReadOver } from './read-over.ts';

/** Longest wait for an event. After it the writer checks its session and its partitions. */
const BLOCK_MS = 5_000;
/** How long Redis may take to reply after `BLOCK_MS`. Then the connection counts as lost. */
const REPLY_MS = 1_000;

/** `cannot`: the connection is not ready, or one of the streams is damaged. There was no wait. */
type WaitEnd = 'event' | 'time over' | 'cannot';

/**
 * Lets an idle writer sleep until an event arrives. It has its own connection, because Redis executes nothing else on a connection
 * that is blocked. The writer works without it: if the wait fails, it asks on its other connection every 800 ms. That costs an idle
 * writer 4 ms of CPU per second instead of 2. A connection that goes silent delays events once, by at most `BLOCK_MS` and
 * `REPLY_MS`.
 */
export class EventWait {
  readonly #url: string;
  readonly #keys: RedisKeys;
  readonly #log: RedisLog;
  #redis: RedisClient | null = null;

  constructor({ url, keys, log }: { url: string; keys: RedisKeys; log: RedisLog }) {
    this.#url = url;
    this.#keys = keys;
    this.#log = log;
  }

  /** Resolves when a stream of `shards` has an entry after the events of a newer version that were skipped, or after `BLOCK_MS`. */
  async next(shards: readonly number[], readOver: ReadOver): Promise<WaitEnd> {
    this.#redis ??= this.#connect();
    // A connection may hang for seconds before it fails. Until it is made, the writer reads the streams without waiting here.
    if (!this.#redis.ready) return 'cannot';
    const streams = shards.map((shard) => this.#keys.usage[shard] as string);
    const ids = shards.map((shard) => readOver.head(shard).id ?? '0');
    const args = ['COUNT', '1', 'BLOCK', String(BLOCK_MS), 'STREAMS', ...streams, ...ids];
    try {
      return (await this.#redis.command('xread', args)) === null ? 'time over' : 'event';
    } catch (error) {
      // Not logged here: the writer meets the same fault when it reads the streams, and logs it.
      if (isCommandTimeout(error)) this.close();
      return 'cannot';
    }
  }

  /** Closes the connection; this ends a wait under way. The next wait makes a new connection. */
  close(): void {
    this.#redis?.destroy();
    this.#redis = null;
  }

  #connect(): RedisClient {
    const options = { url: this.#url, name: 'tollgate-writer-wait', commandTimeoutMs: BLOCK_MS + REPLY_MS };
    const redis = new RedisClient(options, this.#log);
    // The client logs why it cannot connect, and keeps trying.
    redis.connect().catch(() => {});
    return redis;
  }
}
