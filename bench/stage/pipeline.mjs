// @ts-check
// Puts a million usage events into the streams, as settled calls leave them, before a writer is started. The modules of the built
// program make ids, encode the settlement and choose the shard. The text of the hold is put together here, in the form `v1`.

import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { projectDir } from '../../scripts/local/dependencies.mjs';
import { environment, runMigrations, seed, shards, startWriter } from '../peers/tollgate.mjs';
import { fundedKeys, readKeys } from './keys.mjs';

/** @typedef {import('./stage.mjs').Stage} Stage */

const buyers = 2_000;
/** What each call was charged, in micro-USD. The wallets know it, or the comparison with Postgres would try to repair all of them. */
const price = 100;
const eventsPerTrip = 1_000;
// WRITER_LOCK of src/ledger/locks.ts.
const writerLock = 7_014_656;
const providerId = '0193517b-6a3c-7c58-9d3e-5f1f8f1a7e22';
const serviceId = '0193517b-6a3c-7c58-9d3e-5f1f8f1a7e21';

/** @param {string} module */
const fromDist = (module) => import(pathToFileURL(path.join(projectDir, 'dist', module)).href);

/**
 * @param {Stage} stage @param {number} events @param {(line: string) => void} progress
 * @param {{ name?: string, isHidden?: boolean }} [options] `isHidden`: no writer finds the events before `show`
 */
export async function preparePipeline(stage, events, progress, { name = 'pipeline', isHidden = false } = {}) {
  const installed = await environment(stage, name);
  runMigrations(installed);
  await seed(stage, name, installed, { main: { ...fundedKeys(1), count: buyers } });
  const redis = new Redis(installed.redis.url, { retryStrategy: () => null });
  redis.on('error', () => {});
  const emptyBytes = await usedBytes(redis);
  const keys = readKeys(stage.file(`${name}-main.ndjson`));
  const stream = isHidden ? 'hidden' : 'usage';
  await fill(redis, keys, { events, stream }, progress);
  if (!isHidden) await charge(redis, keys, events);
  const backlog = async () => {
    const lengths = await Promise.all(Array.from({ length: shards }, (_, shard) => redis.xlen(`usage:{${shard}}`)));
    return lengths.reduce((sum, length) => sum + length, 0);
  };
  return {
    postgres: installed.database.watched,
    redis: installed.redis.masters,
    bytesPerEvent: ((await usedBytes(redis)) - emptyBytes) / events,
    backlog,
    /** @param {number} [number] of several writers */
    startWriter: (number) => startWriter(stage, installed, number),
    show: async () => {
      const names = Array.from({ length: shards }, (_, shard) => [`hidden:{${shard}}`, `usage:{${shard}}`]);
      await charge(redis, keys, events);
      await Promise.all(names.map(([from, to]) => redis.rename(String(from), String(to))));
    },
    /** How many writers have shards. */
    workingWriters: async () => {
      const sql = postgres(installed.database.url, { max: 1 });
      const [row] = await sql`
        SELECT count(DISTINCT pid)::int AS writers FROM pg_locks JOIN pg_database d ON d.oid = database
        WHERE locktype = 'advisory' AND granted AND classid::int = ${writerLock} AND d.datname = current_database()`;
      await sql.end();
      return Number(row?.writers);
    },
    storedCalls: async () => {
      const sql = postgres(installed.database.url, { max: 1 });
      const [row] = await sql`SELECT count(*)::int AS calls FROM calls`;
      await sql.end();
      return Number(row?.calls);
    },
  };
}

/** @param {Redis} redis */
async function usedBytes(redis) {
  return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1] ?? 0);
}

/**
 * Takes from the wallets what the events say that they were charged.
 * @param {Redis} redis @param {readonly import('./keys.mjs').BenchKey[]} keys @param {number} events
 */
async function charge(redis, keys, events) {
  const { shardOf } = await fromDist('platform/shards.js');
  const pipeline = redis.pipeline();
  keys.forEach(({ account_id }, index) => {
    const calls = Math.floor(events / keys.length) + (index < events % keys.length ? 1 : 0);
    pipeline.hincrby(`wallet:{${shardOf(account_id, shards)}}:${account_id}`, 'balance', -price * calls);
  });
  await pipeline.exec();
}

/**
 * @param {Redis} redis @param {readonly import('./keys.mjs').BenchKey[]} keys @param {{ events: number, stream: string }} what
 * @param {(line: string) => void} progress
 */
async function fill(redis, keys, { events, stream }, progress) {
  const [{ uuidv7 }, { shardOf }, { encodeSettlement }] = await Promise.all(
    ['platform/ids.js', 'platform/shards.js', 'ledger/usage-event.js'].map(fromDist),
  );
  const settlement = encodeSettlement({
    outcome: 'completed',
    status: 200,
    latencyUs: 1234,
    requestBytes: 0,
    responseBytes: 221,
  });
  for (let made = 0; made < events; made += eventsPerTrip) {
    progress(`${made} of ${events} events made`);
    const pipeline = redis.pipeline();
    for (let index = made; index < Math.min(events, made + eventsPerTrip); index += 1) {
      const { key_id, account_id } = /** @type {import('./keys.mjs').BenchKey} */ (keys[index % keys.length]);
      const call = [Date.now(), 'bench', account_id, key_id, serviceId, providerId, 'GET', '/hello'];
      const hold = ['v1', price, 0, ...call].join('\t');
      pipeline.xadd(`${stream}:{${shardOf(account_id, shards)}}`, '*', 'e1', [uuidv7(), hold, settlement].join('\t'));
    }
    await pipeline.exec();
  }
}
