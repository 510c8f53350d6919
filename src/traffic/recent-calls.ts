import type { RecentCalls } from './report.ts';

/** Length of the full window: long enough for a p99 of a few calls a second, short enough to mean 'now'. */
const WINDOW_SECONDS = 5;

type Copy = { readonly atMs: number; readonly counts: Float64Array };

/**
 * The latencies of the last seconds, from a histogram that only grows: its present counts minus a copy made seconds ago. Copies are
 * made only while somebody is watching.
 *
 * Tested by test/traffic/recent-calls.test.ts.
 */
export class RecentCallsWindow {
  readonly #histogram: Float64Array;
  #copies: Copy[] = [];

  constructor(histogram: Float64Array) {
    this.#histogram = histogram;
  }

  /** Starts anew: what was counted before is not recent. */
  start(nowMs: number): void {
    this.#copies = [{ atMs: nowMs, counts: this.#histogram.slice() }];
  }

  /** Call this once a second. */
  read(nowMs: number): RecentCalls | null {
    const [oldest] = this.#copies;
    if (oldest === undefined) return null;
    const { atMs, counts } = oldest;
    const buckets = Array.from(this.#histogram, (calls, bucket) => [bucket, calls - (counts[bucket] ?? 0)] as const);
    this.#copies.push({ atMs: nowMs, counts: this.#histogram.slice() });
    if (this.#copies.length > WINDOW_SECONDS) this.#copies.shift();
    const seconds = Math.round(nowMs - atMs) / 1_000;
    return seconds <= 0 ? null : { seconds, buckets: buckets.filter(([, calls]) => calls > 0) };
  }
}
