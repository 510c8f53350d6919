/**
 * Shortest pause between two batches. It applies when one of the last two looks at the streams found no event (unless all is
 * quiet), so that the first events after a silence are stored soon. It also applies while another process has locked shards.
 */
export const SHORT_PAUSE_MS = 100;
/** Longest pause after the writer has stored everything, so that a finished call is in Postgres within a second (decision 0085). */
const LONGEST_PAUSE_MS = 800;
/**
 * Number of events that makes a flush worth its fixed costs. Postgres' CPU per event, with 4 000 accounts: 13.4 µs at 1 000 events
 * per flush, 11.4 at 2 000, 9.3 at 5 000, 8.0 at 10 000.
 */
const WORTH_A_FLUSH = 5_000;
/**
 * After this time without events the writer blocks on Redis until one arrives (`EventWait`), or pauses as long as possible if it
 * cannot. So an idle installation uses little CPU.
 */
const QUIET_AFTER_MS = 2_000;

/**
 * How long to wait before the next batch. Load is steady when the last two looks at the streams both found events. Then the pause
 * is as long as `WORTH_A_FLUSH` events take to arrive, within 100 to 800 ms. After `QUIET_AFTER_MS` without events it is 800 ms.
 * Otherwise it is 100 ms, so the first calls after a short silence are stored soon.
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

  /** @param events number of events found at `nowMs`; they count as added since the previous look */
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

/**
 * Shortest and longest pause after a failure; each failure in a row doubles it. Postgres may be back at any moment, and the
 * writer must notice that within two seconds.
 */
const MIN_BACKOFF_MS = 50;
const MAX_BACKOFF_MS = 1_000;

/** How long the writer pauses after `failures` failures in a row. */
export function backoffMs(failures: number): number {
  return Math.min(MIN_BACKOFF_MS * 2 ** Math.min(failures - 1, 10), MAX_BACKOFF_MS);
}
