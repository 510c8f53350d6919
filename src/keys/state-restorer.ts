import { SparseWarning } from '../observability/sparse-warning.ts';

/**
 * Maximum number of keys that are being restored or pause afterwards. Beyond it `restore` does nothing; the key's next request
 * calls it again.
 */
const MAX_KEYS = 100;
/** Pause after each attempt for a key: a lasting fault must not cost Postgres a transaction per request. */
const PAUSE_MS = 1_000;

type StateRestorerOptions = {
  /** Copies the state of a key from Postgres to Redis, where the admission script finds it. */
  readonly publish: (keyId: string) => Promise<void>;
  readonly log: { warn(fields: object, message: string): void };
};

/**
 * Writes key states to Redis again after Redis lost them. A Redis that came back with older data has the state from before a change
 * of a limit, or before an account was resumed, and nothing else would correct it. The gate notices the difference at the key's
 * next request, when it compares Redis's reply with the key's record.
 */
export class StateRestorer {
  readonly #publish: StateRestorerOptions['publish'];
  readonly #restored: SparseWarning;
  readonly #failures: SparseWarning;
  readonly #busy = new Set<string>();

  constructor({ publish, log }: StateRestorerOptions) {
    this.#publish = publish;
    this.#restored = new SparseWarning(log);
    this.#failures = new SparseWarning(log);
  }

  /** Call this when the state of the key in Redis differs from its record. Acts at most once a second per key; never throws. */
  restore(keyId: string): void {
    if (this.#busy.has(keyId) || this.#busy.size >= MAX_KEYS) return;
    this.#busy.add(keyId);
    this.#publish(keyId).then(
      () =>
        this.#ended(keyId, () =>
          this.#restored.warn(
            { key_id: keyId },
            'the state of a key in redis differed from its record: published it again',
          ),
        ),
      (err: unknown) =>
        this.#ended(keyId, () => this.#failures.warn({ err, key_id: keyId }, 'cannot publish the state of a key')),
    );
  }

  #ended(keyId: string, say: () => void): void {
    say();
    setTimeout(() => this.#busy.delete(keyId), PAUSE_MS).unref();
  }
}
