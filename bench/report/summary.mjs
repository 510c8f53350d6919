// @ts-check
// Makes the rows of tables from samples.

import { countErrors } from '../measure/sample.mjs';

/**
 * @typedef {import('../measure/sample.mjs').Sample} Sample
 *
 * @typedef {object} Column
 * @property {string} key
 * @property {string} title with the unit
 * @property {number} digits
 * @property {boolean} [hasRange] the lowest and the highest round stand beside the median
 *
 * @typedef {object} Row
 * @property {string} label
 * @property {string} peer
 * @property {Record<string, number | null>} values medians of the rounds
 * @property {Record<string, [number, number]>} ranges lowest and highest round
 * @property {string[]} faults why the row is not valid; empty if it is valid
 */

/** @type {Column[]} */
export const callColumns = [
  { key: 'callsPerSecond', title: 'calls/s', digits: 0 },
  { key: 'proxyMicros', title: 'CPU µs/call', digits: 1, hasRange: true },
  { key: 'redisMicros', title: 'Redis µs', digits: 1 },
  { key: 'replicasMicros', title: 'replicas µs', digits: 1 },
  { key: 'trips', title: 'trips', digits: 2 },
  { key: 'writerMicros', title: 'writer µs', digits: 1 },
  { key: 'postgresMicros', title: 'Postgres µs', digits: 1 },
  { key: 'wholeMicros', title: 'whole call µs', digits: 1, hasRange: true },
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
/**
 * All that the peer uses for a call, with its stores: what an operator pays for.
 * @param {Sample} sample
 * @returns {number | null} null for a peer without a proxy
 */
export const wholeCpu = ({ cpuMicros }) =>
  cpuMicros.proxy === null
    ? null
    : Object.values(cpuMicros).reduce((/** @type {number} */ sum, part) => sum + (part ?? 0), 0);
/** @param {Sample} sample */
export const p99 = ({ latency }) => latency.p99;

/** @param {Sample} sample @returns {Record<string, number | null>} */
const callValuesOf = (sample) => ({
  callsPerSecond: sample.callsPerSecond,
  proxyMicros: sample.cpuMicros.proxy,
  redisMicros: sample.cpuMicros.redis,
  replicasMicros: sample.cpuMicros.replicas,
  trips: sample.tripsPerCall,
  writerMicros: sample.cpuMicros.writer,
  postgresMicros: sample.cpuMicros.postgres,
  wholeMicros: wholeCpu(sample),
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

/**
 * One row for each label and peer, with the medians of the rounds and their ranges. Errors are added up.
 * @template {Sample} S
 * @param {readonly S[]} samples
 * @param {(sample: S) => Record<string, number | null>} [valuesOf]
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
    /** @type {Row['ranges']} */
    const ranges = {};
    for (const key of Object.keys(all[0] ?? {})) {
      const numbers = all.map((one) => one[key] ?? null).filter((value) => value !== null);
      values[key] = numbers.length === 0 ? null : median(numbers);
      if (numbers.length > 0) ranges[key] = [Math.min(...numbers), Math.max(...numbers)];
    }
    values.errors = group.reduce((sum, { errors }) => sum + countErrors(errors), 0);
    rows.push({ label, peer, values, ranges, faults: faultsOf(group) });
  }
  return rows;
}

// In a flood of 429 a call gets through whenever a token comes back. If more than this share gets through, it is no flood of refusals.
const tolerableShare = 0.001;

/** Why these samples are not valid; empty if they are. @param {readonly Sample[]} group */
export function faultsOf(group) {
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
 * @returns {[T, ...T[]][]} the groups, in the order of their first items
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

/** @param {number} connections */
export const connectionsLabel = (connections) => `${connections} connection${connections === 1 ? '' : 's'}`;

/** @param {Pick<Sample, 'variant' | 'connections'>} sample */
const labelOf = ({ variant, connections }) => [variant, connectionsLabel(connections)].filter(Boolean).join(', ');
