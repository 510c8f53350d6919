// @ts-check
import { drive } from '../load/drive.mjs';
import { jobOf, measure } from '../measure/sample.mjs';
import { atMost, median, toRows } from '../report/summary.mjs';
import { fundedKeys } from '../stage/keys.mjs';

/** @typedef {import('../measure/sample.mjs').Sample} Sample */

export const question =
  'How much does the proxy hold in memory for a caller that asks for an endless body and reads nothing?';

/** `connections`: callers that do not read. */
export const defaults = { connections: [500], seconds: 5, rounds: 2 };

const peerNames = /** @type {const} */ (['nginx', 'tollgate']);
const load = { path: `bytes/${2 ** 40}` };
const barKib = 256;
const stretchKib = 64;

/** @type {import('../report/summary.mjs').Column[]} */
const columns = [
  { key: 'kibPerReader', title: 'KiB/reader', digits: 1 },
  { key: 'errors', title: 'errors', digits: 0 },
  { key: 'rssMiB', title: 'RSS MiB', digits: 0 },
];

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const { stage, options, processors } = bench;
  const peers = await bench.peers(peerNames, { keySets: { main: fundedKeys(10) } });
  for (const peer of peers) {
    await drive(stage.scratch, options.driver, jobOf(peer, {}, { connections: 64, seconds: 2 }));
  }
  /** @type {Sample[]} */
  const samples = [];
  for (const many of options.connections) {
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const connections of [Math.ceil(many / 5), many]) {
        for (const peer of peers) {
          const how = { connections, seconds: options.seconds, processors };
          samples.push({ ...(await measure(stage, peer, 'stalled-readers', load, how)), variant: '', round });
        }
      }
    }
  }
  const kibOf = kibPerReader(samples);
  const rows = toRows(samples, (sample) => ({
    kibPerReader: kibOf(sample),
    rssMiB: sample.rssDuringBytes / 2 ** 20,
  }));
  const ours = samples.filter((sample) => sample.peer === 'tollgate' && kibOf(sample) !== null);
  const kib = median(ours.map((sample) => kibOf(sample) ?? Number.NaN));
  const what = `memory per stalled reader ÷ ${barKib} KiB`;
  const comparisons = ours.length === 0 ? [] : [atMost(what, ours, kib / barKib, 1, stretchKib / barKib)];
  const notes = [
    'memory per reader: how much more resident memory five times as many readers need, so that what the process holds ' +
      'anyway does not count; what the kernel buffers for a socket is bounded by its own limits',
  ];
  return { columns, rows, comparisons, samples, notes };
}

/**
 * Of the larger of two numbers of readers, against the smaller of the same round.
 * @param {readonly Sample[]} samples @returns {(sample: Sample) => number | null}
 */
const kibPerReader = (samples) => (sample) => {
  const { peer, round, connections } = sample;
  const fewer = samples.find(
    (other) => other.peer === peer && other.round === round && other.connections < connections,
  );
  if (fewer === undefined) return null;
  return (sample.rssDuringBytes - fewer.rssDuringBytes) / 1024 / (connections - fewer.connections);
};
