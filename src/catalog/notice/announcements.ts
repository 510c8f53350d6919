import type { Listing } from '../listing.ts';
import { withNextTerms } from './terms.ts';

/** Longest delay that a timer of Node supports. */
const MAX_TIMER_MS = 2_147_483_647;

/**
 * Puts announced terms into effect at the time that Postgres stated, without a message at that moment: every gateway has both terms
 * and the time. The time of Postgres is taken from its last answer (twice a minute) and continued by this process's own clock. The
 * answer is a little old when it is read, so a gateway may be late by the duration of the answer, but is never early: until then a
 * call costs less.
 *
 * A call asks `current`, which compares the time. Pages and searches change by a timer, which may be late by a turn of the event
 * loop.
 *
 * Tested by test/catalog/notice/announcements.test.ts and test/integration/price-notice.test.ts.
 */
export class Announcements {
  readonly #begin: (listing: Listing) => void;
  readonly #clock: () => number;
  /** By id. If a listing has changed since, it is replaced here, or the change is noticed when its time comes. */
  readonly #waiting = new Map<string, Listing>();
  #timer: NodeJS.Timeout | undefined;
  /** The time for which the timer is set. */
  #timerMs = Number.POSITIVE_INFINITY;
  /** Time of Postgres minus that of `#clock`, in ms; until the first answer the clocks are assumed to agree. */
  #offsetMs: number;

  /**
   * @param begin  takes a listing whose announced terms count from now on
   * @param clock  milliseconds that only grow
   */
  constructor(begin: (listing: Listing) => void, clock: () => number = () => performance.now()) {
    this.#begin = begin;
    this.#clock = clock;
    this.#offsetMs = Date.now() - clock();
  }

  /** @param nowMs time of Postgres, just read */
  setTime(nowMs: number): void {
    this.#offsetMs = nowMs - this.#clock();
    this.#beginDue();
  }

  /** The listing with the terms that count now. */
  current(listing: Listing): Listing {
    if (!this.#isDue(listing)) return listing;
    const begun = withNextTerms(listing);
    this.#waiting.delete(listing.id);
    this.#begin(begun);
    return begun;
  }

  /** As `current`, for a listing that was just read. If it has announced terms, their time is scheduled. */
  watched(listing: Listing): Listing {
    const { id, next, updatedAtMicros } = listing;
    // Readings of a row may arrive out of order.
    const isNewest = (this.#waiting.get(id)?.updatedAtMicros ?? 0) <= updatedAtMicros;
    if (this.#isDue(listing)) return withNextTerms(listing);
    if (isNewest && next === null) this.#waiting.delete(id);
    else if (isNewest && next !== null) {
      this.#waiting.set(id, listing);
      if (next.fromMs < this.#timerMs) this.#setTimer(next.fromMs);
    }
    return listing;
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#waiting.clear();
  }

  #isDue({ next }: Listing): boolean {
    return next !== null && this.#clock() + this.#offsetMs >= next.fromMs;
  }

  #beginDue(): void {
    let firstMs = Number.POSITIVE_INFINITY;
    for (const listing of this.#waiting.values()) {
      if (this.current(listing) === listing) firstMs = Math.min(firstMs, listing.next?.fromMs ?? firstMs);
    }
    this.#setTimer(firstMs);
  }

  /** @param fromMs by the clock of Postgres */
  #setTimer(fromMs: number): void {
    clearTimeout(this.#timer);
    this.#timerMs = fromMs;
    if (fromMs === Number.POSITIVE_INFINITY) return;
    const ms = Math.ceil(fromMs - this.#clock() - this.#offsetMs);
    this.#timer = setTimeout(() => this.#beginDue(), Math.min(Math.max(ms, 1), MAX_TIMER_MS)).unref();
  }
}
