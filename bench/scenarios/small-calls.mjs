// @ts-check
// Shared by the scenarios that compare peers by one small call, each peer under the same load.

import { alternate, alternateSeconds, loadSeconds } from '../measure/rounds.mjs';
import { evaluate } from '../report/bars.mjs';
import { callColumns, toRows } from '../report/summary.mjs';
import { fundedKeys } from '../stage/keys.mjs';

/**
 * @param {readonly import('../peers/index.mjs').PeerName[]} peerNames
 * @param {readonly import('../report/bars.mjs').Bar[]} bars
 * @param {(bench: import('../run.mjs').Bench) => string[]} [notesOf]
 */
export const comparison = (peerNames, bars, notesOf = () => []) => ({
  /** @param {import('../run.mjs').RunOptions} options */
  estimateSeconds: (options) => alternateSeconds(options, peerNames.length),

  /** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
  run: async (bench) => {
    const { connections } = bench.options;
    const main = fundedKeys(loadSeconds(bench.options, connections.length));
    const peers = await bench.peers(peerNames, { keySets: { main } });
    const contestants = peers.map((peer) => ({ peer, load: {} }));
    const samples = await alternate(bench, { contestants, connections });
    const notes = notesOf(bench);
    return { columns: callColumns, rows: toRows(samples), bars: evaluate(samples, bars), samples, notes };
  },
});
