import { SparseWarning } from '../observability/sparse-warning.ts';

/** Keys at once. Those beyond have their turn with their next request. */
const MAX_KEYS = 100;
/** After each attempt: what is wrong for longer must not cost Postgres a transaction a request. */
const PAUSE_MS = 1_000;

export type StateRestorerOptions = {
  /** Copies the state of a key from Postgres to where the admission script finds it. */
  readonly publish: (keyId: string) => Promise<void>;
  readonly log: { warn(fields: object, message: string): void };
};

/**
 * Publishes states of keys again that Redis has forgotten: one that came back older than a changed limit, or than an account
 * that was resumed, has what was before, and nobody would tell it otherwise. Requests show it.
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

  /** Redis said something else of the key than its record. Each key once a second at most; never rejects. */
  restore(keyId: string): void {
    if (this.#busy.has(keyId) || this.#busy.size >= MAX_KEYS) return;
    this.#busy.add(keyId);
    this.#publish(keyId).then(
      () => this.#ended(keyId, () => this.#restored.warn({ key_id: keyId }, 'published the state of a key again')),
      (err: unknown) =>
        this.#ended(keyId, () => this.#failures.warn({ err, key_id: keyId }, 'cannot publish the state of a key')),
    );
  }

  #ended(keyId: string, say: () => void): void {
    say();
    setTimeout(() => this.#busy.delete(keyId), PAUSE_MS).unref();
  }
}
