/**
 * Collects what is asked for while one batch is under way, and asks for all of it in the next. The same key asked for
 * twice is one request.
 */
export class Coalescer<Value> {
  readonly #load: (batch: ReadonlyMap<string, Value>) => Promise<void>;
  readonly #maxBatch: number;
  #waiting = new Map<string, { readonly value: Value; readonly done: Promise<void>; settle: Settle }>();
  #running = false;

  /** `load` is never run twice at the same time. */
  constructor(maxBatch: number, load: (batch: ReadonlyMap<string, Value>) => Promise<void>) {
    this.#maxBatch = maxBatch;
    this.#load = load;
  }

  /** Resolves after the batch with this key was loaded; rejects with the batch. */
  ask(key: string, value: Value): Promise<void> {
    const waiting = this.#waiting.get(key);
    if (waiting !== undefined) return waiting.done;
    let settle: Settle = () => {};
    const done = new Promise<void>((resolve, reject) => {
      settle = (error) => (error === undefined ? resolve() : reject(error));
    });
    this.#waiting.set(key, { value, done, settle });
    if (!this.#running) {
      this.#running = true;
      // After this turn: whatever else it asks for comes along.
      setImmediate(() => void this.#run());
    }
    return done;
  }

  async #run(): Promise<void> {
    while (this.#waiting.size > 0) {
      const batch = Array.from(this.#waiting).slice(0, this.#maxBatch);
      for (const [key] of batch) this.#waiting.delete(key);
      let failure: unknown;
      try {
        await this.#load(new Map(batch.map(([key, { value }]) => [key, value])));
      } catch (error) {
        failure = error ?? new Error('loading failed');
      }
      for (const [, { settle }] of batch) settle(failure);
    }
    this.#running = false;
  }
}

type Settle = (error?: unknown) => void;
