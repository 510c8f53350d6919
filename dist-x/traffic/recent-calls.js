/** Length of the window, when it is full: long enough for a p99 of a few calls a second, short enough to be called now. */
const WINDOW_SECONDS = 5;
/**
 * The latencies of the last seconds, from a histogram that only grows: what it has now, less a copy that was made seconds ago. Copies
 * are made while somebody looks only.
 *
 * Tested by test/traffic/recent-calls.test.ts.
 */
export class RecentCallsWindow {
    #histogram;
    #copies = [];
    constructor(histogram) {
        this.#histogram = histogram;
    }
    /** Begins again: what was counted before is not recent. */
    start(nowMs) {
        this.#copies = [{ atMs: nowMs, counts: this.#histogram.slice() }];
    }
    /** To be called once a second. */
    read(nowMs) {
        const [oldest] = this.#copies;
        if (oldest === undefined)
            return null;
        const { atMs, counts } = oldest;
        const buckets = Array.from(this.#histogram, (calls, bucket) => [bucket, calls - (counts[bucket] ?? 0)]);
        this.#copies.push({ atMs: nowMs, counts: this.#histogram.slice() });
        if (this.#copies.length > WINDOW_SECONDS)
            this.#copies.shift();
        const seconds = Math.round(nowMs - atMs) / 1_000;
        return seconds <= 0 ? null : { seconds, buckets: buckets.filter(([, calls]) => calls > 0) };
    }
}
//# sourceMappingURL=recent-calls.js.map