import { byStore, isWrongType, type RedisStore } from '../platform/redis.ts';
import type { RedisKeys } from '../platform/redis-keys.ts';

/** Interval of the readings. The bounds protect Redis's memory, and the calls of one additional second do not matter there. */
const READ_EVERY_MS = 1_000;
/** Share of `maxmemory` above which no new call is admitted. Open calls are still settled beyond it (see batch.lua). */
const MAX_MEMORY_SHARE = 0.9;

/**
 * Watches how many usage events wait in Redis for Postgres, and how much memory Redis uses. Reads both once a second: reading
 * them in the admission script would be exact, but would cost every batch.
 *
 * Tested by test/integration/backlog.test.ts.
 */
export class Backlog {
  readonly #redis: RedisStore;
  readonly #keys: RedisKeys;
  readonly #maxEvents: number;
  #events = 0;
  /** Number of events that wait in each shard. */
  readonly #lengths: number[];
  #memoryFull = false;
  /** How much of its `maxmemory` the Redis of each shard uses. */
  readonly #memoryShares: number[];
  /** Whether a call has asked for `full` since the timer last ticked. */
  #wasAsked = false;
  #isStarted = false;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: { redis: RedisStore; keys: RedisKeys; maxEvents: number }) {
    this.#redis = options.redis;
    this.#keys = options.keys;
    this.#maxEvents = options.maxEvents;
    this.#lengths = options.keys.usage.map(() => 0);
    this.#memoryShares = options.keys.usage.map(() => 0);
  }

  start(): void {
    this.#isStarted = true;
    this.#watch();
  }

  #watch(): void {
    this.#timer = setInterval(this.#onTick, READ_EVERY_MS);
    this.#timer.unref();
  }

  #rest(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /**
   * Stops the timer if no call has asked since the last tick, no event waits, and Redis has memory left. An idle gateway then reads
   * nothing; the next call starts the timer again.
   */
  readonly #onTick = (): void => {
    if (this.#wasAsked || this.#events > 0 || this.#memoryFull) void this.read();
    else this.#rest();
    this.#wasAsked = false;
  };

  stop(): void {
    this.#isStarted = false;
    this.#rest();
  }

  /** Usage events that were waiting for Postgres at the last reading. */
  get events(): number {
    return this.#events;
  }

  /** How much of its `maxmemory` the Redis of a shard used when it was last asked: from 0 to 1, and 0 without a bound. */
  memoryShare(shard: number): number {
    return this.#memoryShares[shard] as number;
  }

  /** Whether Redis was close to its `maxmemory` when it was last asked. */
  get memoryFull(): boolean {
    return this.#memoryFull;
  }

  /** Whether new calls must be refused: too many events wait, or Redis is close to its `maxmemory`, where it refuses writes. */
  get full(): boolean {
    this.#wasAsked = true;
    if (this.#timer === null && this.#isStarted) this.#watch();
    return this.#events >= this.#maxEvents || this.#memoryFull;
  }

  /**
   * Never rejects. While a Redis is away its last known numbers stay, and no call of its accounts is admitted anyway. The
   * connection's own log line says that it is away.
   */
  async read(): Promise<void> {
    const lengths = await Promise.allSettled(this.#keys.usage.map((stream) => this.#lengthOf(stream)));
    for (const [shard, length] of lengths.entries()) {
      if (length.status === 'fulfilled') this.#lengths[shard] = length.value;
    }
    this.#events = this.#lengths.reduce((sum, length) => sum + length, 0);
    // Each Redis is asked once. In a cluster several shards may share a node; asking for each is cheaper than finding that out.
    const nodes = Array.from(byStore(this.#redis, Array.from(this.#keys.usage.keys())));
    const shares = await Promise.allSettled(nodes.map(([node]) => memoryShareOf(node)));
    for (const [at, share] of shares.entries()) {
      if (share.status === 'rejected') continue;
      for (const shard of (nodes[at] as (typeof nodes)[number])[1]) this.#memoryShares[shard] = share.value;
    }
    this.#memoryFull = this.#memoryShares.some((share) => share > MAX_MEMORY_SHARE);
  }

  /** A key of another type holds no events: it counts as 0, and the writer reports it. */
  async #lengthOf(stream: string): Promise<number> {
    try {
      return (await this.#redis.command('xlen', [stream])) as number;
    } catch (error) {
      if (isWrongType(error)) return 0;
      throw error;
    }
  }
}

async function memoryShareOf(node: RedisStore): Promise<number> {
  const info = String(await node.command('info', ['memory']));
  const field = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  const max = field('maxmemory');
  return max > 0 ? field('used_memory') / max : 0;
}
