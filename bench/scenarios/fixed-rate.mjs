// @ts-check
import { alternate, alternateSeconds, loadSeconds } from '../measure/rounds.mjs';
import { evaluate } from '../report/bars.mjs';
import { callColumns, median, toRows } from '../report/summary.mjs';
import { fundedKeys } from '../stage/keys.mjs';

export const question =
  'How long does a caller wait at half of the rate that the gateway can do, when calls come at their own times and do not ' +
  'wait for the server?';

export const defaults = { connections: [256], seconds: 4, rounds: 3 };

const peerNames = /** @type {const} */ (['direct', 'nginx-lua', 'tollgate']);

/** @type {import('../report/bars.mjs').Bar[]} */
export const bars = [
  {
    what: 'p99 at half load vs nginx + Lua + Redis',
    unit: '',
    is: 'at most',
    of: { peer: 'tollgate', variant: 'open loop' },
    against: { peer: 'nginx-lua', variant: 'open loop' },
    metric: ({ latency }) => latency.p99,
    bar: 1.0,
    stretch: 0.7,
  },
];

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = (options) =>
  alternateSeconds({ ...options, rounds: 1 }, 1) + alternateSeconds(options, peerNames.length);

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const { connections } = bench.options;
  const main = fundedKeys(2 * loadSeconds(bench.options, connections.length));
  const peers = await bench.peers(peerNames, { keySets: { main } });
  const gateway = peers.find(({ name }) => name === 'tollgate');
  if (gateway === undefined)
    throw new Error('the rate is half of what the gateway can do, so the peer tollgate has to take part');
  const once = { ...bench, options: { ...bench.options, rounds: 1 } };
  const closed = await alternate(once, {
    contestants: [{ peer: gateway, load: {}, variant: 'saturation' }],
    connections,
  });
  const saturation = median(closed.map(({ callsPerSecond }) => callsPerSecond));
  const ratePerSecond = Math.round(saturation / 2);
  const contestants = peers.map((peer) => ({ peer, load: { ratePerSecond }, variant: 'open loop' }));
  const samples = [...closed, ...(await alternate(bench, { contestants, connections }))];
  const lateness = Math.max(...samples.map(({ openLoop }) => openLoop?.latenessP99Micros ?? 0));
  const notes = [
    `rate: ${ratePerSecond} calls/s, half of the gateway's ${Math.round(saturation)}; the gaps between calls are exponential ` +
      'and the same for all peers; each call is timed from the moment at which it was due',
    `at its worst p99 the driver itself was late by ${(lateness / 1000).toFixed(2)} ms, which is part of every latency here`,
  ];
  return { columns: callColumns, rows: toRows(samples), bars: evaluate(samples, bars), samples, notes };
}
