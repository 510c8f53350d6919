// @ts-check
import { alternate, alternateSeconds, loadSeconds } from '../measure/rounds.mjs';
import { evaluate } from '../report/bars.mjs';
import { callColumns, proxyCpu, toRows } from '../report/summary.mjs';
import { fundedKeys } from '../stage/keys.mjs';

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

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = (options) => alternateSeconds(options, peerNames.length);

// With fewer processors, two workers have to share them with the service, Redis, the load generator, the writer and Postgres.
const busyProcesses = 6;

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const { options, processors } = bench;
  const main = fundedKeys(loadSeconds(options, options.connections.length));
  const peers = await bench.peers(peerNames, { keySets: { main } });
  const contestants = peers.map((peer) => ({ peer, load: {} }));
  const samples = await alternate(bench, { contestants, connections: options.connections });
  const notes = ['CPU and memory of two workers are those of both workers and their supervisor'];
  if (processors < busyProcesses) {
    notes.push(
      `${processors} processors for two workers, the service, Redis, the load generator, the writer and Postgres: calls/s ` +
        'of two workers cannot grow here; CPU per call shows what running two costs',
    );
  }
  return { columns: callColumns, rows: toRows(samples), bars: evaluate(samples, bars), samples, notes };
}
