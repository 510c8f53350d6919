// @ts-check
import { rssBytesOf } from '../measure/proc.mjs';
import { measure } from '../measure/sample.mjs';
import { evaluate } from '../report/bars.mjs';
import { toRows } from '../report/summary.mjs';
import { fundedKeys } from '../stage/keys.mjs';
import { kibEach, lower, warmUp, warmUpSeconds } from './memory.mjs';

/** @typedef {import('../measure/sample.mjs').Sample & { kibPerReader: number | null }} ReaderSample */

export const question =
  'How much memory does the proxy use for a caller that asks for an endless body and reads nothing?';

/** `connections` is the number of callers that do not read. */
export const defaults = { connections: [200], seconds: 4, rounds: 2 };

const peerNames = /** @type {const} */ (['nginx', 'tollgate']);
const load = { path: `bytes/${2 ** 40}` };

/** @type {import('../report/bars.mjs').Bar[]} */
export const bars = [
  {
    what: 'buffered per stalled reader',
    unit: 'KiB',
    is: 'at most',
    of: { peer: 'tollgate' },
    against: null,
    metric: (/** @type {ReaderSample} */ sample) => sample.kibPerReader,
    bar: 256,
    stretch: 64,
  },
];

// For the estimate: a reader stalls only after the kernel's buffers for its connection are full.
const secondsPerReader = 0.02;

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = ({ connections, seconds, rounds }) =>
  peerNames.length *
  (warmUpSeconds + rounds * connections.reduce((sum, count) => sum + seconds + 1 + count * secondsPerReader, 0));

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
  const baselines = await warmUp(bench, peers, 'stalled-readers', load);
  const samples = [];
  for (const connections of options.connections) {
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const peer of peers) {
        bench.progress(`${connections} stalled readers, round ${round}/${options.rounds}: ${peer.name}`);
        lower(baselines, peer.name, rssBytesOf(peer.watched.proxy));
        const how = { connections, seconds: options.seconds, processors };
        samples.push({ ...(await measure(stage, peer, 'stalled-readers', load, how)), variant: '', round });
      }
    }
  }
  const complete = samples.map((sample) => ({ ...sample, kibPerReader: kibEach(baselines, sample) }));
  const rows = toRows(complete, ({ kibPerReader, rssDuringBytes }) => ({
    kibPerReader,
    rssMiB: rssDuringBytes / 2 ** 20,
  }));
  const notes = [
    'memory per reader: RSS minus the lowest RSS of the warm process, so growth of the heap for other reasons counts too. ' +
      'What the kernel buffers for a socket does not count; the kernel bounds it',
  ];
  return { columns, rows, bars: evaluate(complete, bars), samples: complete, notes };
}
