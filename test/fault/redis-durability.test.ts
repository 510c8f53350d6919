// What a dying Redis can lose. A crash is SIGKILL. A power failure is SIGKILL and an append-only file that ends earlier, because
// bytes that the kernel had not written to the disk are gone. Redis fsyncs once a second (`everysec`), so the file may end
// anywhere after the last fsync. The tests cut it at every kind of position, even in the middle of a command.

import { cpSync, mkdirSync, readdirSync, statSync, truncateSync } from 'node:fs';
import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type RunningRedis, startRedis } from '../../scripts/local/redis.mjs';
import { Reconciler } from '../../src/ledger/reconcile/reconciler.ts';
import { decodeUsageEvent } from '../../src/ledger/usage-event.ts';
import type { Sql } from '../../src/platform/postgres.ts';
import { RedisClient } from '../../src/platform/redis.ts';
import type { RedisKeys } from '../../src/platform/redis-keys.ts';
import { authorization, type Key, Marketplace, startService, type TestService } from '../integration/marketplace.ts';
import { infoNumber } from '../support/redis-info.mjs';
import { oneRedis } from '../support/redis-kind.ts';
import { QUIET } from '../support/store.ts';
import { scratchDir, scratchRunDir } from '../support/stores.ts';
import { until } from '../support/wait.ts';
import { Random } from './random.ts';

const CALLERS = 6;
const CALLS = 20;
const CUTS = 12;
const PRICE = 0.001;

/** A call that was answered completely, and the length of the append-only file with all that Redis had done by then. */
type Answered = { readonly usageId: string; readonly fileBytes: number };

let market: Marketplace;
let service: TestService;
let copies = 0;

afterEach(async () => {
  await market.stop();
  await service.close();
});

async function open(appendfsync: 'always' | 'everysec', writer: boolean): Promise<{ url: string; buyer: Key }> {
  service = await startService((request, response) => {
    request.resume();
    setTimeout(() => response.end('done'), 5);
  });
  market = await Marketplace.start({}, { writer, durableRedis: true });
  await market.stores.redis.command('config', ['set', 'appendfsync', appendfsync]);
  const proxyPath = await market.service({ endpoint: service.url, price: PRICE });
  return { url: `${market.baseUrl + proxyPath}/`, buyer: await market.buyer(1) };
}

/** The file that Redis appends to. */
function appendOnlyFile(dir: string): string {
  const folder = path.join(dir, 'appendonlydir');
  const name = readdirSync(folder).find((file) => file.endsWith('.incr.aof'));
  return path.join(folder, name as string);
}

/** Bytes that Redis has in its append-only file, and bytes that it still has to write there. */
async function appended(): Promise<{ written: number; heldBack: number }> {
  const info = (await market.stores.redis.command('info', ['persistence'])) as string;
  // After a restart, both sizes include the snapshot that the file began with.
  const written = infoNumber(info, 'aof_current_size') - infoNumber(info, 'aof_base_size');
  return { written, heldBack: infoNumber(info, 'aof_buffer_length') };
}

/**
 * Kills Redis when its file has everything. While an fsync is under way, `everysec` replies before it writes, and a kill would
 * take what was held back: the tests cut the file themselves.
 * @returns the length of the file
 */
async function killWhenWritten(): Promise<number> {
  const { written } = await until(async () => {
    const now = await appended();
    return now.heldBack === 0 && now;
  });
  await market.redis.kill();
  const bytes = statSync(appendOnlyFile(market.redis.dir)).size;
  // What Redis says of its file is what the answered calls are compared with.
  expect(bytes).toBeGreaterThanOrEqual(written);
  return bytes;
}

/** Calls from several callers at once, so that batches of several commands are under way when Redis dies. */
async function callMany({ url, buyer }: { url: string; buyer: Key }): Promise<Answered[]> {
  const answered: Answered[] = [];
  const call = async (): Promise<void> => {
    const response = await fetch(url, { headers: { Authorization: authorization(buyer) } });
    if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
    await response.text();
    const usageId = response.headers.get('x-acf-usage-id') as string;
    const { written, heldBack } = await appended();
    answered.push({ usageId, fileBytes: written + heldBack });
  };
  const caller = async (): Promise<void> => {
    for (let i = 0; i < CALLS; i++) await call();
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  return answered;
}

/** Starts a Redis with the first bytes of the dead one's file. */
async function comeBackWith(bytes: number): Promise<{ server: RunningRedis; redis: RedisClient }> {
  const name = `${path.basename(market.redis.dir)}-copy-${copies++}`;
  const dir = path.join(scratchDir(), name);
  mkdirSync(dir);
  cpSync(market.redis.dir, dir, { recursive: true });
  truncateSync(appendOnlyFile(dir), bytes);
  const server = await startRedis({ dir, name, runDir: scratchRunDir() });
  const redis = new RedisClient({ url: server.url, name: 'test', commandTimeoutMs: 5_000 }, QUIET);
  await redis.connect();
  return { server, redis };
}

/** All drifts found in this copy of Redis, whether repaired or not. */
async function driftsOf(sql: Sql, redis: RedisClient, keys: RedisKeys): Promise<{ driftMicros: number }[]> {
  const name = `cut-${copies}`;
  const { reports } = await new Reconciler({ sql, redis, keys }).run(name);
  const repairs = await sql<{ change: string }[]>`SELECT change FROM repairs WHERE made_by = ${name}`;
  const repaired = repairs.map(({ change }) => ({ driftMicros: -Number(change) }));
  return [...reports.flatMap(({ drifts }) => drifts), ...repaired];
}

/** The calls and drifts of a Redis that comes back with this many bytes of its file. */
async function remainsOf(bytes: number) {
  const { server, redis } = await comeBackWith(bytes);
  const { keys, sql } = market.stores;
  try {
    const held = (await Promise.all(keys.open.map((name) => redis.command('hkeys', [name])))) as string[][];
    const events = (await Promise.all(keys.usage.map((name) => redis.command('xrange', [name, '-', '+'])))) as [
      string,
      string[],
    ][][];
    const known = new Set([
      ...held.flat(),
      ...events.flat().map(([, fields]) => decodeUsageEvent(fields[1] as string).usageId),
    ]);
    return { known, drifts: await driftsOf(sql, redis, keys) };
  } finally {
    redis.destroy();
    await server.stop();
  }
}

/** Positions at which to cut the file: where calls were answered, and anywhere between. */
function placesToCut(answered: readonly Answered[], wholeBytes: number): number[] {
  const random = new Random(answered.length);
  const first = (answered[0] as Answered).fileBytes;
  return Array.from({ length: CUTS }, (_, i) =>
    i % 2 === 0 ? random.pick(answered).fileBytes : random.int(first, wholeBytes),
  );
}

describe.skipIf(oneRedis('kills it and cuts its file'))('a Redis that dies', () => {
  it('keeps every charge of an answered call with appendfsync=always, whenever Redis is killed', async () => {
    const { url, buyer } = await open('always', false);
    const answered: string[] = [];
    let isDead = false;
    const caller = async (): Promise<void> => {
      while (!isDead) {
        const response = await fetch(url, { headers: { Authorization: authorization(buyer) } });
        await response.text();
        if (response.status === 200) answered.push(response.headers.get('x-acf-usage-id') as string);
        if (answered.length >= CALLERS * CALLS && !isDead) {
          isDead = true;
          await market.redis.kill();
        }
      }
    };
    await Promise.all(Array.from({ length: CALLERS }, caller));
    const { known, drifts } = await remainsOf(statSync(appendOnlyFile(market.redis.dir)).size);
    expect(answered.filter((usageId) => !known.has(usageId))).toEqual([]);
    expect(drifts).toEqual([]);
    // The gateway still has settlements to send.
    await market.redis.restart();
  });

  it('loses a charge only together with its event, wherever its file ends', async () => {
    const scene = await open('everysec', false);
    const answered = await callMany(scene);
    const wholeBytes = await killWhenWritten();
    const lost: number[] = [];
    for (const bytes of placesToCut(answered, wholeBytes)) {
      const { known, drifts } = await remainsOf(bytes);
      expect(drifts, `cut at ${bytes} of ${wholeBytes}`).toEqual([]);
      const missing = answered.filter(({ usageId }) => !known.has(usageId));
      // A cut does not lose calls that were answered when the file was no longer than that.
      expect(missing.filter(({ fileBytes }) => fileBytes <= bytes)).toEqual([]);
      lost.push(missing.length);
    }
    // If no cut lost calls, the test would prove nothing.
    expect(Math.max(...lost)).toBeGreaterThan(0);
    await market.redis.restart();
  });

  it('never takes money from a buyer if it returns with less than the writer has stored: the platform bears the loss', async () => {
    const scene = await open('everysec', true);
    const answered = await callMany(scene);
    await market.settled();
    const wholeBytes = await killWhenWritten();
    let given = 0;
    for (const bytes of placesToCut(answered, wholeBytes)) {
      const { drifts } = await remainsOf(bytes);
      for (const { driftMicros } of drifts) {
        expect(driftMicros, `cut at ${bytes} of ${wholeBytes}`).toBeGreaterThan(0);
        // Never more than the sum of all charges.
        expect(driftMicros).toBeLessThanOrEqual(answered.length * PRICE * 1e6);
        given = Math.max(given, driftMicros);
      }
    }
    expect(given).toBeGreaterThan(0);
    await market.redis.restart();
  });
});
