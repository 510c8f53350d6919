import { withNextTerms } from './terms.js';
/** Longest time that a timer of Node takes. */
const MAX_TIMER_MS = 2_147_483_647;
/**
 * Gives announced terms their effect at the time that Postgres stated, without a message at that moment: every gateway has both terms
 * and the time. The time of Postgres is taken from its last answer (twice a minute) and goes on by this process's own clock. An answer
 * is read after it was given, so a gateway is late by as much as the answer took, never early: until then a call costs less.
 *
 * A call asks `current`, which compares the time. What is shown and searched changes by a timer, which may be late by a turn of the
 * event loop.
 *
 * Tested by test/catalog/notice/announcements.test.ts and test/integration/price-notice.test.ts.
 */
export class Announcements {
    #begin;
    #clock;
    /** By id. A listing that has changed since is replaced here, or found to have changed when its time comes. */
    #waiting = new Map();
    #timer;
    /** The time for which the timer is set. */
    #timerMs = Number.POSITIVE_INFINITY;
    /** Time of Postgres minus that of `#clock`, in ms; until the first answer the clocks are taken to agree. */
    #offsetMs;
    /**
     * @param begin  takes a listing whose announced terms count from now on
     * @param clock  milliseconds that only grow
     */
    constructor(begin, clock = () => performance.now()) {
        this.#begin = begin;
        this.#clock = clock;
        this.#offsetMs = Date.now() - clock();
    }
    /** @param nowMs time of Postgres, read a moment ago */
    setTime(nowMs) {
        this.#offsetMs = nowMs - this.#clock();
        this.#beginDue();
    }
    /** The listing with the terms that count now. */
    current(listing) {
        if (!this.#isDue(listing))
            return listing;
        const begun = withNextTerms(listing);
        this.#waiting.delete(listing.id);
        this.#begin(begun);
        return begun;
    }
    /** As `current`, for a listing that was just read; waits for its time if it has announced terms. */
    watched(listing) {
        const { id, next, updatedAtMicros } = listing;
        // Readings of a row may arrive out of order.
        const isNewest = (this.#waiting.get(id)?.updatedAtMicros ?? 0) <= updatedAtMicros;
        if (this.#isDue(listing))
            return withNextTerms(listing);
        if (isNewest && next === null)
            this.#waiting.delete(id);
        else if (isNewest && next !== null) {
            this.#waiting.set(id, listing);
            if (next.fromMs < this.#timerMs)
                this.#setTimer(next.fromMs);
        }
        return listing;
    }
    stop() {
        clearTimeout(this.#timer);
        this.#waiting.clear();
    }
    #isDue({ next }) {
        return next !== null && this.#clock() + this.#offsetMs >= next.fromMs;
    }
    #beginDue() {
        let firstMs = Number.POSITIVE_INFINITY;
        for (const listing of this.#waiting.values()) {
            if (this.current(listing) === listing)
                firstMs = Math.min(firstMs, listing.next?.fromMs ?? firstMs);
        }
        this.#setTimer(firstMs);
    }
    /** @param fromMs by the clock of Postgres */
    #setTimer(fromMs) {
        clearTimeout(this.#timer);
        this.#timerMs = fromMs;
        if (fromMs === Number.POSITIVE_INFINITY)
            return;
        const ms = Math.ceil(fromMs - this.#clock() - this.#offsetMs);
        this.#timer = setTimeout(() => this.#beginDue(), Math.min(Math.max(ms, 1), MAX_TIMER_MS)).unref();
    }
}
//# sourceMappingURL=announcements.js.map