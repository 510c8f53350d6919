// @ts-check
import { alternate, alternateSeconds, loadSeconds } from '../measure/rounds.mjs';
import { evaluate } from '../report/bars.mjs';
import { callColumns, proxyCpu, redisCpu, toRows } from '../report/summary.mjs';
import { fundedKeys } from '../stage/keys.mjs';

export const question =
  'What does a call priced by use cost (hold, report, capture, the rest back), compared with a call at a fixed price?';

export const defaults = { connections: [64], seconds: 4, rounds: 5 };

const variants = ['fixed price', 'captured'];
const sides = /** @type {const} */ ({
  of: { peer: 'tollgate', variant: 'captured' },
  against: { peer: 'tollgate', variant: 'fixed price' },
});
const ratio = /** @type {const} */ ({ unit: '', is: 'at most', ...sides });
const noBar = { bar: null, stretch: null };

/** @param {import('../measure/sample.mjs').Sample} sample */
const bothCpu = (sample) => {
  const [proxy, redis] = [proxyCpu(sample), redisCpu(sample)];
  return proxy === null || redis === null ? null : proxy + redis;
};

/** @type {import('../report/bars.mjs').Bar[]} */
export const bars = [
  { ...ratio, what: 'CPU of gateway and Redis, captured vs settled', metric: bothCpu, bar: 1.05, stretch: 1.02 },
  { ...ratio, what: 'CPU of the gateway, captured vs settled', metric: proxyCpu, ...noBar },
  { ...ratio, what: 'CPU of Redis, captured vs settled', metric: redisCpu, ...noBar },
];

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = (options) => alternateSeconds(options, variants.length);

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const { options } = bench;
  const main = fundedKeys(variants.length * loadSeconds(options, options.connections.length));
  const [peer] = await bench.peers(['tollgate'], { keySets: { main }, byUse: true });
  if (peer === undefined) throw new Error('the scenario needs Tollgate');
  // Both are answered alike but for the header that reports what the call cost. One process serves both.
  const contestants = [
    { peer, variant: 'fixed price', load: { path: 'hello' } },
    { peer, variant: 'captured', load: { rawPath: `${peer.byUsePrefix}charged` } },
  ];
  const samples = await alternate(bench, { contestants, connections: options.connections });
  return { columns: callColumns, rows: toRows(samples), bars: evaluate(samples, bars), samples, notes: [] };
}
