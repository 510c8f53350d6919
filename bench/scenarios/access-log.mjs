// @ts-check
import { alternate, alternateSeconds, loadSeconds } from '../measure/rounds.mjs';
import { evaluate } from '../report/bars.mjs';
import { callColumns, proxyCpu, toRows } from '../report/summary.mjs';
import { fundedKeys } from '../stage/keys.mjs';

export const question = 'What does the access log (ACCESS_LOG=on) add to a small metered call?';

export const defaults = { connections: [64], seconds: 4, rounds: 5 };

const peerNames = /** @type {const} */ (['tollgate', 'tollgate-access-log']);

/** @type {import('../report/bars.mjs').Bar[]} */
export const bars = [
  {
    what: 'CPU with the access log vs without',
    unit: '',
    is: 'at most',
    bar: 1.03,
    stretch: null,
    of: { peer: 'tollgate-access-log' },
    against: { peer: 'tollgate' },
    metric: proxyCpu,
  },
];

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = (options) => alternateSeconds(options, peerNames.length);

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const { connections } = bench.options;
  const main = fundedKeys(loadSeconds(bench.options, connections.length));
  const peers = await bench.peers(peerNames, { keySets: { main } });
  const contestants = peers.map((peer) => ({ peer, load: {} }));
  const samples = await alternate(bench, { contestants, connections });
  const notes = ['the log goes to a file'];
  return { columns: callColumns, rows: toRows(samples), bars: evaluate(samples, bars), samples, notes };
}
