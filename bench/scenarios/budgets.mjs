// @ts-check
import { alternate, alternateSeconds, loadSeconds } from '../measure/rounds.mjs';
import { evaluate } from '../report/bars.mjs';
import { callColumns, proxyCpu, redisCpu, toRows } from '../report/summary.mjs';
import { fundedKeys } from '../stage/keys.mjs';

export const question =
  "What does a call of a key with budgets cost Redis, compared with a call of an account's own key?";

export const defaults = { connections: [64], seconds: 4, rounds: 5 };

const peer = 'tollgate';
const plain = { peer, variant: 'plain' };
const one = { peer, variant: 'one budget' };
const four = { peer, variant: 'four levels' };
const ratio = /** @type {const} */ ({ unit: '', is: 'at most' });

/** @type {import('../report/bars.mjs').Bar[]} */
export const bars = [
  {
    ...ratio,
    what: 'CPU of Redis, one budget vs plain',
    of: one,
    against: plain,
    metric: redisCpu,
    bar: 1.25,
    stretch: 1.15,
  },
  {
    ...ratio,
    what: 'CPU of Redis, four levels vs plain',
    of: four,
    against: plain,
    metric: redisCpu,
    bar: 1.5,
    stretch: 1.35,
  },
  {
    ...ratio,
    what: 'CPU of the gateway, four levels vs plain',
    of: four,
    against: plain,
    metric: proxyCpu,
    bar: null,
    stretch: null,
  },
];

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = (options) => alternateSeconds(options, 3);

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const { options } = bench;
  const keys = fundedKeys(loadSeconds(options, options.connections.length));
  // Four levels are the account's own key and three with a budget below it.
  const keySets = { plain: keys, one: { ...keys, levels: 1 }, four: { ...keys, levels: 3 } };
  const [tollgate] = await bench.peers([peer], { keySets });
  if (tollgate === undefined) throw new Error('the scenario needs Tollgate');
  const contestants = [
    { peer: tollgate, variant: plain.variant, load: { path: 'hello', keySet: 'plain' } },
    { peer: tollgate, variant: one.variant, load: { path: 'hello', keySet: 'one' } },
    { peer: tollgate, variant: four.variant, load: { path: 'hello', keySet: 'four' } },
  ];
  const samples = await alternate(bench, { contestants, connections: options.connections });
  return { columns: callColumns, rows: toRows(samples), bars: evaluate(samples, bars), samples, notes: [] };
}
