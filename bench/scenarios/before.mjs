// @ts-check
import { proxyCpu, redisCpu, wholeCpu } from '../report/summary.mjs';
import { comparison } from './small-calls.mjs';

export const question =
  'What does one small metered call cost now, compared with another commit, whose built checkout BENCH_BEFORE names?';

export const defaults = { connections: [64], seconds: 8, rounds: 5 };

const now = { peer: 'tollgate' };
const before = { peer: 'tollgate-before' };

/** @typedef {import('../measure/sample.mjs').Sample} Sample */

/** @type {readonly [what: string, metric: (sample: Sample) => number | null][]} */
const parts = [
  ['gateway', proxyCpu],
  ['Redis', redisCpu],
  ['writer', ({ cpuMicros }) => cpuMicros.writer],
  ['Postgres', ({ cpuMicros }) => cpuMicros.postgres],
  ['the whole call', wholeCpu],
];

/** @type {import('../report/bars.mjs').Bar[]} */
export const bars = parts.map(([part, metric]) => ({
  what: `CPU of ${part}, now vs before`,
  unit: '',
  is: 'at most',
  of: now,
  against: before,
  metric,
  bar: null,
  stretch: null,
}));

export const { estimateSeconds, run } = comparison(['tollgate-before', 'tollgate'], bars);
