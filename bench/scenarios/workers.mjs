// @ts-check
import { proxyCpu } from '../report/summary.mjs';
import { comparison } from './small-calls.mjs';

export const question =
  'What do two workers on one port gain over one, and what does it cost to have the writer in the same process?';

export const defaults = { connections: [64], seconds: 4, rounds: 2 };

const peerNames = /** @type {const} */ (['tollgate', 'tollgate-two', 'tollgate-all']);
const twoVsOne = /** @type {const} */ ({ of: { peer: 'tollgate-two' }, against: { peer: 'tollgate' } });
const noBar = { bar: null, stretch: null };

/** @type {import('../report/bars.mjs').Bar[]} */
export const bars = [
  {
    what: 'calls/s of two workers vs one',
    unit: '',
    is: 'at least',
    ...twoVsOne,
    ...noBar,
    metric: ({ callsPerSecond }) => callsPerSecond,
  },
  {
    what: 'CPU per call of two workers vs one',
    unit: '',
    is: 'at most',
    ...twoVsOne,
    ...noBar,
    metric: proxyCpu,
  },
];

// With fewer processors, two workers have to share them with the service, Redis, the load generator, the writer and Postgres.
const busyProcesses = 6;

export const { estimateSeconds, run } = comparison(peerNames, bars, ({ processors }) => {
  const notes = ['CPU and memory of two workers are those of both workers and their supervisor'];
  if (processors < busyProcesses) {
    notes.push(
      `${processors} processors for two workers, the service, Redis, the load generator, the writer and Postgres: calls/s ` +
        'of two workers cannot grow here; CPU per call shows what running two costs',
    );
  }
  return notes;
});
