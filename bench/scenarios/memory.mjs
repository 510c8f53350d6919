// @ts-check
// Shared by the scenarios about memory: how much an open connection adds to the memory of a warm process.

import { drive } from '../load/drive.mjs';
import { rssBytesOf } from '../measure/proc.mjs';
import { jobOf } from '../measure/sample.mjs';

/**
 * @typedef {import('../measure/sample.mjs').Sample} Sample
 * @typedef {import('../peers/peer.mjs').Peer} Peer
 * @typedef {import('../run.mjs').Bench} Bench
 *
 * @typedef {Map<string, number>} Baselines peer → lowest resident memory of the warm process, in bytes
 */

const callSeconds = 3;
const few = { connections: 20, seconds: 1 };
const settleMs = 1_000;
/** How long `warmUp` takes for one peer. */
export const warmUpSeconds = callSeconds + few.seconds + 2;

/**
 * Warms the peers up, so that their code is compiled and their pools are filled, and reads their memory.
 * @param {Bench} bench
 * @param {readonly Peer[]} peers
 * @param {import('../load/drive.mjs').Driver} driver
 * @param {import('../measure/sample.mjs').Load} load
 * @returns {Promise<Baselines>}
 */
export async function warmUp({ stage, options }, peers, driver, load) {
  /** @type {Baselines} */
  const baselines = new Map();
  for (const peer of peers) {
    await drive(stage.scratch, options.driver, jobOf(peer, {}, { connections: 64, seconds: callSeconds }));
    await drive(stage.scratch, driver, jobOf(peer, load, few));
    await new Promise((go) => setTimeout(go, settleMs));
    if (peer.watched.proxy.length > 0) baselines.set(peer.name, rssBytesOf(peer.watched.proxy));
  }
  return baselines;
}

/**
 * Lowers the baseline of a peer if this reading is lower. Right after a warm-up the heap still has garbage in it. As a baseline
 * that would hide the memory of the connections, so the lowest reading of all is the baseline.
 * @param {Baselines} baselines @param {Peer['name']} peer @param {number} rssBytes
 */
export function lower(baselines, peer, rssBytes) {
  const before = baselines.get(peer);
  if (before !== undefined) baselines.set(peer, Math.min(before, rssBytes));
}

/** @param {Baselines} baselines @param {Sample} sample @returns {number | null} KiB for each of its connections */
export function kibEach(baselines, { peer, rssDuringBytes, connections }) {
  const before = baselines.get(peer);
  return before === undefined || rssDuringBytes === 0 ? null : (rssDuringBytes - before) / 1024 / connections;
}
