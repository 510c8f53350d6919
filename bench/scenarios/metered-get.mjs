// @ts-check

import { alternate, loadSeconds } from '../measure/rounds.mjs';
import { callColumns, compare, toRows } from '../report/summary.mjs';
import { balanceUsd, keysFor, rateLimit } from '../stage/keys.mjs';

/** @typedef {import('../measure/sample.mjs').Sample} Sample */

export const question =
  'What does one small metered call cost (authenticate, limit, charge, forward, record), next to proxies that do less ' +
  'and next to those that do the same?';

export const defaults = { connections: [16, 64, 256], seconds: 5, rounds: 3 };

const peerNames = /** @type {const} */ (['direct', 'nginx', 'nginx-lua', 'fastify', 'tollgate', 'tollgate-all']);

const proxyCpu = (/** @type {Sample} */ sample) => sample.cpuMicros.proxy;
const redisCpu = (/** @type {Sample} */ sample) => sample.cpuMicros.redis;
const few = (/** @type {string} */ label) => label === '16 connections';
const many = (/** @type {string} */ label) => !few(label);

/** @type {import('../report/summary.mjs').Bar[]} */
const bars = [
  {
    ...{ what: 'CPU vs nginx + Lua + Redis', of: 'tollgate', against: 'nginx-lua', metric: proxyCpu },
    ...{ bar: 0.6, stretch: 0.45, where: many },
  },
  {
    ...{ what: 'CPU vs nginx + Lua + Redis', of: 'tollgate', against: 'nginx-lua', metric: proxyCpu },
    ...{ bar: 0.75, stretch: 0.6, where: few },
  },
  {
    ...{ what: 'CPU vs plain nginx', of: 'tollgate', against: 'nginx', metric: proxyCpu },
    ...{ bar: 2.6, stretch: 2.0 },
  },
  {
    ...{ what: 'CPU vs Fastify + http-proxy', of: 'tollgate', against: 'fastify', metric: proxyCpu },
    ...{ bar: 0.25, stretch: 0.15 },
  },
  {
    ...{ what: 'Redis CPU vs nginx + Lua + Redis', of: 'tollgate', against: 'nginx-lua', metric: redisCpu },
    ...{ bar: 1.0, stretch: 0.7 },
  },
];

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const { connections } = bench.options;
  const count = keysFor(loadSeconds(bench.options, connections.length));
  const peers = await bench.peers(peerNames, { keySets: { main: { count, rateLimit, balanceUsd } } });
  const contestants = peers.map((peer) => ({ peer, load: {} }));
  const samples = await alternate(bench, { contestants, connections });
  return { columns: callColumns, rows: toRows(samples), comparisons: compare(samples, bars), samples, notes: [] };
}
