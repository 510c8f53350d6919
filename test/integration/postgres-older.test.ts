// A Postgres that goes back: its database is replaced by an earlier copy, while gateway and writer run.

import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { Fence } from '../../src/ledger/history/fence.ts';
import { runAcceptPostgres } from '../support/accept-postgres.ts';
import { copyDatabase } from '../support/stores.ts';
import { until } from '../support/wait.ts';
import { Marketplace } from './marketplace.ts';
import { Scene } from './scene.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
/** Wallets are loaded in a shard that has lost no flush. Here there is one shard, so each of them has. */
const SHARDS = '1';
const RECONCILIATION = '/api/v1/admin/reconciliation';

let market: Marketplace;
let scene: Scene;
let copy: Awaited<ReturnType<typeof copyDatabase>>;
let database: string;
beforeAll(async () => {
  market = await Marketplace.start({ REDIS_SHARDS: SHARDS });
  scene = await Scene.open(market, async (peer) => {
    for (;;) {
      await peer.takeRequest();
      peer.send(OK);
    }
  });
});
afterAll(async () => {
  await scene.close();
  await market.stop();
  await copy.drop();
});

const call = async (): Promise<number> => (await (await scene.call()).response()).status;
const balance = async (): Promise<number> => (await market.balance(scene.buyer)).balance;
/** @returns the status */
async function credit(amount: number, reference: string): Promise<number> {
  const body = { account_id: scene.buyer.account_id, amount, reference };
  return (await market.request('/api/v1/admin/credits', { key: market.admin, method: 'POST', body })).status;
}

/** Whether Postgres is there, and is older. */
const isOlder = (): Promise<boolean> =>
  new Fence(market.stores).check().then(
    () => false,
    (error: unknown) => String(error).includes('older than Redis'),
  );

/** Whatever moves money says that it has not, and why. */
async function refuseAll(): Promise<void> {
  const about = { account_id: scene.buyer.account_id, amount: 1, reference: 'refused' };
  for (const [path, body] of [
    ['credits', about],
    ['debits', { ...about, reason: 'x' }],
    ['payouts', about],
    [`reconciliation/${scene.buyer.account_id}`, { believe: 'postgres', reason: 'x', reference: 'refused' }],
  ] as const) {
    // More than once: the first may find that its session was cut.
    await until(async () => {
      const answer = await market.request(`/api/v1/admin/${path}`, { key: market.admin, method: 'POST', body });
      expect([path, answer.status]).toEqual([path, 503]);
      return /^Postgres is older than Redis: .* No money moves/.test(
        ((await answer.json()) as { message: string }).message,
      );
    });
  }
}

/** Two calls for 0.1 USD each, and a credit of 7 USD, all stored and in the wallet. */
async function earnAndSpend(reference: string): Promise<void> {
  expect([await call(), await call()]).toEqual([200, 200]);
  expect(await credit(7, reference)).toBe(201);
  await market.settled();
}

function accept(options: readonly string[] = []) {
  const url = new URL(inject('postgresAdminUrl'));
  url.pathname = `/${database}`;
  const env = { DATABASE_URL: url.href, REDIS_URL: market.redis.url, REDIS_SHARDS: SHARDS, LOG_LEVEL: 'error' };
  return runAcceptPostgres({ env, options });
}

it('an older Postgres moves no money and loses none until the right one is back, or an operator accepts the older one', {
  timeout: 180_000,
}, async () => {
  const [row] = await market.stores.sql<{ name: string }[]>`SELECT current_database() AS name`;
  database = row?.name as string;
  expect(await call()).toBe(200);
  const unloaded = await market.buyer(3);
  await market.settled();
  const load = async () => (await market.request(`${scene.path}/`, { key: unloaded })).status;
  const leaked = await market.buyer(3);
  const callLeaked = async () => (await market.request(`${scene.path}/`, { key: leaked })).status;
  expect(await callLeaked()).toBe(200);
  await market.settled();
  copy = await copyDatabase(database);
  await until(async () => (await market.request('/readyz')).status === 200);
  await earnAndSpend('lost');
  expect(await balance()).toBe(7.7);
  await market.json(`/api/v1/keys/${leaked.key_id}`, { key: market.admin, method: 'DELETE' });

  // The older one: nothing is stored in it, loaded from it, or credited.
  await copy.swap();
  const { redis, keys } = market.stores;
  await redis.command('del', [keys.wallet(keys.shardOf(unloaded.account_id), unloaded.account_id)]);
  expect(await call()).toBe(200);
  await until(() => market.log.lines.some((line) => line.includes('postgres lacks flushes of this shard')));
  await until(isOlder);
  // More than once: the first may find that its session was cut.
  for (let times = 0; times < 3; times++) expect([await credit(5, 'refused'), await load()]).toEqual([503, 503]);
  await refuseAll();
  expect(await balance()).toBe(7.6);
  // It does not know the revocation, and Redis is believed.
  await until(async () => {
    expect([401, 503]).toContain(await callLeaked());
    return market.log.lines.some((line) => line.includes('cannot publish the state of a key'));
  });

  // The right one is back.
  await copy.swap();
  await until(async () => (await credit(1, 'after that')) === 201);
  await market.settled();
  expect(await balance()).toBe(8.6);
  await until(async () => (await load()) === 200);
  await market.settled();
  expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
  expect(await market.records(scene.buyer)).toHaveLength(4);

  // It is gone for good.
  await copy.swap();
  await until(isOlder);
  expect(await credit(5, 'refused')).toBe(503);
  expect((await accept(['--yes', '000000000000'])).printed).toContain('nothing was changed');
  expect(await credit(5, 'refused')).toBe(503);
  const { code, printed } = await accept();
  expect(code, printed).toBe(0);
  expect(printed).toContain(`${scene.buyer.account_id}  +7.7  (wallet 8.6, by Postgres 0.9; 2 credits or refunds)`);
  await until(async () => (await credit(7, 'lost')) === 201);
  expect(await credit(1, 'after that')).toBe(201);
  await market.json(RECONCILIATION, { key: market.admin, method: 'POST' });
  expect(await call()).toBe(200);
  await market.settled();
  expect(await balance()).toBeCloseTo(0.9 + 7 + 1 - 0.1, 6);
  expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });

  // The one that was given up comes back after all.
  await copy.swap();
  await until(isOlder);
  expect(await credit(5, 'refused')).toBe(503);
});
