// @ts-check
// Redis gets another replication id and keeps its data, as after a replica took over and was replaced. So the writer doubts it, and drops
// the wallets that have nothing under way, while a few of the accounts go on calling. `flush` measures calls whose wallets all have to be
// loaded.

import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { withRedis } from '../measure/redis.mjs';
import { measure } from '../measure/sample.mjs';
import { found } from '../report/bars.mjs';
import { median } from '../report/summary.mjs';
import { rateLimit } from '../stage/keys.mjs';
import { manyKeys, ratePerSecond, seedSeconds, startLoaded } from './flush.mjs';

export const question = 'When Redis may have changed: how long until all loaded wallets were dropped or compared?';

export const defaults = { connections: [2048], seconds: 20, rounds: 1 };

/** @type {import('../report/bars.mjs').Promised} */
const bar = {
  what: 'seconds until all wallets were dropped or compared',
  unit: 's',
  is: 'at most',
  bar: 5,
  stretch: 3,
};
const promised = [bar];

export { promised as bars };

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = ({ seconds, events }) => seconds + 10 + (seedSeconds * (events ?? manyKeys)) / manyKeys;

const callers = 2_000;
/** Seconds of load before, to compare with. */
const beforeSeconds = 8;

/** @type {import('../report/summary.mjs').Column[]} */
const columns = [
  { key: 'seconds', title: 'all after s', digits: 2 },
  { key: 'dropped', title: 'dropped', digits: 0 },
  { key: 'p99Before', title: 'p99 ms before', digits: 1 },
  { key: 'p99Meanwhile', title: 'worst p99 ms meanwhile', digits: 1 },
  { key: 'p99After', title: 'p99 ms after', digits: 1 },
  { key: 'refused', title: '503', digits: 0 },
];

/** @typedef {import('../load/drive.mjs').OpenLoopResult['bySecond'][number]} Second */

/** Lets the writer doubt all shards, and waits until it has compared them. @param {string} redisUrl @param {postgres.Sql} sql */
async function doubtAll(redisUrl, sql) {
  const [row] = await sql`SELECT data_id AS former FROM shard_histories`;
  return withRedis(redisUrl, async (redis) => {
    let fewest = await redis.dbsize();
    const keys = fewest;
    const startedAt = performance.now();
    await redis.multi().call('replicaof', '127.0.0.1', '1').call('replicaof', 'no', 'one').exec();
    for (;;) {
      fewest = Math.min(fewest, await redis.dbsize());
      const waiting = await sql`SELECT FROM shard_histories WHERE data_id = ${row?.former} OR verified < doubt`;
      const seconds = (performance.now() - startedAt) / 1000;
      if (waiting.length === 0) return { seconds, dropped: keys - fewest };
      if (seconds > 60) throw new Error(`${waiting.length} shards are still in doubt after 60 s`);
      // Less often than every 20 ms: each look takes time of the two processors for which all compete.
      await sleep(50);
    }
  });
}

/** @param {readonly Second[]} seconds */
const p99s = (seconds) => seconds.map(({ p99Ms }) => p99Ms ?? Number.POSITIVE_INFINITY);

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const { stage, options, processors } = bench;
  const { peer, redisUrl, count } = await startLoaded(bench, { callers: { count: callers, rateLimit, balanceUsd: 1 } });
  const { url } = await stage.database('bench_tollgate');
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  const load = { keySet: 'callers', ratePerSecond, tolerateStatus: 503, bySecond: true };
  const how = { connections: options.connections[0] ?? 0, seconds: options.seconds, processors };
  try {
    const [sample, { seconds, dropped }] = await Promise.all([
      measure(stage, peer, 'open-loop', load, how),
      sleep(beforeSeconds * 1000).then(() => doubtAll(redisUrl, sql)),
    ]);
    const bySecond = sample.openLoop?.bySecond ?? [];
    // The load begins once its connections are open, so the second in which it happened is known to a second or two.
    const endsAt = beforeSeconds + Math.ceil(seconds);
    const values = {
      seconds,
      dropped,
      p99Before: median(p99s(bySecond.slice(3, beforeSeconds - 2))),
      p99Meanwhile: Math.max(...p99s(bySecond.slice(beforeSeconds - 2, endsAt))),
      p99After: median(p99s(bySecond.slice(endsAt))),
      refused: sample.tolerated,
    };
    const label = `${count} wallets, ${ratePerSecond} calls/s of ${callers} other accounts`;
    const notes = [
      `p99 (ms) of the calls due in each second: ${p99s(bySecond)
        .map((ms) => ms.toFixed(1))
        .join(' ')}`,
    ];
    const rows = [{ label, peer: 'tollgate', values, ranges: {}, faults: [] }];
    const samples = [{ ...sample, variant: '', round: 1 }];
    return { columns, rows, bars: [found(bar, label, [seconds], true)], samples, notes };
  } finally {
    await sql.end();
  }
}
