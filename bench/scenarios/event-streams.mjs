// @ts-check
import { drive } from '../load/drive.mjs';
import { rssBytesOf } from '../measure/proc.mjs';
import { jobOf, measure } from '../measure/sample.mjs';
import { atMost, median, toRows } from '../report/summary.mjs';
import { fundedKeys } from '../stage/keys.mjs';

/**
 * @typedef {import('../measure/sample.mjs').Sample} Sample
 * @typedef {import('../peers/peer.mjs').Peer} Peer
 * @typedef {import('../run.mjs').Bench} Bench
 */

export const question = 'How late are events behind the proxy, and how much memory does an open event stream hold?';

/** `connections`: open streams of the second kind. */
export const defaults = { connections: [5_000], seconds: 8, rounds: 2 };

const peerNames = /** @type {const} */ (['direct', 'nginx', 'nginx-lua', 'tollgate']);
const chatty = { streams: 200, intervalMs: 50, variant: '20 events/s each' };
const quiet = { intervalMs: 2_000, variant: 'an event every 2 s each' };
const settleMs = 1_000;
const barKib = 20;
const stretchKib = 10;

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

/** @typedef {Map<string, number>} Baselines peer → resident bytes before any stream was open */

/** @param {Baselines} baselines @returns {(sample: Sample) => number | null} */
const kibPerStream = (baselines) => (sample) => {
  const before = baselines.get(sample.peer);
  // The few streams of the chatty kind are lost in the noise of a heap.
  if (before === undefined || sample.rssDuringBytes === 0 || sample.variant !== quiet.variant) return null;
  return (sample.rssDuringBytes - before) / 1024 / sample.connections;
};

/** @param {Baselines} baselines @returns {(sample: Sample) => Record<string, number | null>} */
const valuesWith = (baselines) => (sample) => ({
  eventsPerSecond: sample.callsPerSecond,
  cpuMicros: sample.cpuMicros.proxy,
  p50: sample.latency.p50 / 1000,
  p99: sample.latency.p99 / 1000,
  p999: sample.latency.p999 / 1000,
  kibPerStream: kibPerStream(baselines)(sample),
  rssMiB: sample.rssDuringBytes === 0 ? null : sample.rssDuringBytes / 2 ** 20,
});

/**
 * A warm process without streams: its code is compiled, its pools have their size.
 * @param {Bench} bench @param {readonly Peer[]} peers @returns {Promise<Baselines>}
 */
async function warmUp({ stage, options }, peers) {
  /** @type {Baselines} */
  const baselines = new Map();
  for (const peer of peers) {
    await drive(stage.scratch, options.driver, jobOf(peer, {}, { connections: 64, seconds: 3 }));
    const few = { connections: 50, seconds: 1 };
    await drive(stage.scratch, 'event-streams', jobOf(peer, { path: 'events/50' }, few));
    await new Promise((go) => setTimeout(go, settleMs));
    if (peer.watched.proxy.length > 0) baselines.set(peer.name, rssBytesOf(peer.watched.proxy));
  }
  return baselines;
}

/**
 * Right after a warm-up, a garbage-collected heap holds what it has not cleared away yet: taken as the baseline, that
 * would hide the streams. The least that was ever seen is the baseline.
 * @param {Baselines} baselines @param {Omit<Sample, 'variant' | 'round'>} sample
 */
function lower(baselines, { peer, rssDuringBytes }) {
  const before = baselines.get(peer);
  if (before !== undefined) baselines.set(peer, Math.min(before, rssDuringBytes));
}

/** @param {Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const { stage, options, processors } = bench;
  const peers = await bench.peers(peerNames, { keySets: { main: fundedKeys(10) } });
  const baselines = await warmUp(bench, peers);
  const kinds = [chatty, ...options.connections.map((streams) => ({ ...quiet, streams }))];
  /** @type {Sample[]} */
  const samples = [];
  for (const { streams, intervalMs, variant } of kinds) {
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const peer of peers) {
        bench.progress(`${streams} streams, ${variant}, round ${round}/${options.rounds}: ${peer.name}`);
        const how = { connections: streams, seconds: options.seconds, processors };
        const sample = await measure(stage, peer, 'event-streams', { path: `events/${intervalMs}` }, how);
        samples.push({ ...sample, variant, round });
        if (variant === chatty.variant) lower(baselines, sample);
      }
    }
  }
  const memory = kibPerStream(baselines);
  const ours = samples.filter(({ peer, variant }) => peer === 'tollgate' && variant === quiet.variant);
  const kib = median(ours.map((sample) => memory(sample) ?? Number.NaN));
  const comparisons =
    ours.length === 0 ? [] : [atMost(`memory per stream ÷ ${barKib} KiB`, ours, kib / barKib, 1, stretchKib / barKib)];
  const notes = [
    'delay: from the service to the caller, "direct" is what service, kernel and driver need themselves; CPU per event ' +
      'includes opening and closing the streams; memory is RSS against the least of the warm process',
  ];
  return { columns, rows: toRows(samples, valuesWith(baselines)), comparisons, samples, notes };
}
