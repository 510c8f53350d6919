import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { WRITER_LOCK } from '../../src/ledger/locks.ts';
import { reshard } from '../../src/roles/reshard.ts';
import { holdOf, Ledger, newEvent } from '../ledger/support.ts';

const LEASE_SECONDS = 15;

let ledger: Ledger;
beforeAll(async () => {
  ledger = await Ledger.open();
});
afterAll(() => ledger.close());
beforeEach(async () => {
  await ledger.clear();
  await ledger.sql`UPDATE installation SET redis_shards = 16, redis_layout = 'single'`;
});

const run = (): Promise<string> => {
  const { sql, store } = ledger;
  return reshard({ sql, redis: store.redis, keys: store.keys }, { instanceLeaseSeconds: LEASE_SECONDS });
};
const layout = async (): Promise<unknown> => (await ledger.sql`SELECT redis_shards, redis_layout FROM installation`)[0];
const names = async (): Promise<string[]> => ((await ledger.store.command('keys', '*')) as string[]).sort();

it('takes everything of an idle installation out of Redis, leaves what is not ours, and lets the next start choose', async () => {
  const accountId = await ledger.account(10_000);
  const { store } = ledger;
  const shard = store.keys.shardOf(accountId);
  await store.command('hset', store.walletName(accountId), 'balance', 10_000, 'credit_seq', 1);
  await store.command('hset', store.keys.lease[shard] as string, 'dead', (await store.now()) - 60_000);
  await store.command('hset', store.keys.open[shard] as string, 'kept', `x\t\t${await store.now()}\tdead`);
  await store.command('set', 'tollgate:shards', '16');
  await store.command('set', 'of somebody else', '1');
  expect(await run()).toMatch(/^removed 3 keys/);
  expect(await names()).toEqual(['of somebody else']);
  expect(await layout()).toEqual({ redis_shards: null, redis_layout: null });
});

it.each<[what: string, reason: RegExp, make: () => Promise<unknown>]>([
  [
    'a gateway runs',
    /a gateway runs/,
    async () => ledger.store.command('hset', ledger.store.keys.lease[1] as string, 'alive', await ledger.store.now()),
  ],
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
      await ledger.store.command('hset', ledger.store.walletName(accountId), 'balance', 9_000, 'credit_seq', 1);
    },
  ],
])('refuses while %s, and changes nothing', async (_, reason, make) => {
  await make();
  const before = await names();
  await expect(run()).rejects.toThrow(reason);
  expect(await names()).toEqual(before);
  expect(await layout()).toEqual({ redis_shards: 16, redis_layout: 'single' });
});

it('refuses while a writer has a shard', async () => {
  await ledger.sql.reserve(async (writer) => {
    await writer`SELECT pg_advisory_lock(${WRITER_LOCK}::int, 1)`;
    await expect(run()).rejects.toThrow(/a writer runs/);
    await writer`SELECT pg_advisory_unlock(${WRITER_LOCK}::int, 1)`;
  });
});
