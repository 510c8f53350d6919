/** Minimum time between two log lines of the same SparseWarning. */
const EVERY_MS = 10_000;
/**
 * For a warning that any request may cause, for example while a store is away. It is logged at most once in ten seconds, with the
 * number of warnings that were left out since the previous log line.
 */
export class SparseWarning {
    #log;
    #everyMs;
    #loggedAt = Number.NEGATIVE_INFINITY;
    #leftOut = 0;
    constructor(log, everyMs = EVERY_MS) {
        this.#log = log;
        this.#everyMs = everyMs;
    }
    warn(fields, message) {
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
//# sourceMappingURL=sparse-warning.js.map