/** How long the writer waits after it has stored everything, while events are rare, so that an event is stored soon. */
export const SHORT_PAUSE_MS = 100;
/** Longest pause, so that a finished call appears in Postgres within a second: this pause and the flush. */
const LONGEST_PAUSE_MS = 500;
/**
 * Number of events that makes a flush worth its fixed costs. Postgres' CPU per event by batch size, with 4 000 accounts: 1 000
 * 13.4 µs, 2 000 11.4, 5 000 9.3, 10 000 8.0.
 */
const WORTH_A_FLUSH = 5_000;
/** After this time without events the writer makes the longest pauses, so that an idle installation uses little CPU. */
const QUIET_AFTER_MS = 2_000;

/**
 * How long to wait before the next batch: under steady load until the batch is large, otherwise only briefly. Load is steady
 * when two looks in a row found events, however few, because each flush has its fixed cost. The first calls after a silence are
 * stored without the longer wait.
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

  /** @param events number of events found at `nowMs`, all of them added since the previous look */
  found(events: number, nowMs: number): void {
    const elapsedMs = Math.max(1, nowMs - this.#lookedAtMs);
    this.#rateBefore = this.#rate;
    this.#rate = events / elapsedMs;
    this.#lookedAtMs = nowMs;
    if (events > 0) this.#lastEventAtMs = nowMs;
  }

  /** Whether there was no event for `QUIET_AFTER_MS`. */
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

/** Bounds of the pause after a failure: Postgres may be back at any moment, and the writer must notice within two seconds. */
const MIN_BACKOFF_MS = 50;
const MAX_BACKOFF_MS = 1_000;

/** How long the writer pauses after `failures` failures in a row. */
export function backoffMs(failures: number): number {
  return Math.min(MIN_BACKOFF_MS * 2 ** Math.min(failures - 1, 10), MAX_BACKOFF_MS);
}
