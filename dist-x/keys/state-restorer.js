import { SparseWarning } from '../observability/sparse-warning.js';
/**
 * Maximum number of keys being restored or pausing after it. Beyond it `restore` does nothing; the key's next request calls
 * it again.
 */
const MAX_KEYS = 100;
/** Pause after each attempt for a key: a lasting fault must not cost Postgres a transaction per request. */
const PAUSE_MS = 1_000;
/**
 * Writes key states to Redis again after Redis lost them. A Redis that came back with data from before a change of a limit,
 * or from before the resumption of an account, has the former state, and nothing else would correct it. The gate notices the
 * difference at the key's next request, when it compares Redis's reply with the key's record.
 */
export class StateRestorer {
    #publish;
    #restored;
    #failures;
    #busy = new Set();
    constructor({ publish, log }) {
        this.#publish = publish;
        this.#restored = new SparseWarning(log);
        this.#failures = new SparseWarning(log);
    }
    /** Call this when the state of the key in Redis differs from its record. Acts at most once a second per key; never throws. */
    restore(keyId) {
        if (this.#busy.has(keyId) || this.#busy.size >= MAX_KEYS)
            return;
        this.#busy.add(keyId);
        this.#publish(keyId).then(() => this.#ended(keyId, () => this.#restored.warn({ key_id: keyId }, 'published the state of a key again')), (err) => this.#ended(keyId, () => this.#failures.warn({ err, key_id: keyId }, 'cannot publish the state of a key')));
    }
    #ended(keyId, say) {
        say();
        setTimeout(() => this.#busy.delete(keyId), PAUSE_MS).unref();
    }
}
//# sourceMappingURL=state-restorer.js.map