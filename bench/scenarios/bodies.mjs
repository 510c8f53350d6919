// @ts-check
// What the scenarios about large bodies share: transfers of whole bodies, and CPU per GiB.

import { alternate } from '../measure/rounds.mjs';
import { compare, proxyCpu, toRows } from '../report/summary.mjs';
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
const msPerGib = (sample) => {
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

/**
 * @param {import('../run.mjs').Bench} bench
 * @param {object} plan
 * @param {readonly PeerName[]} plan.peers
 * @param {import('../measure/sample.mjs').Load} plan.load
 * @param {string} plan.what of the ratio to plain nginx
 * @returns {Promise<import('../run.mjs').Findings>}
 */
export async function transferBodies(bench, { peers: names, load, what }) {
  const peers = await bench.peers(names, { keySets: { main: fundedKeys(1) } });
  const contestants = peers.map((peer) => ({ peer, load }));
  const samples = await alternate(bench, { contestants, connections: bench.options.connections });
  const comparisons = compare(samples, [
    { what, of: { peer: 'tollgate' }, against: { peer: 'nginx' }, metric: msPerGib, bar: 1.3, stretch: 1.0 },
  ]);
  return { columns, rows: toRows(samples, valuesOf), comparisons, samples, notes: [] };
}
