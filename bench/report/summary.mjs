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
 * @typedef {object} Side
 * @property {string} peer
 * @property {string} [variant] default: the one without a name
 *
 * @typedef {object} Bar what a ratio of two measurements of the same round shall be at most
 * @property {string} what
 * @property {Side} of
 * @property {Side} against
 * @property {(sample: Sample) => number | null} metric
 * @property {number} bar
 * @property {number} stretch
 * @property {(connections: number) => boolean} [where] which loads it is about; default all
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
  { key: 'trips', title: 'trips', digits: 2 },
  { key: 'writerMicros', title: 'writer µs', digits: 1 },
  { key: 'postgresMicros', title: 'Postgres µs', digits: 1 },
  { key: 'p50', title: 'p50 ms', digits: 2 },
  { key: 'p99', title: 'p99 ms', digits: 2 },
  { key: 'p999', title: 'p99.9 ms', digits: 2 },
  { key: 'errors', title: 'errors', digits: 0 },
  { key: 'rssMiB', title: 'RSS MiB', digits: 0 },
];

/** @param {Sample} sample */
export const proxyCpu = ({ cpuMicros }) => cpuMicros.proxy;
/** @param {Sample} sample */
export const redisCpu = ({ cpuMicros }) => cpuMicros.redis;

/** @param {Sample} sample @returns {Record<string, number | null>} */
const callValuesOf = (sample) => ({
  callsPerSecond: sample.callsPerSecond,
  proxyMicros: sample.cpuMicros.proxy,
  redisMicros: sample.cpuMicros.redis,
  trips: sample.tripsPerCall,
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

/**
 * One row for each label and peer: medians over the rounds, but the sum of errors.
 * @param {readonly Sample[]} samples
 * @param {(sample: Sample) => Record<string, number | null>} [valuesOf]
 */
export function toRows(samples, valuesOf = callValuesOf) {
  /** @type {Row[]} */
  const rows = [];
  for (const group of groupBy(samples, (sample) => `${labelOf(sample)}\n${sample.peer}`)) {
    const [first] = group;
    const { peer } = first;
    const label = labelOf(first);
    const all = group.map(valuesOf);
    /** @type {Row['values']} */
    const values = {};
    for (const key of Object.keys(all[0] ?? {})) values[key] = medianOrNull(all.map((one) => one[key] ?? null));
    values.errors = group.reduce((sum, { errors }) => sum + countErrors(errors), 0);
    rows.push({ label, peer, values, faults: faultsOf(group) });
  }
  return rows;
}

// A flood of 429 lets a call through when a token comes back; more than this is another experiment.
const tolerableShare = 0.001;

/** @param {readonly Sample[]} group */
function faultsOf(group) {
  const faults = [];
  const sum = (/** @type {keyof Sample['errors']} */ key) =>
    group.reduce((total, { errors }) => total + errors[key], 0);
  if (sum('status') > 0) faults.push(`${sum('status')} answers had another status than expected`);
  const tolerated = group.reduce((total, sample) => total + sample.tolerated, 0);
  const calls = group.reduce((total, sample) => total + sample.calls, 0);
  if (tolerated > calls * tolerableShare) faults.push(`${tolerated} of ${calls} answers had the tolerated status`);
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
 * Ratios of two sides, round by round, for every number of connections both have.
 * @param {readonly Sample[]} samples
 * @param {readonly Bar[]} bars
 * @returns {Comparison[]}
 */
export function compare(samples, bars) {
  return bars.flatMap((bar) => {
    const { where = () => true } = bar;
    const relevant = samples.filter(({ connections }) => where(connections));
    return groupBy(relevant, ({ connections }) => String(connections)).flatMap((group) => compareGroup(group, bar));
  });
}

/** @param {readonly [Sample, ...Sample[]]} group of one number of connections @param {Bar} bar @returns {Comparison[]} */
function compareGroup(group, { what, of, against, metric, bar, stretch }) {
  const isSide = (/** @type {Side} */ side) => (/** @type {Sample} */ sample) =>
    sample.peer === side.peer && sample.variant === (side.variant ?? '');
  const [ours, theirs] = [group.filter(isSide(of)), group.filter(isSide(against))];
  const ratios = ours.flatMap((sample) => {
    const other = theirs.find(({ round }) => round === sample.round);
    const [a, b] = [metric(sample), other === undefined ? null : metric(other)];
    return a === null || b === null || b === 0 ? [] : [a / b];
  });
  if (ratios.length === 0) return [];
  const isValid = faultsOf(ours).length === 0 && faultsOf(theirs).length === 0;
  const span = { lowest: Math.min(...ratios), highest: Math.max(...ratios) };
  return [
    { what, label: connectionsLabel(group[0].connections), ratio: median(ratios), ...span, bar, stretch, isValid },
  ];
}

/**
 * A bar on something that is not compared with a peer.
 * @param {string} what
 * @param {readonly Sample[]} samples it rests on
 * @param {number} ratio of what was measured to what is allowed
 * @param {number} bar
 * @param {number} stretch
 * @returns {Comparison}
 */
export function atMost(what, samples, ratio, bar, stretch) {
  const label = connectionsLabel(samples[0]?.connections ?? 0);
  return { what, label, ratio, lowest: ratio, highest: ratio, bar, stretch, isValid: faultsOf(samples).length === 0 };
}

/** @param {number} connections */
const connectionsLabel = (connections) => `${connections} connection${connections === 1 ? '' : 's'}`;

/** @param {Pick<Sample, 'variant' | 'connections'>} sample */
const labelOf = ({ variant, connections }) => [variant, connectionsLabel(connections)].filter(Boolean).join(', ');
