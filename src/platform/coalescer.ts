/** Ends the wait for a key. */
export type End<Result> = { readonly result: Result } | { readonly error: unknown };

export type CoalescerOptions<Value, Result> = {
  readonly maxBatch: number;
  /** Maximum number of keys that wait. A request for one more key is rejected at once. */
  readonly maxWaiting: number;
  /** A request is rejected this long after it was made, however many requests are ahead of it. */
  readonly timeoutMs: number;
  /**
   * Minimum time between the beginnings of two batches; default 0. A batch costs the stores much more than a key in it. Without a gap,
   * a thousand requests a second would make hundreds of batches of two or three keys each.
   */
  readonly gapMs?: number;
  /**
   * Loads a batch; never called while an earlier batch is loading. `finish` ends one key's wait before the batch ends. Resolves to
   * a function that has the results of all other keys. If it rejects, these are loaded again in halves.
   */
  readonly load: (
    batch: ReadonlyMap<string, Value>,
    finish: (key: string, end: End<Result>) => void,
  ) => Promise<(key: string) => Result>;
  /** Whether an error means that a store is away. Then the keys of the batch are rejected without being tried again. */
  readonly isAway: (error: unknown) => boolean;
  /** Whether the keys that wait behind this batch are rejected with it. They need not be if each batch has its own connection. */
  readonly isAwayForAll: boolean;
};

type Entry<Value, Result> = {
  readonly value: Value;
  readonly done: Promise<Result>;
  isFinished: boolean;
  finish: (end: End<Result>) => void;
};

/** An error that `isPostgresUnavailable` recognises, so that the caller gets 503 and may retry. */
const notNow = (message: string): Error => Object.assign(new Error(message), { code: 'ETIMEDOUT' });

/**
 * Collects the keys requested while one batch is loading, and loads them together in the next batch. Requests that wait for
 * the same key share one load and the deadline of the first of them.
 *
 * If a batch fails, it is loaded again in halves, so that only the keys that cannot be loaded are rejected. If the store is
 * away, the keys of the batch are rejected at once.
 */
export class Coalescer<Value, Result> {
  readonly #options: CoalescerOptions<Value, Result>;
  readonly #waiting = new Map<string, Entry<Value, Result>>();
  #running = false;
  #batchBeganAt = Number.NEGATIVE_INFINITY;

  constructor(options: CoalescerOptions<Value, Result>) {
    this.#options = options;
  }

  /** Number of keys whose batch has not begun. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Resolves once a batch that began after this call has loaded the key. Rejects if that load fails, or at the deadline.
   *
   * @param timeoutMs  instead of the usual one
   */
  ask(key: string, value: Value, timeoutMs = this.#options.timeoutMs): Promise<Result> {
    const waiting = this.#waiting.get(key);
    if (waiting !== undefined) return waiting.done;
    if (this.#waiting.size >= this.#options.maxWaiting)
      return Promise.reject(notNow('too many accounts or keys are waiting to be loaded'));
    const entry = this.#newEntry(key, value, timeoutMs);
    this.#waiting.set(key, entry);
    if (!this.#running) {
      this.#running = true;
      void this.#run();
    }
    return entry.done;
  }

  #newEntry(key: string, value: Value, timeoutMs: number): Entry<Value, Result> {
    let settle: (end: End<Result>) => void = () => {};
    const done = new Promise<Result>((resolve, reject) => {
      settle = (end) => ('error' in end ? reject(end.error) : resolve(end.result));
    });
    const timer = setTimeout(() => {
      if (this.#waiting.get(key) === entry) this.#waiting.delete(key);
      entry.finish({ error: notNow(`not loaded within ${timeoutMs} ms`) });
    }, timeoutMs);
    const entry: Entry<Value, Result> = {
      value,
      done,
      isFinished: false,
      finish: (end) => {
        if (entry.isFinished) return;
        entry.isFinished = true;
        clearTimeout(timer);
        settle(end);
      },
    };
    return entry;
  }

  async #run(): Promise<void> {
    while (this.#waiting.size > 0) {
      await this.#gap();
      const batch = new Map<string, Entry<Value, Result>>();
      for (const [key, entry] of this.#waiting) {
        batch.set(key, entry);
        if (batch.size === this.#options.maxBatch) break;
      }
      for (const key of batch.keys()) this.#waiting.delete(key);
      this.#batchBeganAt = performance.now();
      await this.#loadBatch(batch);
    }
    this.#running = false;
  }

  /**
   * Waits until the gap has passed, and at least to the end of this event-loop turn, so that the batch contains every key of the
   * turn.
   */
  #gap(): Promise<void> {
    const { gapMs = 0 } = this.#options;
    const leftMs = this.#batchBeganAt + gapMs - performance.now();
    return new Promise((resolve) => (leftMs > 0 ? setTimeout(resolve, leftMs) : setImmediate(resolve)));
  }

  async #loadBatch(batch: ReadonlyMap<string, Entry<Value, Result>>): Promise<void> {
    // Keys whose deadline has passed are skipped. This bounds how long a failed batch is loaded again in halves.
    const asked = Array.from(batch).filter(([, entry]) => !entry.isFinished);
    if (asked.length === 0) return;
    try {
      const resultOf = await this.#options.load(new Map(asked.map(([key, { value }]) => [key, value])), (key, end) =>
        batch.get(key)?.finish(end),
      );
      for (const [key, entry] of asked) if (!entry.isFinished) entry.finish({ result: resultOf(key) });
    } catch (thrown) {
      await this.#loadingFailed(asked, thrown ?? new Error('loading failed'));
    }
  }

  async #loadingFailed(asked: readonly [string, Entry<Value, Result>][], error: unknown): Promise<void> {
    if (this.#options.isAway(error)) {
      for (const [, entry] of asked) entry.finish({ error });
      if (!this.#options.isAwayForAll) return;
      for (const entry of this.#waiting.values()) entry.finish({ error });
      this.#waiting.clear();
      return;
    }
    if (asked.length === 1) {
      for (const [, entry] of asked) entry.finish({ error });
      return;
    }
    const half = asked.length >> 1;
    await this.#loadBatch(new Map(asked.slice(0, half)));
    await this.#loadBatch(new Map(asked.slice(half)));
  }
}
