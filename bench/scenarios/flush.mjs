// @ts-check
// Each call is made with a key that has not called since the flush, so each has to wait until its key and its wallet are loaded.
// With keys in any other order fewer calls would wait.

import { withRedis } from '../measure/redis.mjs';
import { measure } from '../measure/sample.mjs';
import { found } from '../report/bars.mjs';
import { rateLimit } from '../stage/keys.mjs';

export const question = 'After Redis has lost everything: how long until the median call takes less than 10 ms again?';

export const defaults = { connections: [2048], seconds: 20, rounds: 1 };

export const manyKeys = 100_000;
export const ratePerSecond = 1_000;
const goodMs = 10;
const known = 'keys that the gateway knows';
const unknown = 'keys that the gateway has never seen';

/** @type {import('../report/bars.mjs').Promised} */
const bar = {
  what: `seconds until the p50 is below ${goodMs} ms again after a flush`,
  unit: 's',
  is: 'at most',
  bar: 10,
  stretch: 3,
};
const promised = [bar];

export { promised as bars };

export const seedSeconds = 60;

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = ({ seconds, events }) =>
  2 * (seconds + 5) + (seedSeconds * (events ?? manyKeys)) / manyKeys;

/** @type {import('../report/summary.mjs').Column[]} */
const columns = [
  { key: 'recovered', title: `p50 < ${goodMs} ms after s`, digits: 0 },
  { key: 'worst', title: 'worst p50 ms', digits: 1 },
  { key: 'last', title: 'last p50 ms', digits: 1 },
  { key: 'refused', title: '503', digits: 0 },
  { key: 'unanswered', title: 'not answered', digits: 0 },
  { key: 'proxyMicros', title: 'gateway µs/call', digits: 0 },
  { key: 'redisMicros', title: 'Redis µs', digits: 0 },
  { key: 'writerMicros', title: 'writer µs', digits: 0 },
  { key: 'postgresMicros', title: 'Postgres µs', digits: 0 },
];

/** @typedef {import('../load/drive.mjs').OpenLoopResult['bySecond'][number]} Second */

/** After how many seconds each further second has a good median; null: not before the end. @param {readonly Second[]} seconds */
function secondsToRecover(seconds) {
  const lastBad = seconds.findLastIndex(({ p50Ms, tolerated, answered }) => {
    return p50Ms === null || p50Ms >= goodMs || tolerated > answered / 2;
  });
  return lastBad === seconds.length - 1 ? null : lastBad + 1;
}

/**
 * The gateway with its wallets loaded, as `seed` leaves them.
 * @param {import('../run.mjs').Bench} bench @param {import('../stage/keys.mjs').KeySets} [more] further keys
 */
export async function startLoaded({ options, peers }, more = {}) {
  const count = options.events ?? manyKeys;
  const [peer] = await peers(['tollgate'], { keySets: { main: { count, rateLimit, balanceUsd: 1 }, ...more } });
  const redisUrl = peer?.redisUrls?.[0];
  if (peer === undefined || redisUrl === undefined)
    throw new Error('this scenario measures only the gateway: the peer tollgate has to take part');
  return { peer, redisUrl, count };
}

const sum = (/** @type {number[]} */ numbers) => numbers.reduce((total, number) => total + number, 0);

/** @param {{ cpuMicros: import('../measure/sample.mjs').Sample['cpuMicros'] }} sample @param {readonly Second[]} seconds */
const valuesOf = ({ cpuMicros }, seconds) => ({
  recovered: secondsToRecover(seconds),
  worst: Math.max(...seconds.map(({ p50Ms }) => p50Ms ?? Number.POSITIVE_INFINITY)),
  last: seconds.at(-1)?.p50Ms ?? null,
  refused: sum(seconds.map(({ tolerated }) => tolerated)),
  unanswered: sum(seconds.map(({ due, answered }) => due - answered)),
  proxyMicros: cpuMicros.proxy,
  redisMicros: cpuMicros.redis,
  writerMicros: cpuMicros.writer,
  postgresMicros: cpuMicros.postgres,
});

/** @param {readonly Second[]} seconds */
const inWords = (seconds) =>
  seconds
    .map(
      ({ p50Ms, tolerated }) =>
        `${p50Ms === null ? '–' : p50Ms.toFixed(1)}${tolerated > 0 ? ` (${tolerated}×503)` : ''}`,
    )
    .join(' ');

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const { stage, options, processors, progress } = bench;
  const connections = options.connections[0] ?? 0;
  const { peer, redisUrl, count } = await startLoaded(bench);
  // The second load repeats the keys of the first, which the gateway knows by then.
  const load = { ratePerSecond, tolerateStatus: 503, bySecond: true, firstAuth: 0 };
  const how = { connections, seconds: options.seconds, processors };
  const rows = [];
  const samples = [];
  const notes = [
    `${count} keys; ${ratePerSecond} calls/s, each with the next key; p50 (ms) of the calls due in each second:`,
  ];
  for (const label of [unknown, known]) {
    progress(label);
    await peer.settled();
    await withRedis(redisUrl, (redis) => redis.flushall());
    const sample = { ...(await measure(stage, peer, 'open-loop', load, how)), variant: label, round: 1 };
    const seconds = sample.openLoop?.bySecond ?? [];
    notes.push(`  ${label}: ${inWords(seconds)}`);
    samples.push(sample);
    rows.push({ label, peer: 'tollgate', values: valuesOf(sample, seconds), ranges: {}, faults: [] });
  }
  const bars = rows.map(({ label, values }) => found(bar, label, [values.recovered ?? options.seconds], true));
  return { columns, rows, bars, samples, notes };
}
