// @ts-check
// Latencies are counted in whole microseconds by Node's HDR histogram.

import { createHistogram } from 'node:perf_hooks';

/** @typedef {import('node:perf_hooks').RecordableHistogram} Histogram */

// One hour. No run is that long; a longer latency is counted as one hour, because Node would leave it out of `count`.
const highestMicros = 3_600_000_000;

/**
 * Three significant figures: a percentile, and the maximum, is the recorded value or up to 0.1 % more.
 * Results up to 2026-11-22 come from buckets of 1.6 %, so their percentiles may be up to 1.6 % too high (their maximum was exact).
 * @returns {Histogram}
 */
export const newHistogram = () => createHistogram({ lowest: 1, highest: highestMicros, figures: 3 });

/** @param {Histogram} histogram @param {number} micros fractions are rounded; less than 1 counts as 1, Node's lowest value */
export function recordMicros(histogram, micros) {
  histogram.record(Math.min(Math.max(1, Math.round(micros)), highestMicros));
}

/** @param {Histogram} histogram @returns {import('./drive.mjs').Latency} */
export function summaryOf(histogram) {
  const at = (/** @type {number} */ percent) => histogram.percentile(percent);
  return { p50: at(50), p90: at(90), p99: at(99), p999: at(99.9), max: histogram.max };
}
