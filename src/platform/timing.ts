/** A sleep that can be ended early. One sleep at a time. */
export class Sleeper {
  #wake: () => void = () => {};

  /** Resolves after `ms`, or when `wake` is called before. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Ends the sleep under way; without one, nothing happens. */
  wake(): void {
    this.#wake();
  }

  /** Resolves with true when `wake` is called: for what waits for something else than time. */
  woken(): Promise<true> {
    return new Promise((resolve) => {
      this.#wake = () => resolve(true);
    });
  }
}

/**
 * The result of `work`, or a rejection with what `late` makes after `timeoutMs`. The work itself goes on: `late` may stop it.
 * What becomes of it after that is ignored.
 */
export async function within<T>(work: PromiseLike<T>, timeoutMs: number, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), timeoutMs);
  });
  try {
    return await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves when `work` has ended, however it did, or after `timeoutMs`: for stopping, where nothing may wait for ever. */
export async function overWithin(work: Promise<unknown>, timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, timeoutMs);
  });
  await Promise.race([Promise.allSettled([work]), deadline]);
  clearTimeout(timer);
}
