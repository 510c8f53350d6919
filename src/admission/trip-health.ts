import { performance } from 'node:perf_hooks';

type Log = { warn(fields: object, message: string): void };

/** Whether Redis answers, judged by the trips. Logs once when Redis stops answering and once when it answers again. */
export class TripHealth {
  readonly #log: Log;
  /** Trips without a reply since the last reply. */
  #lost = 0;
  #repliedAt = performance.now();

  constructor(log: Log) {
    this.#log = log;
  }

  replied(): void {
    this.#repliedAt = performance.now();
    if (this.#lost === 0) return;
    this.#log.warn({ batches: this.#lost }, `redis is answering again; ${this.#lost} batches went unanswered`);
    this.#lost = 0;
  }

  lost(error: unknown): void {
    if (this.#lost++ === 0) this.#log.warn({ err: error }, 'no reply from redis for a batch');
  }

  /** The last trip had no reply. Until one gets a reply, only one trip at a time is sent, to find out. */
  get suspect(): boolean {
    return this.#lost > 0;
  }

  answeredWithin(ms: number): boolean {
    return performance.now() - this.#repliedAt < ms;
  }
}
