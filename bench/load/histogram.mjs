// @ts-check

// 64 buckets for each power of two: a percentile is off by at most 1/64 = 1.6 %.
const bucketBits = 6;
const bucketsPerPower = 1 << bucketBits;
const powers = 26;

/**
 * Counts of latencies in microseconds. Below 64 µs exact, above in buckets of 1.6 % width, up to about 18 hours.
 *
 *   value 0 … 63 │ 64 65 … 127 │ 128 130 … 254 │ 256 260 …
 *   width      1 │           1 │             2 │         4
 */
export class Histogram {
  #counts = new Float64Array(bucketsPerPower * (powers + 1));
  #total = 0;
  #max = 0;

  /** @param {number} micros */
  record(micros) {
    this.#counts[bucketOf(micros)] = (this.#counts[bucketOf(micros)] ?? 0) + 1;
    this.#total += 1;
    if (micros > this.#max) this.#max = micros;
  }

  get total() {
    return this.#total;
  }

  /**
   * The smallest recorded value that this share of all values does not exceed (to the width of its bucket).
   * @param {number} share 0 to 1
   */
  percentile(share) {
    const wanted = Math.max(1, Math.ceil(share * this.#total));
    let seen = 0;
    for (let bucket = 0; bucket < this.#counts.length; bucket += 1) {
      seen += this.#counts[bucket] ?? 0;
      if (seen >= wanted) return Math.min(highestIn(bucket), this.#max);
    }
    return 0;
  }

  /** @returns {import('./drive.mjs').Latency} */
  summary() {
    const { percentile } = this;
    const at = percentile.bind(this);
    return { p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999), max: this.#max };
  }
}

/** @param {number} micros */
function bucketOf(micros) {
  const value = Math.max(0, Math.round(micros));
  if (value < bucketsPerPower) return value;
  const power = Math.min(Math.floor(Math.log2(value)) - bucketBits, powers - 1);
  return Math.min((power + 1) * bucketsPerPower + Math.floor(value / 2 ** power) - bucketsPerPower, lastBucket);
}

const lastBucket = bucketsPerPower * (powers + 1) - 1;

/** @param {number} bucket */
function highestIn(bucket) {
  if (bucket < bucketsPerPower) return bucket;
  const power = Math.floor(bucket / bucketsPerPower) - 1;
  return ((bucket % bucketsPerPower) + bucketsPerPower + 1) * 2 ** power - 1;
}
