/** Pause before the second restart; each further pause is twice as long. */
const FIRST_PAUSE_MS = 500;
/** Maximum pause, so that a process comes back soon after the cause of its failures is gone. */
const MAX_PAUSE_MS = 10_000;
/**
 * A process that was ready for this long has worked. When it ends, earlier failures are forgotten, and this counts as the first.
 */
const STEADY_MS = 30_000;

/**
 * How long to wait before restarting a process that ended: not at all the first time, then 500 ms, and twice as long each time
 * after that.
 */
export class Backoff {
  #failures = 0;

  /** @param livedMs how long the process that ended had been ready; 0 if it never was */
  next(livedMs: number): number {
    if (livedMs >= STEADY_MS) this.#failures = 0;
    const failures = this.#failures++;
    return failures === 0 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), MAX_PAUSE_MS);
  }
}
