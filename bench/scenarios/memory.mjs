// @ts-check
// What the scenarios about memory share: how much an open connection adds to what a warm process holds anyway.

import { drive } from '../load/drive.mjs';
import { rssBytesOf } from '../measure/proc.mjs';
import { jobOf } from '../measure/sample.mjs';

/**
 * @typedef {import('../measure/sample.mjs').Sample} Sample
 * @typedef {import('../peers/peer.mjs').Peer} Peer
 * @typedef {import('../run.mjs').Bench} Bench
 *
 * @typedef {Map<string, number>} Baselines peer → least resident bytes of the warm process
 */

const callSeconds = 3;
const few = { connections: 20, seconds: 1 };
const settleMs = 1_000;
/** Of one peer. */
export const warmUpSeconds = callSeconds + few.seconds + 2;

/**
 * A warm process: its code is compiled, its pools have their size.
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
 * Right after a warm-up, a garbage-collected heap holds what it has not cleared away yet: taken as the baseline, that
 * would hide what is measured. The least that was ever seen is the baseline.
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
