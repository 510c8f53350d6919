// @ts-check
// Measures the peers in turn, A B A B …, within one run. A machine changes all the time (clock, neighbours, caches). What changes
// between two rounds affects all peers, so the ratio of two peers within a round stays meaningful.

import { readFileSync } from 'node:fs';
import { drive } from '../load/drive.mjs';
import { probe } from './probe.mjs';
import { driverOf, jobOf, measure } from './sample.mjs';

/**
 * @typedef {import('./sample.mjs').Sample} Sample
 * @typedef {import('./sample.mjs').Load} Load
 *
 * @typedef {object} Contestant
 * @property {import('../peers/peer.mjs').Peer} peer
 * @property {Load} load
 * @property {string} [variant] tells apart several loads on the same peer
 *
 * @typedef {object} Plan
 * @property {readonly Contestant[]} contestants
 * @property {readonly number[]} connections
 */

// Before its first measurement a peer is warmed up until its code is compiled. A new number of connections only has to fill the
// pools. Further rounds need no warm-up, because the peer is as the round before left it.
const firstWarmUpSeconds = 3;
const laterWarmUpSeconds = 1;
// A busy machine may need several first warm-ups, see `warmUp`. With 100 000 keys even these do not reach all.
const mostWarmUps = 5;
// What a measurement takes beside its seconds: the driver starts and connects, and the last events are stored.
const overheadSeconds = 0.5;

/**
 * The seconds of load that one contestant gets in all. The number of keys is computed from them.
 * @param {{ rounds: number, seconds: number }} options
 * @param {number} levels how many numbers of connections
 */
export const loadSeconds = ({ rounds, seconds }, levels) =>
  firstWarmUpSeconds + (levels - 1) * laterWarmUpSeconds + levels * rounds * seconds;

/**
 * About how many seconds `alternate` takes.
 * @param {import('../run.mjs').RunOptions} options
 * @param {number} contestants
 */
export const alternateSeconds = (options, contestants) => {
  const { connections, rounds } = options;
  return contestants * (loadSeconds(options, connections.length) + connections.length * rounds * overheadSeconds);
};

/**
 * @param {import('../run.mjs').Bench} bench
 * @param {Plan} plan
 * @returns {Promise<Sample[]>}
 */
export async function alternate(bench, { contestants, connections }) {
  const { stage, options, processors } = bench;
  /** @type {Sample[]} */
  const samples = [];
  for (const { peer, load } of contestants) await probe(peer, load);
  for (const [level, count] of connections.entries()) {
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const { peer, load, variant = '' } of contestants) {
        const driver = driverOf(load, options.driver);
        bench.progress(`${count} connections, round ${round}/${options.rounds}: ${peer.name} ${variant}`);
        const seconds = level === 0 ? firstWarmUpSeconds : laterWarmUpSeconds;
        // Transfers need no warm-up: their first bodies are enough of one.
        if (round === 1 && driver !== 'transfer')
          await warmUp(stage, peer, load, { driver, connections: count, seconds, most: level === 0 ? mostWarmUps : 1 });
        await peer.settled();
        const how = { connections: count, seconds: options.seconds, processors };
        samples.push({ ...(await measure(stage, peer, driver, load, how)), variant, round });
      }
    }
  }
  return samples;
}

/**
 * Warms a peer up, again and again until every key has called. The first call of a key loads it from Postgres and costs several times
 * as much as others: on a busy machine a call at 16 connections took 2 072 µs in the first round because of that, and 419 in the second.
 * @param {import('../stage/stage.mjs').Stage} stage
 * @param {import('../peers/peer.mjs').Peer} peer
 * @param {Load} load
 * @param {{ driver: import('../load/drive.mjs').Driver, connections: number, seconds: number, most: number }} how
 */
async function warmUp(stage, peer, load, { driver, connections, seconds, most }) {
  const firstAuth = load.firstAuth ?? 0;
  const keys = keysOf(peer, load);
  let calls = 0;
  for (let times = 0; times < most && (times === 0 || calls < keys); times += 1) {
    const job = jobOf(peer, { ...load, firstAuth: firstAuth + calls }, { connections, seconds });
    calls += (await drive(stage.scratch, driver, job)).calls;
  }
}

/** With how many keys this load calls. @param {import('../peers/peer.mjs').Peer} peer @param {Load} load */
function keysOf({ authFiles }, { keySet = 'main' }) {
  const file = keySet === null ? null : authFiles?.[keySet];
  return file == null ? 0 : readFileSync(file, 'utf8').trimEnd().split('\n').length;
}
