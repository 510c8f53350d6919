// @ts-check
// Shared by the scenarios about large bodies: transfers of whole bodies, and CPU per GiB.

import { alternate } from '../measure/rounds.mjs';
import { evaluate } from '../report/bars.mjs';
import { proxyCpu, toRows } from '../report/summary.mjs';
import { fundedKeys } from '../stage/keys.mjs';

/**
 * @typedef {import('../measure/sample.mjs').Sample} Sample
 * @typedef {import('../peers/index.mjs').PeerName} PeerName
 */

const GiB = 2 ** 30;

/** @type {import('../report/summary.mjs').Column[]} */
const columns = [
  { key: 'gibPerSecond', title: 'GiB/s', digits: 2 },
  { key: 'proxyMsPerGib', title: 'CPU ms/GiB', digits: 0 },
  { key: 'seconds', title: 's per body', digits: 2 },
  { key: 'errors', title: 'errors', digits: 0 },
  { key: 'rssMiB', title: 'RSS MiB', digits: 0 },
];

/** @param {Sample} sample */
export const msPerGib = (sample) => {
  const micros = proxyCpu(sample);
  return micros === null ? null : (micros * sample.calls) / 1000 / (sample.bytes / GiB);
};

/** @param {Sample} sample */
const valuesOf = (sample) => ({
  gibPerSecond: sample.bytes / GiB / sample.seconds,
  proxyMsPerGib: msPerGib(sample),
  seconds: sample.latency.p50 / 1e6,
  rssMiB: sample.rssBytes === 0 ? null : sample.rssBytes / 2 ** 20,
});

// The time of a slow machine, for the estimate. Most machines take a fraction of it.
const secondsPerGib = 0.8;

/**
 * @param {import('../run.mjs').RunOptions} options
 * @param {number} peers
 * @param {number} bytesPerConnection
 */
export const estimateTransfers = ({ connections, rounds }, peers, bytesPerConnection) =>
  connections.reduce((sum, count) => sum + 1 + count * (bytesPerConnection / GiB) * secondsPerGib, 0) * rounds * peers;

/**
 * @param {import('../run.mjs').Bench} bench
 * @param {object} plan
 * @param {readonly PeerName[]} plan.peers
 * @param {import('../measure/sample.mjs').Load} plan.load
 * @param {readonly import('../report/bars.mjs').Bar[]} plan.bars
 * @returns {Promise<import('../run.mjs').Findings>}
 */
export async function transferBodies(bench, { peers: names, load, bars }) {
  const peers = await bench.peers(names, { keySets: { main: fundedKeys(1) } });
  const contestants = peers.map((peer) => ({ peer, load }));
  const samples = await alternate(bench, { contestants, connections: bench.options.connections });
  return { columns, rows: toRows(samples, valuesOf), bars: evaluate(samples, bars), samples, notes: [] };
}
