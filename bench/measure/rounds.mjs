// @ts-check
// Peers in turn, A B A B …, within one run. A machine is never the same twice (clock, neighbours, caches): what changes
// between rounds hits all peers, and the ratio of two that ran next to each other keeps its meaning.

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

// The first seconds of a JIT compiler are not what it is measured for; more connections only grow pools. Later rounds find
// everything as the round before left it.
const firstWarmUpSeconds = 3;
const laterWarmUpSeconds = 1;
// Around a measurement: a driver starts and connects, and the last events are stored.
const overheadSeconds = 0.5;

/**
 * Seconds of load that one contestant gets in all: what the number of keys follows from.
 * @param {{ rounds: number, seconds: number }} options
 * @param {number} levels how many numbers of connections
 */
export const loadSeconds = ({ rounds, seconds }, levels) =>
  firstWarmUpSeconds + (levels - 1) * laterWarmUpSeconds + levels * rounds * seconds;

/**
 * How long `alternate` takes, about.
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
        // Whole bodies have a warm-up of their own: the first of them, of which a round more or less shows nothing.
        if (round === 1 && driver !== 'transfer')
          await drive(stage.scratch, driver, jobOf(peer, load, { connections: count, seconds }));
        await peer.settled();
        const how = { connections: count, seconds: options.seconds, processors };
        samples.push({ ...(await measure(stage, peer, driver, load, how)), variant, round });
      }
    }
  }
  return samples;
}
