type Log = { warn(fields: object, message: string): void };

const EVERY_MS = 10_000;

/**
 * A warning that every request may be a reason for, while a store is away for instance: one line in ten seconds, with the
 * number of those that were left out before it.
 */
export class SparseWarning {
  readonly #log: Log;
  readonly #everyMs: number;
  #loggedAt = Number.NEGATIVE_INFINITY;
  #leftOut = 0;

  constructor(log: Log, everyMs = EVERY_MS) {
    this.#log = log;
    this.#everyMs = everyMs;
  }

  warn(fields: object, message: string): void {
    const now = performance.now();
    if (now - this.#loggedAt < this.#everyMs) {
      this.#leftOut++;
      return;
    }
    this.#log.warn({ ...fields, ...(this.#leftOut > 0 ? { left_out: this.#leftOut } : {}) }, message);
    this.#loggedAt = now;
    this.#leftOut = 0;
  }
}
