// @ts-check
import { alternate, alternateSeconds, loadSeconds } from '../measure/rounds.mjs';
import { callColumns, toRows } from '../report/summary.mjs';
import { fundedKeys } from '../stage/keys.mjs';

export const question = 'What does a metered call with a request body of 1 KB or 100 KB cost?';

export const defaults = { connections: [64], seconds: 4, rounds: 2 };

const bodies = [
  { variant: 'POST 1 KB', load: { method: 'POST', path: 'sink', bodyBytes: 1_000 } },
  { variant: 'POST 100 KB', load: { method: 'POST', path: 'sink', bodyBytes: 100_000 } },
];
const peerNames = /** @type {const} */ (['nginx', 'nginx-lua', 'tollgate']);

/** No bars: only passing on the body differs from metered-get, and `upload` measures that. @type {import('../report/bars.mjs').Bar[]} */
export const bars = [];

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = (options) => alternateSeconds(options, bodies.length * peerNames.length);

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const { connections } = bench.options;
  const main = fundedKeys(bodies.length * loadSeconds(bench.options, connections.length));
  const peers = await bench.peers(peerNames, { keySets: { main } });
  const contestants = bodies.flatMap((kind) => peers.map((peer) => ({ peer, ...kind })));
  const samples = await alternate(bench, { contestants, connections });
  return { columns: callColumns, rows: toRows(samples), bars: [], samples, notes: [] };
}
