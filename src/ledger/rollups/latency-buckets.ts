/**
 * The buckets of a latency histogram: one count per bucket, in an array of `BUCKETS` numbers, or one row of
 * `service_latencies` for each bucket that is not empty. The writer, the SQL that fills this table, and everything that reads it use
 * this module.
 *
 * Each bucket's upper bound is 1.2 times its lower bound, so the geometric mean of both is at most 9.5 % from any latency in the
 * bucket. Stored rows have these buckets, so other bounds need another column.
 *
 * Tested by test/ledger/rollups/latency-buckets.test.ts.
 */
const RATIO = 1.2;
/** Bucket 0 has all latencies below this. */
const LOWEST_US = 1_000;
/** The last bucket has all latencies from 1 h 2 min on (1 ms times RATIO to the 83rd). */
const BOUNDS = 84;

/** The lower bounds of all buckets except the first, in microseconds, ascending. */
const BOUNDS_US: readonly number[] = Array.from({ length: BOUNDS }, (_, i) => Math.round(LOWEST_US * RATIO ** i));

export const BUCKETS = BOUNDS + 1;

/** The index of the bucket of a latency. Binary search: seven comparisons. */
export function bucketOf(latencyUs: number): number {
  let low = 0;
  let high = BOUNDS;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (latencyUs < (BOUNDS_US[middle] as number)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** A histogram for `countLatency`. */
export const noLatencies = (): Float64Array => new Float64Array(BUCKETS);

/** Counts one call. It takes about 10 ns. */
export function countLatency(histogram: Float64Array, latencyUs: number): void {
  const bucket = bucketOf(latencyUs);
  histogram[bucket] = (histogram[bucket] as number) + 1;
}

/**
 * Approximately the latency, in microseconds, that the share `q` of the counted calls did not exceed: the geometric mean of the
 * bounds of its bucket. For the first bucket that is half a millisecond, and for the last one its lower bound. Null if nothing is
 * counted.
 *
 * @param q from 0 to 1
 */
export function quantile(histogram: readonly number[], q: number): number | null {
  const total = histogram.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  // The rank of the call, counted from 1. Float error must not raise 0.95 × 20 to the 20th call.
  const rank = Math.max(1, Math.ceil(q * total - 1e-9));
  let seen = 0;
  const bucket = histogram.findIndex((count) => {
    seen += count;
    return seen >= rank;
  });
  return middleOf(bucket === -1 ? BUCKETS - 1 : bucket);
}

function middleOf(bucket: number): number {
  if (bucket === 0) return LOWEST_US / 2;
  const lower = BOUNDS_US[bucket - 1] as number;
  const upper = BOUNDS_US[bucket];
  return upper === undefined ? lower : Math.round(Math.sqrt(lower * upper));
}
