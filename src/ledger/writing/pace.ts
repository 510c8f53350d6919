/** How long the writer waits when it has stored all there was, and there is little or nothing to wait for. */
export const SHORT_PAUSE_MS = 100;
/** A finished call shows in Postgres within a second: this, and the flush. */
const LONGEST_PAUSE_MS = 500;
/**
 * Events that make a flush worth its fixed costs. Postgres' CPU an event by size, with 4 000 accounts: 1 000 13.4 µs,
 * 2 000 11.4, 5 000 9.3, 10 000 8.0.
 */
const WORTH_A_FLUSH = 5_000;
/** After so long without an event it looks as rarely as under steady load: an installation that nobody calls should rest. */
const QUIET_AFTER_MS = 2_000;

/**
 * How long to wait for the next batch: under steady load until it is large, otherwise a moment. Load is steady when two
 * looks in a row found events, however few: each flush has its fixed cost. The first calls after a silence do not wait longer.
 */
export class Pace {
  #lookedAtMs: number;
  #lastEventAtMs: number;
  #rate = 0;
  #rateBefore = 0;

  constructor(nowMs: number) {
    this.#lookedAtMs = nowMs;
    this.#lastEventAtMs = nowMs;
  }

  /** @param events that were found at `nowMs`, all younger than the look before */
  found(events: number, nowMs: number): void {
    const elapsedMs = Math.max(1, nowMs - this.#lookedAtMs);
    this.#rateBefore = this.#rate;
    this.#rate = events / elapsedMs;
    this.#lookedAtMs = nowMs;
    if (events > 0) this.#lastEventAtMs = nowMs;
  }

  /** No event for a while. */
  get isQuiet(): boolean {
    return this.#lookedAtMs - this.#lastEventAtMs >= QUIET_AFTER_MS;
  }

  get pauseMs(): number {
    if (this.isQuiet) return LONGEST_PAUSE_MS;
    const perMs = Math.min(this.#rate, this.#rateBefore);
    if (perMs === 0) return SHORT_PAUSE_MS;
    return Math.min(Math.max(WORTH_A_FLUSH / perMs, SHORT_PAUSE_MS), LONGEST_PAUSE_MS);
  }
}

/** Bounds of the wait after a failure: Postgres may be back any moment, and must be noticed within two seconds. */
const MIN_BACKOFF_MS = 50;
const MAX_BACKOFF_MS = 1_000;

/** How long the writer waits after so many failures in a row. */
export function backoffMs(failures: number): number {
  return Math.min(MIN_BACKOFF_MS * 2 ** Math.min(failures - 1, 10), MAX_BACKOFF_MS);
}
