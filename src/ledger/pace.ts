/** How long the writer waits when it has stored all there was, and there is little or nothing to wait for. */
export const SHORT_PAUSE_MS = 100;
/** A finished call shows in Postgres within a second: this, and the flush. */
const LONGEST_PAUSE_MS = 500;
/**
 * Events that make a flush worth its fixed costs. Postgres' CPU an event by size, with 4 000 accounts: 1 000 13.4 µs,
 * 2 000 11.4, 5 000 9.3, 10 000 8.0.
 */
const WORTH_A_FLUSH = 5_000;
/** Below this rate a pause gathers too little to be worth waiting for. */
const STEADY_PER_MS = 1;

/**
 * How long to wait for the next batch: under steady load until it is large, otherwise a moment. Load is steady when two
 * looks in a row found it so: neither the first calls after a silence nor the end of a burst wait longer.
 */
export class Pace {
  #lookedAtMs: number;
  #rate = 0;
  #rateBefore = 0;

  constructor(nowMs: number) {
    this.#lookedAtMs = nowMs;
  }

  /** @param events that were found at `nowMs`, all younger than the look before */
  found(events: number, nowMs: number): void {
    const elapsedMs = Math.max(1, nowMs - this.#lookedAtMs);
    this.#rateBefore = this.#rate;
    this.#rate = events / elapsedMs;
    this.#lookedAtMs = nowMs;
  }

  get pauseMs(): number {
    const perMs = Math.min(this.#rate, this.#rateBefore);
    if (perMs < STEADY_PER_MS) return SHORT_PAUSE_MS;
    return Math.min(Math.max(WORTH_A_FLUSH / perMs, SHORT_PAUSE_MS), LONGEST_PAUSE_MS);
  }
}
