// @ts-check
import { drive } from '../load/drive.mjs';
import { alternate, alternateSeconds } from '../measure/rounds.mjs';
import { jobOf } from '../measure/sample.mjs';
import { evaluate } from '../report/bars.mjs';
import { callColumns, toRows } from '../report/summary.mjs';
import { fundedKeys } from '../stage/keys.mjs';

/** @typedef {import('../run.mjs').Bench} Bench */

export const question = 'Do calls get slower when 100 000 different keys make them instead of 1 000?';

export const defaults = { connections: [64], seconds: 4, rounds: 3 };

const manyKeys = 100_000;
const fewKeys = 1_000;
const many = { variant: '100 000 keys', load: { keySet: 'many' } };
const fewVariant = '1 000 keys';

/** @type {import('../report/bars.mjs').Bar[]} */
export const bars = [
  {
    what: 'calls/s with 100 000 keys vs 1 000 keys',
    unit: '',
    is: 'at least',
    of: { peer: 'tollgate', variant: many.variant },
    against: { peer: 'tollgate', variant: fewVariant },
    metric: ({ callsPerSecond }) => callsPerSecond,
    bar: 0.9,
    stretch: 0.97,
  },
];

// How long it takes to make 100 000 keys and to call once with each.
const preparationSeconds = 30;

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = (options) => {
  const { connections, rounds } = options;
  const once = { ...options, connections: [1], rounds: 1 };
  return preparationSeconds + connections.length * rounds * alternateSeconds(once, 2);
};

const touchSeconds = 10;
const touchAttempts = 6;

/**
 * Calls once with every key. The first call of a key loads it from Postgres, which is not to be measured here.
 * @param {Bench} bench @param {import('../peers/peer.mjs').Peer} peer
 * @returns {Promise<number>} how many keys have been used
 */
async function touchAll({ stage, options, progress }, peer) {
  let touched = 0;
  for (let attempt = 0; attempt < touchAttempts && touched < manyKeys; attempt += 1) {
    progress(`${touched} of ${manyKeys} keys have made their first call`);
    const job = { ...jobOf(peer, many.load, { connections: 64, seconds: touchSeconds }), firstAuth: touched };
    touched += (await drive(stage.scratch, options.driver, job)).calls;
  }
  return Math.min(touched, manyKeys);
}

/** @param {Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const { rounds, connections } = bench.options;
  // A thousand keys have tokens for one measurement only, so each measurement gets a thousand keys of its own.
  const few = Array.from({ length: rounds * connections.length }, (_, index) => `few${index}`);
  const set = (/** @type {number} */ count) => ({ ...fundedKeys(1), count });
  const keySets = { many: set(manyKeys), ...Object.fromEntries(few.map((name) => [name, set(fewKeys)])) };
  const peers = await bench.peers(['tollgate'], { keySets });
  const notes = [];
  for (const peer of peers) {
    const touched = await touchAll(bench, peer);
    if (touched < manyKeys) notes.push(`only ${touched} of the ${manyKeys} keys had made their first call before`);
  }
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
  return { columns: callColumns, rows: toRows(samples), bars: evaluate(samples, bars), samples, notes };
}
