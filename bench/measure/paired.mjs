// @ts-check
// Statistics of a thing that is switched on and off in turn. Tested by test/bench/paired.test.ts.

import { median } from '../report/summary.mjs';

/**
 * The ratio of each block with the thing to its neighbour without it. Neighbours share what the machine does in these seconds.
 * @param {readonly { isOn: boolean, value: number }[]} blocks in the order of time
 */
export function pairedRatios(blocks) {
  /** @type {number[]} */
  const ratios = [];
  for (let i = 0; i + 1 < blocks.length; ) {
    const pair = blocks.slice(i, i + 2);
    const [on, off] = [pair.find(({ isOn }) => isOn), pair.find(({ isOn }) => !isOn)];
    if (on !== undefined && off !== undefined) ratios.push(on.value / off.value);
    // Two alike follow each other where a block is missing: the second may have a neighbour of the other kind.
    i += on === undefined || off === undefined ? 1 : 2;
  }
  return ratios;
}

/**
 * The median, and the interval that has the true one with a probability of 95 %, whatever the distribution: of n values, the ranks
 * n/2 ± 0.98 √n (the binomial distribution, approximated; from ten values on).
 * @param {readonly number[]} values
 */
export function medianWithInterval(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const reach = 0.98 * Math.sqrt(sorted.length);
  const at = (/** @type {number} */ rank) => sorted[Math.min(Math.max(rank, 1), sorted.length) - 1] ?? Number.NaN;
  const [low, high] = [at(Math.floor(sorted.length / 2 - reach)), at(Math.ceil(sorted.length / 2 + 1 + reach))];
  return { median: median(sorted), low, high };
}
