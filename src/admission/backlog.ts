import type { RedisClient } from '../platform/redis.ts';
import type { RedisKeys } from '../platform/redis-keys.ts';

const READ_EVERY_MS = 1_000;

/**
 * Watches how many usage events wait for Postgres. Read once a second rather than in the admission script: the bound
 * protects Redis's memory, and a second of calls more or less does not matter to it.
 */
export class Backlog {
  readonly #redis: RedisClient;
  readonly #keys: RedisKeys;
  readonly #maxEvents: number;
  #events = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: { redis: RedisClient; keys: RedisKeys; maxEvents: number }) {
    this.#redis = options.redis;
    this.#keys = options.keys;
    this.#maxEvents = options.maxEvents;
  }

  start(): void {
    this.#timer = setInterval(() => void this.read(), READ_EVERY_MS);
    this.#timer.unref();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  /** Usage events waiting, as of the last second. */
  get events(): number {
    return this.#events;
  }

  get full(): boolean {
    return this.#events >= this.#maxEvents;
  }

  /** Never rejects: while Redis is away nothing is admitted anyway, and the last known number stays. */
  async read(): Promise<void> {
    try {
      const lengths = await Promise.all(this.#keys.usage.map((stream) => this.#redis.command('xlen', [stream])));
      this.#events = lengths.reduce<number>((sum, length) => sum + (length as number), 0);
    } catch {
      // The connection's own log line says that Redis is away.
    }
  }
}
