import { RedisClient, type RedisLog } from '../../platform/redis.ts';
import type { RedisKeys } from '../../platform/redis-keys.ts';
import type { ReadOver } from './read-over.ts';

/** Longest wait for an event. After it the writer checks its session and its partitions. */
const BLOCK_MS = 5_000;
/** How long Redis may take to reply once `BLOCK_MS` is over. A later reply counts as a lost connection. */
const REPLY_MS = 1_000;

/**
 * Lets an idle writer sleep until an event arrives. It has its own connection, because Redis executes nothing else on a
 * connection that is blocked. The writer works without it: if the wait fails, the writer asks on its other connection every half
 * second. That costs an idle writer 4 ms of CPU per second instead of 2.
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
   * Resolves when a stream of `shards` has an entry after the events of a newer version that were skipped, or after `BLOCK_MS`.
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
      // Not logged here: the writer meets the same fault when it reads the streams, and logs it.
      return false;
    }
  }

  /** Closes the connection; this ends a wait under way. */
  close(): void {
    this.#redis.destroy();
  }
}
