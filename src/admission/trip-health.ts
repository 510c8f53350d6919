import { performance } from 'node:perf_hooks';

type Log = { warn(fields: object, message: string): void };

/** What the trips say about Redis. Logs once when it stops answering and once when it answers again. */
export class TripHealth {
  readonly #log: Log;
  #lost = 0;
  #repliedAt = performance.now();

  constructor(log: Log) {
    this.#log = log;
  }

  replied(): void {
    this.#repliedAt = performance.now();
    if (this.#lost === 0) return;
    this.#log.warn({ batches: this.#lost }, 'redis answers again; so many batches had no reply');
    this.#lost = 0;
  }

  lost(error: unknown): void {
    if (this.#lost++ === 0) this.#log.warn({ err: error }, 'no reply from redis for a batch');
  }

  /** The last trip had no reply: until one has, one trip at a time finds out. */
  get suspect(): boolean {
    return this.#lost > 0;
  }

  answeredWithin(ms: number): boolean {
    return performance.now() - this.#repliedAt < ms;
  }
}
