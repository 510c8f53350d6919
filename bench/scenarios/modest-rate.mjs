// @ts-check
import { drive } from '../load/drive.mjs';
import { alternate, alternateSeconds, loadSeconds } from '../measure/rounds.mjs';
import { jobOf } from '../measure/sample.mjs';
import { evaluate } from '../report/bars.mjs';
import { callColumns, p99, proxyCpu, toRows, wholeCpu } from '../report/summary.mjs';
import { fundedKeys } from '../stage/keys.mjs';

/** @typedef {import('../measure/sample.mjs').Sample} Sample */

export const question =
  'What does a call cost, and how long does it take, at rates far below saturation, with gateway and writer started as ' +
  '`npm start` starts them?';

export const defaults = { connections: [64], seconds: 5, rounds: 3 };

const peerNames = /** @type {const} */ (['nginx-lua', 'tollgate-default']);
const ratesPerSecond = [1_000, 4_000];
// How long each peer is warmed up at full load. At 1 000 calls/s V8 would take a minute to compile the code of a call, while a
// real installation runs for days.
const saturatedSeconds = 5;

/** @param {Sample} sample */
const p50 = ({ latency }) => latency.p50;

/** @param {number} ratePerSecond */
const variantOf = (ratePerSecond) => `${ratePerSecond} calls/s`;

/** @type {import('../report/bars.mjs').Bar[]} */
export const bars = ratesPerSecond.flatMap((ratePerSecond) => {
  const variant = variantOf(ratePerSecond);
  const sides = { of: { peer: 'tollgate-default', variant }, against: { peer: 'nginx-lua', variant } };
  const ratio = { ...sides, unit: '', is: /** @type {const} */ ('at most') };
  const what = (/** @type {string} */ metric) => `${metric} at ${variant} vs nginx + Lua + Redis`;
  return [
    { ...ratio, what: what('CPU'), metric: proxyCpu, bar: 1.0, stretch: 0.8 },
    { ...ratio, what: what('CPU of the whole call'), metric: wholeCpu, bar: 1.0, stretch: null },
    { ...ratio, what: what('p50'), metric: p50, bar: 1.0, stretch: null },
    { ...ratio, what: what('p99'), metric: p99, bar: 1.0, stretch: 0.7 },
  ];
});

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = (options) =>
  peerNames.length * saturatedSeconds + alternateSeconds(options, peerNames.length * ratesPerSecond.length);

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const { connections, driver } = bench.options;
  const main = fundedKeys(saturatedSeconds + ratesPerSecond.length * loadSeconds(bench.options, connections.length));
  const peers = await bench.peers(peerNames, { keySets: { main } });
  for (const peer of peers) {
    bench.progress(`warming up ${peer.name}`);
    await drive(bench.stage.scratch, driver, jobOf(peer, {}, { connections: 64, seconds: saturatedSeconds }));
    await peer.settled();
  }
  // One rate after the other, so that the same round of both peers is measured at nearly the same time.
  const samples = [];
  for (const ratePerSecond of ratesPerSecond) {
    const contestants = peers.map((peer) => ({ peer, load: { ratePerSecond }, variant: variantOf(ratePerSecond) }));
    samples.push(...(await alternate(bench, { contestants, connections })));
  }
  const lateness = Math.max(...samples.map(({ openLoop }) => openLoop?.latenessP99Micros ?? 0));
  const notes = [
    `each peer was warmed up with ${saturatedSeconds} s of all the load that it can take`,
    'the gaps between calls are exponential and the same for both; each call is timed from the moment at which it was due',
    `at its worst p99 the driver itself was late by ${(lateness / 1000).toFixed(2)} ms, which is part of every latency here`,
    "Tollgate's CPU is that of the gateway and its supervisor. Its writer and Postgres, which the peer does not have, have " +
      'columns of their own. The whole call is all of it, for both: the Redis of the peer has an append-only file too, but nobody ' +
      'reads or keeps its usage stream',
  ];
  return { columns: callColumns, rows: toRows(samples), bars: evaluate(samples, bars), samples, notes };
}
