// @ts-check
import { alternate, alternateSeconds, loadSeconds } from '../measure/rounds.mjs';
import { evaluate } from '../report/bars.mjs';
import { callColumns, proxyCpu, redisCpu, toRows } from '../report/summary.mjs';
import { fundedKeys } from '../stage/keys.mjs';

/** @typedef {import('../measure/sample.mjs').Sample} Sample */

export const question =
  'What does a small metered call cost with a Redis Cluster, and when a replica must have it before it counts, compared with one ' +
  'Redis?';

export const defaults = { connections: [64, 16], seconds: 4, rounds: 3 };

const peerNames = /** @type {const} */ ([
  'tollgate',
  'tollgate-replica',
  'tollgate-cluster',
  'tollgate-cluster-replica',
]);
const forms = {
  'tollgate-replica': 'WAIT 1',
  'tollgate-cluster': 'cluster',
  'tollgate-cluster-replica': 'cluster, WAIT 1',
};

/** Masters and replicas. @param {Sample} sample */
const allRedis = ({ cpuMicros: { redis, replicas } }) => (redis ?? 0) + (replicas ?? 0);
const metrics = [
  { what: 'calls/s', is: 'at least', metric: (/** @type {Sample} */ { callsPerSecond }) => callsPerSecond },
  { what: 'p50', is: 'at most', metric: (/** @type {Sample} */ { latency }) => latency.p50 },
  { what: 'CPU of the gateway', is: 'at most', metric: proxyCpu },
  { what: 'CPU of the masters', is: 'at most', metric: redisCpu },
  { what: 'CPU of masters and replicas', is: 'at most', metric: allRedis },
];

/** @type {import('../report/bars.mjs').Bar[]} */
export const bars = Object.entries(forms).flatMap(([peer, form]) =>
  metrics.map(({ what, is, metric }) => ({
    what: `${what}, ${form} vs one Redis`,
    unit: '',
    is: /** @type {'at most' | 'at least'} */ (is),
    bar: null,
    stretch: null,
    of: { peer },
    against: { peer: 'tollgate' },
    metric,
  })),
);

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = (options) => 15 + alternateSeconds(options, peerNames.length);

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const { connections } = bench.options;
  const main = fundedKeys(loadSeconds(bench.options, connections.length));
  const peers = await bench.peers(peerNames, { keySets: { main } });
  const contestants = peers.map((peer) => ({ peer, load: {} }));
  const samples = await alternate(bench, { contestants, connections });
  const notes = [
    'everything on one machine: between machines a WAIT takes one more round trip, from the master to its replica',
    'both peers with a cluster share it, with its database and its writer: three masters and three replicas',
  ];
  return { columns: callColumns, rows: toRows(samples), bars: evaluate(samples, bars), samples, notes };
}
