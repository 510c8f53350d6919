// @ts-check
import { drive } from '../load/drive.mjs';
import { alternate } from '../measure/rounds.mjs';
import { jobOf } from '../measure/sample.mjs';
import { callColumns, compare, toRows } from '../report/summary.mjs';
import { fundedKeys } from '../stage/keys.mjs';

/** @typedef {import('../run.mjs').Bench} Bench */

export const question = 'Do calls get slower when 100 000 different keys make them instead of 1 000?';

export const defaults = { connections: [64], seconds: 5, rounds: 3 };

const manyKeys = 100_000;
const fewKeys = 1_000;
const many = { variant: '100 000 keys', load: { keySet: 'many' } };
const fewVariant = '1 000 keys';

/** @type {import('../report/summary.mjs').Bar[]} */
const bars = [
  {
    what: 'calls/s with 1 000 keys ÷ with 100 000 keys',
    of: { peer: 'tollgate', variant: fewVariant },
    against: { peer: 'tollgate', variant: many.variant },
    metric: ({ callsPerSecond }) => callsPerSecond,
    // Throughput with many keys at least 0.9 and 0.97 of that with few.
    bar: 1.11,
    stretch: 1.03,
  },
];

/**
 * Calls with every key once: first calls of keys load them from Postgres, which is not the question here.
 * @param {Bench} bench @param {import('../peers/peer.mjs').Peer} peer
 */
async function touchAll({ stage, options }, peer) {
  const attempts = 6;
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    const job = jobOf(peer, many.load, { connections: 64, seconds: 10 * attempt });
    const { calls } = await drive(stage.scratch, options.driver, job);
    if (calls >= manyKeys) return;
  }
  throw new Error(`${peer.name} did not get through ${manyKeys} calls in time`);
}

/** @param {Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const { rounds, connections } = bench.options;
  // A thousand keys have the tokens for one measurement, so every one gets a thousand of its own.
  const few = Array.from({ length: rounds * connections.length }, (_, index) => `few${index}`);
  const set = (/** @type {number} */ count) => ({ ...fundedKeys(1), count });
  const keySets = { many: set(manyKeys), ...Object.fromEntries(few.map((name) => [name, set(fewKeys)])) };
  const peers = await bench.peers(['tollgate'], { keySets });
  for (const peer of peers) await touchAll(bench, peer);
  const samples = [];
  for (const [index, keySet] of few.entries()) {
    const round = 1 + (index % rounds);
    const count = connections[Math.floor(index / rounds)] ?? 0;
    const kinds = [{ variant: fewVariant, load: { keySet } }, many];
    const contestants = kinds.flatMap((kind) => peers.map((peer) => ({ peer, ...kind })));
    const once = { ...bench, options: { ...bench.options, rounds: 1 } };
    const found = await alternate(once, { contestants, connections: [count] });
    samples.push(...found.map((sample) => ({ ...sample, round })));
  }
  return { columns: callColumns, rows: toRows(samples), comparisons: compare(samples, bars), samples, notes: [] };
}
