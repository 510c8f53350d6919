export type CoalescerOptions<Value> = {
  readonly maxBatch: number;
  /** Maximum number of keys that wait. A request for one more key is rejected at once. */
  readonly maxWaiting: number;
  /** A request is rejected this long after it was made, however many are ahead of it. */
  readonly timeoutMs: number;
  /**
   * Loads a batch; never called while an earlier batch is loading. `finish` ends one key's wait before the batch is over.
   * All other keys are loaded when this resolves. When it rejects, they are loaded again in halves.
   */
  readonly load: (batch: ReadonlyMap<string, Value>, finish: (key: string, error?: unknown) => void) => Promise<void>;
  /** Whether an error means that a store is away. Then every waiting key is rejected without being tried. */
  readonly isAway: (error: unknown) => boolean;
};

type Entry<Value> = { readonly value: Value; readonly done: Promise<void>; isFinished: boolean; finish: Finish };
type Finish = (error?: unknown) => void;

/** An error that `isPostgresUnavailable` recognises, so that the caller gets 503 and may retry. */
const notNow = (message: string): Error => Object.assign(new Error(message), { code: 'ETIMEDOUT' });

/**
 * Collects the keys requested while one batch is loading, and loads them together in the next batch. Requests that wait for
 * the same key share one load and the deadline of the first of them.
 *
 * If a batch fails, it is loaded again in halves, so that only the keys that cannot be loaded are rejected. If the store is
 * away, all waiting keys are rejected at once.
 */
export class Coalescer<Value> {
  readonly #options: CoalescerOptions<Value>;
  readonly #waiting = new Map<string, Entry<Value>>();
  #running = false;

  constructor(options: CoalescerOptions<Value>) {
    this.#options = options;
  }

  /** Resolves once a batch that began after this call has loaded the key. Rejects if that load fails, or at the deadline. */
  ask(key: string, value: Value): Promise<void> {
    const waiting = this.#waiting.get(key);
    if (waiting !== undefined) return waiting.done;
    if (this.#waiting.size >= this.#options.maxWaiting)
      return Promise.reject(notNow('too many accounts or keys are waiting to be loaded'));
    const entry = this.#newEntry(key, value);
    this.#waiting.set(key, entry);
    if (!this.#running) {
      this.#running = true;
      // Starts after this event-loop turn, so that the batch includes every key requested in this turn.
      setImmediate(() => void this.#run());
    }
    return entry.done;
  }

  #newEntry(key: string, value: Value): Entry<Value> {
    const { timeoutMs } = this.#options;
    let finish: Finish = () => {};
    const done = new Promise<void>((resolve, reject) => {
      finish = (error) => (error === undefined ? resolve() : reject(error));
    });
    const timer = setTimeout(() => {
      if (this.#waiting.get(key) === entry) this.#waiting.delete(key);
      entry.finish(notNow(`not loaded within ${timeoutMs} ms`));
    }, timeoutMs);
    const entry: Entry<Value> = {
      value,
      done,
      isFinished: false,
      finish: (error) => {
        if (entry.isFinished) return;
        entry.isFinished = true;
        clearTimeout(timer);
        finish(error);
      },
    };
    return entry;
  }

  async #run(): Promise<void> {
    while (this.#waiting.size > 0) {
      const batch = new Map<string, Entry<Value>>();
      for (const [key, entry] of this.#waiting) {
        batch.set(key, entry);
        if (batch.size === this.#options.maxBatch) break;
      }
      for (const key of batch.keys()) this.#waiting.delete(key);
      await this.#loadBatch(batch);
    }
    this.#running = false;
  }

  async #loadBatch(batch: ReadonlyMap<string, Entry<Value>>): Promise<void> {
    // Keys whose deadline has passed are skipped. This bounds how long a failed batch is loaded again in halves.
    const asked = Array.from(batch).filter(([, entry]) => !entry.isFinished);
    if (asked.length === 0) return;
    try {
      await this.#options.load(new Map(asked.map(([key, { value }]) => [key, value])), (key, error) =>
        batch.get(key)?.finish(error),
      );
      for (const [, entry] of asked) entry.finish();
    } catch (thrown) {
      await this.#loadingFailed(asked, thrown ?? new Error('loading failed'));
    }
  }

  async #loadingFailed(asked: readonly [string, Entry<Value>][], error: unknown): Promise<void> {
    if (this.#options.isAway(error)) {
      for (const [, entry] of asked) entry.finish(error);
      for (const entry of this.#waiting.values()) entry.finish(error);
      this.#waiting.clear();
      return;
    }
    if (asked.length === 1) {
      for (const [, entry] of asked) entry.finish(error);
      return;
    }
    const half = asked.length >> 1;
    await this.#loadBatch(new Map(asked.slice(0, half)));
    await this.#loadBatch(new Map(asked.slice(half)));
  }
}
