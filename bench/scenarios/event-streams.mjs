// @ts-check
import { measure } from '../measure/sample.mjs';
import { evaluate } from '../report/bars.mjs';
import { toRows } from '../report/summary.mjs';
import { fundedKeys } from '../stage/keys.mjs';
import { kibEach, lower, warmUp, warmUpSeconds } from './memory.mjs';

/**
 * @typedef {import('../measure/sample.mjs').Sample} Sample
 * @typedef {import('../run.mjs').Bench} Bench
 */

export const question = 'How late are events behind the proxy, and how much memory does an open event stream hold?';

/** `connections` is the number of open streams in the quiet kind of load. */
export const defaults = { connections: [5_000], seconds: 5, rounds: 2 };

const peerNames = /** @type {const} */ (['direct', 'nginx', 'tollgate']);
const chatty = { streams: 200, intervalMs: 50, variant: '20 events/s each' };
const quiet = { intervalMs: 2_000, variant: 'an event every 2 s each' };
// How long it takes to open thousands of streams in groups, and to close them.
const openingSeconds = 5;

/** @typedef {Sample & { kibPerStream: number | null }} StreamSample */

/** @type {import('../report/bars.mjs').Bar[]} */
export const bars = [
  {
    what: 'memory per open event stream',
    unit: 'KiB',
    is: 'at most',
    of: { peer: 'tollgate', variant: quiet.variant },
    against: null,
    metric: (/** @type {StreamSample} */ sample) => sample.kibPerStream,
    bar: 20,
    stretch: 10,
  },
];

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = ({ connections, seconds, rounds }) =>
  peerNames.length * (warmUpSeconds + rounds * seconds) + 2 * rounds * connections.length * (seconds + openingSeconds);

/** @type {import('../report/summary.mjs').Column[]} */
const columns = [
  { key: 'eventsPerSecond', title: 'events/s', digits: 0 },
  { key: 'cpuMicros', title: 'CPU µs/event', digits: 1 },
  { key: 'p50', title: 'delay p50 ms', digits: 2 },
  { key: 'p99', title: 'p99 ms', digits: 2 },
  { key: 'p999', title: 'p99.9 ms', digits: 2 },
  { key: 'kibPerStream', title: 'KiB/stream', digits: 1 },
  { key: 'errors', title: 'errors', digits: 0 },
  { key: 'rssMiB', title: 'RSS MiB', digits: 0 },
];

/** @param {StreamSample} sample */
const valuesOf = (sample) => ({
  eventsPerSecond: sample.callsPerSecond,
  cpuMicros: sample.cpuMicros.proxy,
  p50: sample.latency.p50 / 1000,
  p99: sample.latency.p99 / 1000,
  p999: sample.latency.p999 / 1000,
  kibPerStream: sample.kibPerStream,
  rssMiB: sample.rssDuringBytes === 0 ? null : sample.rssDuringBytes / 2 ** 20,
});

/** @param {Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const { stage, options, processors } = bench;
  const peers = await bench.peers(peerNames, { keySets: { main: fundedKeys(10) } });
  const baselines = await warmUp(bench, peers, 'event-streams', { path: `events/${chatty.intervalMs}` });
  const kinds = [chatty, ...options.connections.map((streams) => ({ ...quiet, streams }))];
  /** @type {Sample[]} */
  const samples = [];
  for (const { streams, intervalMs, variant } of kinds) {
    for (let round = 1; round <= options.rounds; round += 1) {
      // The quiet kind measures memory of the proxy, and `direct` has no proxy.
      for (const peer of variant === chatty.variant ? peers : peers.filter(({ watched }) => watched.proxy.length > 0)) {
        bench.progress(`${streams} streams, ${variant}, round ${round}/${options.rounds}: ${peer.name}`);
        const how = { connections: streams, seconds: options.seconds, processors };
        const sample = await measure(stage, peer, 'event-streams', { path: `events/${intervalMs}` }, how);
        samples.push({ ...sample, variant, round });
        if (variant === chatty.variant) lower(baselines, peer.name, sample.rssDuringBytes);
      }
    }
  }
  // Each round may lower the baseline, so it is known only after the last one.
  const complete = samples.map((sample) => ({
    ...sample,
    // The chatty variant has too few streams: the heap varies by more than their memory.
    kibPerStream: sample.variant === quiet.variant ? kibEach(baselines, sample) : null,
  }));
  const notes = [
    'delay: the time from the service to the caller; "direct" is what service, kernel and driver need themselves. CPU per ' +
      'event includes opening and closing the streams. Memory is RSS minus the lowest RSS of the warm process',
  ];
  return { columns, rows: toRows(complete, valuesOf), bars: evaluate(complete, bars), samples: complete, notes };
}
