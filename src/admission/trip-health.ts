import { performance } from 'node:perf_hooks';

type Log = { warn(fields: object, message: string): void };

/** Judges from the trips whether Redis answers. Logs once when Redis stops answering and once when it answers again. */
export class TripHealth {
  readonly #log: Log;
  /** Number of trips that were lost since the last reply. */
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

  /**
   * True from a lost trip to the next reply. Between the two, Admission takes new calls only when no trip is under way: their
   * trip finds out whether Redis answers again.
   */
  get suspect(): boolean {
    return this.#lost > 0;
  }

  answeredWithin(ms: number): boolean {
    return performance.now() - this.#repliedAt < ms;
  }
}
