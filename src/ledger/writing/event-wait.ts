import { RedisClient, type RedisLog } from '../../platform/redis.ts';
import type { RedisKeys } from '../../platform/redis-keys.ts';
import type { ReadOver } from './read-over.ts';

/** Longest wait for an event. After it the writer checks its session and its partitions. */
const BLOCK_MS = 5_000;
/** How long Redis may take to reply after that time is over. Beyond it the connection counts as lost. */
const REPLY_MS = 1_000;

/**
 * Lets an idle writer sleep until an event arrives. It has its own connection, because Redis executes nothing else on a
 * connection that is blocked. The writer does not depend on it: if it fails, the writer asks on its other connection every half
 * second, which costs an idle writer 4 ms of CPU per second instead of 2.
 */
export class EventWait {
  readonly #redis: RedisClient;
  readonly #keys: RedisKeys;
  #connecting: Promise<void> | null = null;

  constructor({ url, keys, log }: { url: string; keys: RedisKeys; log: RedisLog }) {
    this.#redis = new RedisClient({ url, name: 'tollgate-writer-wait', commandTimeoutMs: BLOCK_MS + REPLY_MS }, log);
    this.#keys = keys;
  }

  /**
   * Resolves when a stream of `shards` has an entry beyond those that were read over, and after five seconds at the latest.
   *
   * @returns false when it could not wait: not connected, or one of the streams is damaged
   */
  async next(shards: readonly number[], readOver: ReadOver): Promise<boolean> {
    const streams = shards.map((shard) => this.#keys.usage[shard] as string);
    const ids = shards.map((shard) => readOver.head(shard).id ?? '0');
    // The client logs why it cannot connect, and keeps trying.
    this.#connecting ??= this.#redis.connect().catch(() => {});
    await this.#connecting;
    try {
      await this.#redis.command('xread', ['COUNT', '1', 'BLOCK', String(BLOCK_MS), 'STREAMS', ...streams, ...ids]);
      return true;
    } catch {
      // The writer will meet and log the cause when it looks at the streams itself.
      return false;
    }
  }

  /** Closes the connection; this ends a wait under way. */
  close(): void {
    this.#redis.destroy();
  }
}
