const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 10_000;
/** A process that lived this long did work: whatever ended it is news. */
const STEADY_MS = 30_000;

/** How long to wait before a process that ended is started again: not at all the first time, then twice as long each time. */
export class Backoff {
  #failures = 0;

  /** @param livedMs for how long the process that ended was ready; 0: it never was */
  next(livedMs: number): number {
    if (livedMs >= STEADY_MS) this.#failures = 0;
    const failures = this.#failures++;
    return failures === 0 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), MAX_PAUSE_MS);
  }
}
