// @ts-check
// From samples to rows and ratios.

import { countErrors } from '../measure/sample.mjs';

/**
 * @typedef {import('../measure/sample.mjs').Sample} Sample
 *
 * @typedef {object} Column
 * @property {string} key
 * @property {string} title with the unit
 * @property {number} digits
 *
 * @typedef {object} Row
 * @property {string} label
 * @property {string} peer
 * @property {Record<string, number | null>} values
 * @property {string[]} faults why the row is not to be believed; empty: it is valid
 *
 * @typedef {object} Bar
 * @property {string} what
 * @property {string} of peer
 * @property {string} against peer
 * @property {(sample: Sample) => number | null} metric
 * @property {number} bar the ratio may be this large
 * @property {number} stretch
 * @property {(label: string) => boolean} [where] which rows it is about; default all
 *
 * @typedef {object} Comparison
 * @property {string} what
 * @property {string} label
 * @property {number} ratio
 * @property {number} lowest of the rounds
 * @property {number} highest
 * @property {number} bar
 * @property {number} stretch
 * @property {boolean} isValid false when a row it rests on is not valid
 */

/** @type {Column[]} */
export const callColumns = [
  { key: 'callsPerSecond', title: 'calls/s', digits: 0 },
  { key: 'proxyMicros', title: 'CPU µs/call', digits: 1 },
  { key: 'redisMicros', title: 'Redis µs', digits: 1 },
  { key: 'writerMicros', title: 'writer µs', digits: 1 },
  { key: 'postgresMicros', title: 'Postgres µs', digits: 1 },
  { key: 'p50', title: 'p50 ms', digits: 2 },
  { key: 'p99', title: 'p99 ms', digits: 2 },
  { key: 'p999', title: 'p99.9 ms', digits: 2 },
  { key: 'errors', title: 'errors', digits: 0 },
  { key: 'rssMiB', title: 'RSS MiB', digits: 0 },
];

/** @param {Sample} sample @returns {Record<string, number | null>} */
const valuesOf = (sample) => ({
  callsPerSecond: sample.callsPerSecond,
  proxyMicros: sample.cpuMicros.proxy,
  redisMicros: sample.cpuMicros.redis,
  writerMicros: sample.cpuMicros.writer,
  postgresMicros: sample.cpuMicros.postgres,
  p50: sample.latency.p50 / 1000,
  p99: sample.latency.p99 / 1000,
  p999: sample.latency.p999 / 1000,
  errors: countErrors(sample.errors),
  rssMiB: sample.rssBytes === 0 ? null : sample.rssBytes / 2 ** 20,
});

/** @param {readonly number[]} values */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

/** @param {readonly (number | null)[]} values */
function medianOrNull(values) {
  const numbers = values.filter((value) => value !== null);
  return numbers.length === 0 ? null : median(numbers);
}

/** One row for each label and peer: medians over the rounds, but the sum of errors. @param {readonly Sample[]} samples */
export function toRows(samples) {
  /** @type {Row[]} */
  const rows = [];
  for (const group of groupBy(samples, ({ label, peer }) => `${label}\n${peer}`)) {
    const [{ label, peer }] = group;
    const all = group.map(valuesOf);
    /** @type {Row['values']} */
    const values = {};
    for (const key of Object.keys(all[0] ?? {})) values[key] = medianOrNull(all.map((one) => one[key] ?? null));
    values.errors = group.reduce((sum, { errors }) => sum + countErrors(errors), 0);
    rows.push({ label, peer, values, faults: faultsOf(group) });
  }
  return rows;
}

/** @param {readonly Sample[]} group */
function faultsOf(group) {
  const faults = [];
  const sum = (/** @type {keyof Sample['errors']} */ key) =>
    group.reduce((total, { errors }) => total + errors[key], 0);
  if (sum('status') > 0) faults.push(`${sum('status')} answers had another status than expected`);
  const lost = sum('connect') + sum('socket');
  if (lost > 0) faults.push(`${lost} connections failed`);
  if (sum('timeout') > 0) faults.push(`${sum('timeout')} calls were not answered in time`);
  if (group.some(({ calls }) => calls === 0)) faults.push('no call was completed');
  return faults;
}

/**
 * @template T
 * @param {readonly T[]} items
 * @param {(item: T) => string} keyOf
 * @returns {[T, ...T[]][]} groups in the order of their first items
 */
export function groupBy(items, keyOf) {
  /** @type {Map<string, [T, ...T[]]>} */
  const groups = new Map();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return [...groups.values()];
}

/**
 * Ratios of two peers, round by round, for every label both have.
 * @param {readonly Sample[]} samples
 * @param {readonly Bar[]} bars
 * @returns {Comparison[]}
 */
export function compare(samples, bars) {
  return bars.flatMap(({ what, of, against, metric, bar, stretch, where = () => true }) =>
    groupBy(
      samples.filter(({ label }) => where(label)),
      ({ label }) => label,
    ).flatMap((group) => {
      const ours = group.filter(({ peer }) => peer === of);
      const theirs = group.filter(({ peer }) => peer === against);
      const ratios = ours.flatMap((sample) => {
        const other = theirs.find(({ round }) => round === sample.round);
        const [a, b] = [metric(sample), other === undefined ? null : metric(other)];
        return a === null || b === null || b === 0 ? [] : [a / b];
      });
      if (ratios.length === 0) return [];
      const isValid = [...ours, ...theirs].every((sample) => countErrors(sample.errors) === 0);
      const span = { lowest: Math.min(...ratios), highest: Math.max(...ratios) };
      return [{ what, label: group[0].label, ratio: median(ratios), ...span, bar, stretch, isValid }];
    }),
  );
}
