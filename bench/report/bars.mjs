// @ts-check
// Bars are limits that the project promises to keep. Each is data beside the scenario that measures it. This file compares
// them with what was measured.

import { connectionsLabel, faultsOf, groupBy, median } from './summary.mjs';

/**
 * @typedef {import('../measure/sample.mjs').Sample} Sample
 *
 * @typedef {object} Promised
 * @property {string} what
 * @property {string} [loads] the loads that it is about, if not all
 * @property {string} unit '' for a ratio
 * @property {'at most' | 'at least'} is
 * @property {number | null} bar null: measured and shown, but nothing is promised
 * @property {number | null} stretch a goal beyond the bar
 *
 * @typedef {object} Side
 * @property {string} peer
 * @property {string} [variant] default: the load without a name
 *
 * @typedef {Promised & {
 *   of: Side,
 *   against: Side | null,
 *   metric: (sample: any) => number | null,
 *   where?: (connections: number) => boolean,
 * }} Bar is about the metric of one side, or about its ratio to the metric of the other side in the same round. `where` selects the
 *   numbers of connections that `loads` describes in words
 *
 * @typedef {Promised & {
 *   label: string,
 *   measured: number | null,
 *   lowest: number | null,
 *   highest: number | null,
 *   isValid: boolean,
 * }} BarResult a bar with what was measured. `measured` is the median of the rounds, or null if it was not measured in this run.
 *   `isValid` is false if a row that it was computed from is not valid
 *
 * @typedef {'stretch met' | 'met' | 'MISSED' | 'INVALID' | 'not measured' | ''} Verdict
 */

/**
 * @param {readonly Sample[]} samples
 * @param {readonly Bar[]} bars
 * @returns {BarResult[]} for every bar one result for each number of connections that both sides have, or one 'not measured'
 */
export function evaluate(samples, bars) {
  return bars.flatMap((bar) => {
    const { where = () => true } = bar;
    const relevant = samples.filter(({ connections }) => where(connections));
    const found = groupBy(relevant, ({ connections }) => String(connections)).flatMap((group) =>
      evaluateOne(group, bar),
    );
    return found.length > 0 || bar.bar === null ? found : [notMeasured(bar)];
  });
}

/** @param {readonly [Sample, ...Sample[]]} group samples with one number of connections @param {Bar} bar @returns {BarResult[]} */
function evaluateOne(group, bar) {
  const { of, against, metric } = bar;
  const samplesOf = (/** @type {Side} */ side) =>
    group.filter(({ peer, variant }) => peer === side.peer && variant === (side.variant ?? ''));
  const ours = samplesOf(of);
  const theirs = against === null ? [] : samplesOf(against);
  const values = ours.flatMap((sample) => {
    const value = metric(sample);
    if (against === null || value === null) return value === null ? [] : [value];
    const other = theirs.find(({ round }) => round === sample.round);
    const base = other === undefined ? null : metric(other);
    return base === null || base === 0 ? [] : [value / base];
  });
  if (values.length === 0) return [];
  const isValid = faultsOf(ours).length === 0 && faultsOf(theirs).length === 0;
  return [found(bar, connectionsLabel(group[0].connections), values, isValid)];
}

/**
 * @param {Promised} promised
 * @param {string} label of the load
 * @param {readonly number[]} values one for each round
 * @param {boolean} isValid
 * @returns {BarResult}
 */
export function found({ what, unit, is, bar, stretch }, label, values, isValid) {
  const span = { measured: median(values), lowest: Math.min(...values), highest: Math.max(...values) };
  return { what, unit, is, bar, stretch, label, ...span, isValid };
}

/** @param {Promised} promised @returns {BarResult} */
const notMeasured = ({ what, loads = '', unit, is, bar, stretch }) => ({
  what,
  unit,
  is,
  bar,
  stretch,
  label: loads,
  measured: null,
  lowest: null,
  highest: null,
  isValid: true,
});

/** @param {BarResult} result @returns {Verdict} */
export function verdictOf({ measured, is, bar, stretch, isValid }) {
  if (measured === null) return 'not measured';
  if (!isValid) return 'INVALID';
  if (bar === null) return '';
  const reaches = (/** @type {number} */ limit) => (is === 'at most' ? measured <= limit : measured >= limit);
  if (stretch !== null && reaches(stretch)) return 'stretch met';
  return reaches(bar) ? 'met' : 'MISSED';
}

/**
 * How much of what the bar allows was used. 1 is the bar itself; less is better, for 'at most' and for 'at least'.
 * @param {BarResult} result
 * @param {number} value the measured value, or the stretch goal of the same bar
 */
export function usedShare({ is, bar }, value) {
  if (bar === null) return Number.NaN;
  return is === 'at most' ? value / bar : bar / value;
}

/** The part of a bar that can be written as JSON. @param {Promised} bar @returns {Promised} */
export const promisedOf = ({ what, loads, unit, is, bar, stretch }) => ({
  what,
  unit,
  is,
  bar,
  stretch,
  ...(loads === undefined ? {} : { loads }),
});

/** @param {Promised} bar */
export const barName = ({ what, loads }) => [what, loads].filter(Boolean).join(', ');

/**
 * All bars of a run, with their results. The bars of a scenario that failed count as not measured.
 * @param {readonly { findings: { bars: readonly BarResult[] } | null, bars: readonly Promised[] }[]} results
 * @returns {BarResult[]}
 */
export const promisedBars = (results) =>
  results.flatMap(({ findings, bars }) => findings?.bars ?? bars.map(notMeasured)).filter(({ bar }) => bar !== null);
