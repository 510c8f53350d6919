import { isWrongType, type RedisClient } from '../platform/redis.ts';
import type { RedisKeys } from '../platform/redis-keys.ts';

const READ_EVERY_MS = 1_000;
/** Share of `maxmemory` from which on no new call is admitted. Settling what is open goes on beyond it (see batch.lua). */
const MAX_MEMORY_SHARE = 0.9;

/**
 * Watches how many usage events wait for Postgres. Read once a second rather than in the admission script: the bound
 * protects Redis's memory, and a second of calls more or less does not matter to it.
 */
export class Backlog {
  readonly #redis: RedisClient;
  readonly #keys: RedisKeys;
  readonly #maxEvents: number;
  #events = 0;
  #memoryFull = false;
  /** Whether a call asked for it since the last reading. */
  #wasAsked = false;
  #isStarted = false;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: { redis: RedisClient; keys: RedisKeys; maxEvents: number }) {
    this.#redis = options.redis;
    this.#keys = options.keys;
    this.#maxEvents = options.maxEvents;
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

  /** Without calls, and with nothing left to store, the numbers stay what they are. */
  readonly #onTick = (): void => {
    if (this.#wasAsked || this.#events > 0 || this.#memoryFull) void this.read();
    else this.#rest();
    this.#wasAsked = false;
  };

  stop(): void {
    this.#isStarted = false;
    this.#rest();
  }

  /** Usage events waiting, as of the last second. */
  get events(): number {
    return this.#events;
  }

  /** No room for more calls: too many events, or Redis close to its `maxmemory`, where it would begin to refuse writes. */
  get full(): boolean {
    this.#wasAsked = true;
    if (this.#timer === null && this.#isStarted) this.#watch();
    return this.#events >= this.#maxEvents || this.#memoryFull;
  }

  /** Never rejects: while Redis is away nothing is admitted anyway, and the last known number stays. */
  async read(): Promise<void> {
    try {
      const lengths = await Promise.all(this.#keys.usage.map((stream) => this.#lengthOf(stream)));
      this.#events = lengths.reduce((sum, length) => sum + length, 0);
      this.#memoryFull = isMemoryFull(String(await this.#redis.command('info', ['memory'])));
    } catch {
      // The connection's own log line says that Redis is away.
    }
  }

  /** A key of another type has no events; the writer reports it. */
  async #lengthOf(stream: string): Promise<number> {
    try {
      return (await this.#redis.command('xlen', [stream])) as number;
    } catch (error) {
      if (isWrongType(error)) return 0;
      throw error;
    }
  }
}

function isMemoryFull(info: string): boolean {
  const field = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  const max = field('maxmemory');
  return max > 0 && field('used_memory') > max * MAX_MEMORY_SHARE;
}
