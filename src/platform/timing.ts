/** A sleep that can be ended early. Serves one sleep at a time. */
export class Sleeper {
  #wake: () => void = () => {};

  /** Resolves after `ms`, or earlier when `wake` is called. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Ends the sleep under way; does nothing when there is none. */
  wake(): void {
    this.#wake();
  }

  /** Resolves with true when `wake` is called, but never after a time: for code that races it against another promise. */
  woken(): Promise<true> {
    return new Promise((resolve) => {
      this.#wake = () => resolve(true);
    });
  }
}

/**
 * Resolves or rejects as `work` does, or rejects after `timeoutMs` with the error that `late` makes. The work itself goes on
 * after that, unless `late` stops it; its outcome is ignored.
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

/** Resolves when `work` has resolved or rejected, or after `timeoutMs`. For shutdown, where nothing may wait for ever. */
export async function overWithin(work: Promise<unknown>, timeoutMs: number): Promise<void> {
  await endsWithin(Promise.allSettled([work]), timeoutMs);
}

/** Resolves with true when `work` has resolved, or with false after `timeoutMs`: it goes on then. Rejects if `work` does before. */
export async function endsWithin(work: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), timeoutMs);
  });
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
