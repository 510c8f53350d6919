// @ts-check
import { alternate, alternateSeconds } from '../measure/rounds.mjs';
import { callColumns, toRows } from '../report/summary.mjs';

export const question =
  'What does it cost to answer /discover over 10 000 services, anonymously: one filtered page, and all?';

export const defaults = { connections: [16], seconds: 4, rounds: 2 };

const services = 10_000;

const kinds = [
  { variant: 'a filtered page', load: { rawPath: '/api/v1/discover?category=data&limit=20', keySet: null } },
  { variant: `all ${services}`, load: { rawPath: '/api/v1/discover', keySet: null } },
];

/** @type {import('../report/bars.mjs').Bar[]} */
export const bars = [];

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = (options) => alternateSeconds(options, kinds.length);

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const peers = await bench.peers(['tollgate'], { keySets: {}, services });
  const contestants = kinds.flatMap((kind) => peers.map((peer) => ({ peer, ...kind })));
  const samples = await alternate(bench, { contestants, connections: bench.options.connections });
  const all = samples.find(({ variant }) => variant.startsWith('all'));
  const notes =
    all === undefined ? [] : [`the answer with all services has ${Math.round(all.bytes / all.calls / 1024)} KiB`];
  return { columns: callColumns, rows: toRows(samples), bars: [], samples, notes };
}
