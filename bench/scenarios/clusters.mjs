// @ts-check
import { proxyCpu, redisCpu } from '../report/summary.mjs';
import { comparison } from './small-calls.mjs';

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

const { estimateSeconds: estimateCalls, run } = comparison(peerNames, bars, () => [
  'everything on one machine: between machines a WAIT takes one more round trip, from the master to its replica',
  'both peers with a cluster share it, with its database and its writer: three masters and three replicas',
]);

export { run };

// The cluster takes this long to start.
const startSeconds = 15;

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = (options) => startSeconds + estimateCalls(options);
