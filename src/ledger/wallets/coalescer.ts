export type CoalescerOptions<Value> = {
  readonly maxBatch: number;
  /** Keys that may wait; who asks for one more is rejected at once. */
  readonly maxWaiting: number;
  /** Nobody waits longer than this from asking, whatever is before them. */
  readonly timeoutMs: number;
  /**
   * Loads a batch; never run twice at the same time. `finish` tells of a key before the batch is over; keys it was not
   * called for end as the batch does.
   */
  readonly load: (batch: ReadonlyMap<string, Value>, finish: (key: string, error?: unknown) => void) => Promise<void>;
  /** Whether a failure says that the store is away, so that trying the others would only make them wait as well. */
  readonly isAway: (error: unknown) => boolean;
};

type Entry<Value> = { readonly value: Value; readonly done: Promise<void>; isFinished: boolean; finish: Finish };
type Finish = (error?: unknown) => void;

/** An error that `isPostgresUnavailable` knows: the caller is told to come again. */
const notNow = (message: string): Error => Object.assign(new Error(message), { code: 'ETIMEDOUT' });

/**
 * Collects what is asked for while one batch is under way, and asks for all of it in the next. The same key asked for
 * twice is one request, and has the deadline of the first.
 *
 * A batch that fails is loaded again in halves, so that only what cannot be loaded is rejected; when the store is away,
 * all who wait are rejected with it.
 */
export class Coalescer<Value> {
  readonly #options: CoalescerOptions<Value>;
  readonly #waiting = new Map<string, Entry<Value>>();
  #running = false;

  constructor(options: CoalescerOptions<Value>) {
    this.#options = options;
  }

  /** Resolves after a batch that began later than this loaded the key. Rejects with its failure, or at the deadline. */
  ask(key: string, value: Value): Promise<void> {
    const waiting = this.#waiting.get(key);
    if (waiting !== undefined) return waiting.done;
    if (this.#waiting.size >= this.#options.maxWaiting) return Promise.reject(notNow('too many wait to be loaded'));
    const entry = this.#newEntry(key, value);
    this.#waiting.set(key, entry);
    if (!this.#running) {
      this.#running = true;
      // After this turn: whatever else it asks for comes along.
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
    // Those whose deadline passed meanwhile cost nothing more: that bounds the halving.
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
