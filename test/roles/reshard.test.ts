import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { keepLayout, type Layout, layoutOf, WrongLayout } from '../../src/ledger/layout.ts';
import { FLUSH_LOCK, WRITER_LOCK } from '../../src/ledger/locks.ts';
import { Hydrator } from '../../src/ledger/wallets/hydrate.ts';
import { PostgresSession } from '../../src/platform/postgres.ts';
import { RedisKeys } from '../../src/platform/redis-keys.ts';
import { reshard, takeBackReshard } from '../../src/roles/reshard.ts';
import { holdOf, Ledger, newEvent } from '../ledger/support.ts';
import { QUIET, SHARDS } from '../support/store.ts';
import { until } from '../support/wait.ts';

const LEASE_SECONDS = 15;

let ledger: Ledger;
let ours: Layout;
beforeAll(async () => {
  ledger = await Ledger.open();
  ours = layoutOf(ledger.store);
});
afterAll(() => ledger.close());
beforeEach(async () => {
  await ledger.clear();
  await ledger.knowRedis();
  await ledger.sql`UPDATE installation SET redis_shards = ${ours.shards}, redis_layout = ${ours.layout}, moving_since = NULL`;
});

type Step = 'moving' | 'compared' | 'removed';
const STEPS: readonly Step[] = ['moving', 'compared', 'removed'];

const stores = () => ({ sql: ledger.sql, redis: ledger.store.redis, keys: ledger.store.keys });
const run = (afterStep?: (step: Step) => Promise<void> | void): Promise<string> =>
  reshard(stores(), { instanceLeaseSeconds: LEASE_SECONDS, ...(afterStep && { afterStep }) });
const layout = async (): Promise<unknown> =>
  (await ledger.sql`SELECT redis_shards, redis_layout, moving_since IS NOT NULL AS moving FROM installation`)[0];
const KEPT = () => ({ redis_shards: ours.shards, redis_layout: ours.layout, moving: false });
const NONE = { redis_shards: null, redis_layout: null, moving: false };
const names = async (): Promise<string[]> => ((await ledger.store.command('keys', '*')) as string[]).sort();
const lease = async (instance: string): Promise<unknown> =>
  ledger.store.command('hset', ledger.store.keys.lease[1] as string, instance, await ledger.store.now());

/** Loads a wallet as a process does that was started with this number of shards. @returns its balance in Redis */
async function load(accountId: string, shards: number): Promise<number> {
  const keys = new RedisKeys(shards);
  const { databaseUrl, sql, store } = ledger;
  const hydrator = new Hydrator({ databaseUrl, sql, redis: store.redis, keys, log: QUIET });
  try {
    await hydrator.loadWallet(accountId);
    return Number(await store.command('hget', keys.wallet(keys.shardOf(accountId), accountId), 'balance'));
  } finally {
    hydrator.close();
  }
}

it('the command removes everything of an idle installation from Redis, keeps other data, and lets the next start choose', async () => {
  const accountId = await ledger.account(10_000);
  const { store } = ledger;
  const shard = store.keys.shardOf(accountId);
  await ledger.setWallet(accountId, 10_000);
  await store.command('hset', store.keys.lease[shard] as string, 'dead', (await store.now()) - 60_000);
  await store.command('hset', store.keys.open[shard] as string, 'kept', `x\t\t${await store.now()}\tdead`);
  await store.command('set', 'tollgate:shards', String(ours.shards));
  await store.command('set', 'of somebody else', '1');
  expect(await run()).toMatch(/^removed 3 keys/);
  expect(await names()).toEqual(['of somebody else']);
  expect(await layout()).toEqual(NONE);
});

it.each<[what: string, reason: RegExp, make: () => Promise<unknown>]>([
  ['a gateway runs', /a gateway runs/, () => lease('alive')],
  ['an event is not stored', /1 events that are not stored and 0 open calls/, () => ledger.append(newEvent())],
  [
    'a call is open',
    /0 events that are not stored and 1 open calls/,
    async () => {
      const event = newEvent();
      const open = ledger.store.keys.open[ledger.store.keys.shardOf(event.accountId)] as string;
      await ledger.store.command('hset', open, event.usageId, holdOf(event));
    },
  ],
  [
    'a wallet disagrees with Postgres',
    /1 wallets disagree with Postgres/,
    async () => {
      const accountId = await ledger.account(10_000);
      await ledger.setWallet(accountId, 9_000);
    },
  ],
])('the command refuses while %s, and changes nothing', async (_, reason, make) => {
  await make();
  const before = await names();
  await expect(run()).rejects.toThrow(reason);
  expect(await names()).toEqual(before);
  expect(await layout()).toEqual(KEPT());
});

it('the command refuses while a writer has a shard', async () => {
  await ledger.sql.reserve(async (writer) => {
    await writer`SELECT pg_advisory_lock(${WRITER_LOCK}::int, 1)`;
    await expect(run()).rejects.toThrow(/a writer runs/);
    await writer`SELECT pg_advisory_unlock(${WRITER_LOCK}::int, 1)`;
  });
});

it('the command refuses while a writer without a shard is running, and does not stop that writer', async () => {
  await ledger.sql.reserve(async (other) => {
    await other`SELECT pg_advisory_lock(${WRITER_LOCK}::int, shard) FROM generate_series(0, ${ours.shards - 1}::int) AS shard`;
    const writer = ledger.startWriter();
    await until(async () => (await ledger.advisoryLocks({ granted: true })).length > ours.shards);
    await other`SELECT pg_advisory_unlock_all()`;
    await expect(run()).rejects.toThrow(/a writer runs, or another reshard/);
    await until(() => writer.stats().ownedShards === ours.shards);
  });
  expect(await layout()).toEqual(KEPT());
});

it.each(STEPS.slice(0, 2))('at the step %s no process can start, load a wallet or store calls', async (at) => {
  const accountId = await ledger.account(10_000);
  let steps = 0;
  await run(async (step) => {
    if (step !== at) return;
    steps++;
    await expect(keepLayout(ledger.sql, ours)).rejects.toThrow(/`main.js reshard --take-back` to stay with/);
    await expect(load(accountId, ours.shards)).rejects.toThrow(WrongLayout);
    // These passed the check of their start before.
    const writer = ledger.startWriter();
    await until(async () => (await ledger.advisoryLocks({ granted: false })).length > 0);
    expect(writer.stats().ownedShards).toBe(0);
    await expect(takeBackReshard(stores())).rejects.toThrow(/another reshard/);
  });
  expect(steps).toBe(1);
  expect(await names()).toEqual([]);
  // Also after it, they stay out of the data of the next layout.
  await expect(load(accountId, ours.shards)).rejects.toThrow(WrongLayout);
  await ledger.stopWriters();
});

it('a gateway that passed its start check just before is found by its lease, and the data stay where they are', async () => {
  const accountId = await ledger.account(10_000);
  await ledger.setWallet(accountId, 10_000);
  await expect(run((step) => void (step === 'moving' && lease('late')))).rejects.toThrow(/a gateway runs/);
  expect(await ledger.store.balance(accountId)).toBe(10_000);
  expect(await layout()).toEqual(KEPT());
  await keepLayout(ledger.sql, ours);
});

it('the command waits for wallets that were already loading, so that none is left behind', async () => {
  const accountId = await ledger.account(10_000);
  const { store, databaseUrl } = ledger;
  const loading = new PostgresSession({ url: databaseUrl, applicationName: 'test' });
  await loading.query('SELECT pg_advisory_lock_shared($1::int, $2::int)', [FLUSH_LOCK, store.keys.shardOf(accountId)]);
  let isOver = false;
  const ended = run().finally(() => (isOver = true));
  await until(async () => (await ledger.advisoryLocks({ granted: false })).length > 0);
  await ledger.setWallet(accountId, 10_000);
  expect(isOver).toBe(false);
  loading.close();
  expect(await ended).toMatch(/^removed 1 keys/);
  expect(await names()).toEqual([]);
});

const killAt = (at: Step, before: () => Promise<unknown> = async () => {}) =>
  expect(
    run(async (step) => {
      if (step !== at) return;
      await before();
      throw new Error('killed');
    }),
  ).rejects.toThrow('killed');

it.each(STEPS.flatMap((step) => [3, SHARDS].map((shards) => [step, shards] as const)))(
  'if killed when %s, the command can be run again or undone, and with %i shards each balance is exact',
  async (step, shards) => {
    const { store, sql } = ledger;
    const accounts = await Promise.all([10_000, 20_000, 30_000].map((micros) => ledger.account(micros)));
    const [first = ''] = accounts;
    for (const [i, id] of accounts.entries()) await ledger.setWallet(id, 10_000 * (i + 1));
    // Between 'compared' and 'removed' it may have removed a part.
    await killAt(step, async () => step === 'compared' && store.command('del', store.walletName(first)));
    expect(await layout()).toEqual({ ...KEPT(), moving: true });
    await expect(keepLayout(sql, ours)).rejects.toThrow(WrongLayout);
    await expect(keepLayout(sql, { ...ours, shards: 3 })).rejects.toThrow(/has its data 2 shards/);
    await expect(load(first, ours.shards)).rejects.toThrow(WrongLayout);
    if (shards === ours.shards) {
      expect(await takeBackReshard(stores())).toMatch(/keeps its layout/);
      expect(await takeBackReshard(stores())).toMatch(/no reshard had begun/);
    } else {
      await killAt(step);
      await run();
      expect(await layout()).toEqual(NONE);
      await expect(load(first, ours.shards)).rejects.toThrow(WrongLayout);
    }
    await keepLayout(sql, { ...ours, shards });
    const balances = await Promise.all(accounts.map((id) => load(id, shards)));
    expect(balances).toEqual([10_000, 20_000, 30_000]);
    expect((await names()).filter((name) => name.startsWith('wallet:'))).toHaveLength(3);
  },
);
