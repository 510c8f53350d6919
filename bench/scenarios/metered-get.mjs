// @ts-check
import { alternate, loadSeconds } from '../measure/rounds.mjs';
import { callColumns, compare, proxyCpu, redisCpu, toRows } from '../report/summary.mjs';
import { fundedKeys } from '../stage/keys.mjs';

export const question =
  'What does one small metered call cost (authenticate, limit, charge, forward, record), next to proxies that do less ' +
  'and next to those that do the same?';

export const defaults = { connections: [16, 64, 256], seconds: 5, rounds: 3 };

const peerNames = /** @type {const} */ (['direct', 'nginx', 'nginx-lua', 'fastify', 'tollgate', 'tollgate-all']);

const few = (/** @type {number} */ connections) => connections < 64;
const many = (/** @type {number} */ connections) => connections >= 64;
const ours = { peer: 'tollgate' };
const lua = { what: 'CPU vs nginx + Lua + Redis', of: ours, against: { peer: 'nginx-lua' }, metric: proxyCpu };
const luaRedis = { what: 'Redis CPU vs nginx + Lua', of: ours, against: { peer: 'nginx-lua' }, metric: redisCpu };
const plain = { what: 'CPU vs plain nginx', of: ours, against: { peer: 'nginx' }, metric: proxyCpu };
const node = { what: 'CPU vs Fastify + http-proxy', of: ours, against: { peer: 'fastify' }, metric: proxyCpu };

/** @type {import('../report/summary.mjs').Bar[]} */
const bars = [
  { ...lua, where: many, bar: 0.6, stretch: 0.45 },
  { ...lua, where: few, bar: 0.75, stretch: 0.6 },
  { ...plain, bar: 2.6, stretch: 2.0 },
  { ...node, bar: 0.25, stretch: 0.15 },
  { ...luaRedis, bar: 1.0, stretch: 0.7 },
];

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const { connections } = bench.options;
  const main = fundedKeys(loadSeconds(bench.options, connections.length));
  const peers = await bench.peers(peerNames, { keySets: { main } });
  const contestants = peers.map((peer) => ({ peer, load: {} }));
  const samples = await alternate(bench, { contestants, connections });
  return { columns: callColumns, rows: toRows(samples), comparisons: compare(samples, bars), samples, notes: [] };
}
