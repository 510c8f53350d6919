import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { SettleCommand } from '../../../src/admission/commands.ts';
import { newKeyId } from '../../../src/keys/credentials.ts';
import { Reconciler } from '../../../src/ledger/reconcile/reconciler.ts';
import { STREAM_PAGE } from '../../../src/ledger/reconcile/shard-view.ts';
import { dropWalletsScript } from '../../../src/ledger/scripts.ts';
import { openPostgres } from '../../../src/platform/postgres.ts';
import type { RedisStore } from '../../../src/platform/redis.ts';
import { admit, admitAll, COMPLETED, INSTANCE, request, type Scene } from '../../admission/calls.ts';
import { hostOf } from '../../support/store.ts';
import { comeBackOlder, keepState } from './older-redis.ts';
import { ComparedLedger } from './scene.ts';

let compared: ComparedLedger;
beforeAll(async () => {
  compared = await ComparedLedger.open();
});
afterAll(() => compared.close());
beforeEach(() => compared.clear());

const isLoaded = async ({ accountId }: Scene): Promise<boolean> =>
  (await compared.ledger.store.command('exists', compared.ledger.store.walletName(accountId))) === 1;

/** Redis comes back with what it has now: other data, as far as anybody can tell. */
async function doubt(): Promise<void> {
  await keepState(compared.ledger);
  await comeBackOlder(compared.ledger);
}

const increase = ({ accountId }: Scene, field: string, by = '1') => {
  const { store } = compared.ledger;
  return store.command(by === '1' ? 'hincrby' : 'hincrbyfloat', store.walletName(accountId), field, by);
};

/** Another account of the same shard makes as many calls as a script reads, and one more. Then the account itself makes one. */
async function comeLate(scene: Scene): Promise<void> {
  const { store } = compared.ledger;
  const shardOf = ({ accountId }: Scene): number => store.keys.shardOf(accountId);
  let other = await compared.newScene(1);
  while (shardOf(other) !== shardOf(scene)) other = await compared.newScene(1);
  const calls = Array.from({ length: STREAM_PAGE + 1 }, () => request(other, 0));
  const admitted = await admitAll(store, calls);
  expect(admitted.filter(({ outcome }) => outcome === 'admitted')).toHaveLength(calls.length);
  const settlements = calls.map(({ usageId, buyer }) => new SettleCommand(usageId, buyer, false, COMPLETED, () => {}));
  await store.run(settlements, hostOf(store.keys, INSTANCE));
  await compared.call(scene, 10);
}

/** @param before  what happens between the reading of Postgres and the script that drops wallets */
function reconciler(before: () => Promise<unknown> = async () => {}): Reconciler {
  const { sql, store } = compared.ledger;
  const script: RedisStore['script'] = async (which, keys, args) => {
    if (which === dropWalletsScript) await before();
    return store.redis.script(which, keys, args);
  };
  const redis = Object.create(store.redis, {
    script: { value: script },
    command: { value: store.redis.command.bind(store.redis) },
  });
  return new Reconciler({ sql, redis, keys: store.keys });
}

it('while there is a doubt, wallets with nothing in progress leave Redis at once, and others stay', async () => {
  const { ledger } = compared;
  const scenes = await Promise.all(Array.from({ length: 5 }, () => compared.newScene(10_000)));
  const [idle, held, streamed, debited, damaged] = scenes as [Scene, Scene, Scene, Scene, Scene];
  await compared.call(idle, 100);
  await compared.storeAll();
  await compared.keepBusy(held);
  await compared.call(streamed, 100);
  await ledger.sql`
    INSERT INTO debits (account_id, seq, amount, total_before, reference, reason, state, act_id)
    VALUES (${debited.accountId}, 1, 5, 0, 'a', 'a', 'begun', 0)`;
  await ledger.store.command('hset', ledger.store.walletName(damaged.accountId), 'balance', '1.5');
  await doubt();
  const first = reconciler();
  await first.run('test');
  expect(first.dropped).toBe(1);
  expect(await Promise.all(scenes.map(isLoaded))).toEqual([false, true, true, true, true]);
  expect(await compared.balances(idle)).toEqual([9_900, 9_900]);
  // What is loaded now is known.
  await first.run('test');
  expect(await isLoaded(idle)).toBe(true);
});

it.each([
  ['a call was admitted', async (scene: Scene) => admit(compared.ledger.store, request(scene, 0))],
  ['a free call was made', async (scene: Scene) => compared.call(scene, 10, false, 5)],
  ['a call was made and refunded', async (scene: Scene) => compared.call(scene, 10, true)],
  ['more events came than are read, and then its own', comeLate],
  ['a credit came', async (scene: Scene) => increase(scene, 'credit_seq')],
  ['a debit was taken', async (scene: Scene) => increase(scene, 'debit_seq')],
  ['one of its numbers was damaged', async (scene: Scene) => increase(scene, 'free:a service', '0.5')],
])('a wallet stays when %s since Postgres was asked', async (_, change) => {
  const scene = await compared.newScene(10_000);
  await doubt();
  let isChanged = false;
  const own = reconciler(async () => {
    if (!isChanged) await change(scene);
    isChanged = true;
  });
  await own.run('test');
  expect(own.dropped).toBe(0);
});

it('a program with a single connection to Postgres can drop wallets', async () => {
  const { databaseUrl, store } = compared.ledger;
  const scene = await compared.newScene(10_000);
  await doubt();
  const sql = openPostgres({ url: databaseUrl, maxConnections: 1, applicationName: 'test' });
  try {
    await new Reconciler({ sql, redis: store.redis, keys: store.keys }).run('test');
  } finally {
    await sql.end({ timeout: 1 });
  }
  expect(await isLoaded(scene)).toBe(false);
});

it('if trees of keys cannot be deleted, no wallet is dropped, and the next run deletes both', async () => {
  const { sql, store } = compared.ledger;
  const scene = await compared.newScene(10_000);
  await sql`
    INSERT INTO api_keys (key_id, account_id, role, secret_hash, ancestors)
    VALUES (${newKeyId()}, ${scene.accountId}, 'buyer', ${'0'.repeat(64)}, ARRAY[${scene.keyId}])`;
  const tree = store.keys.key(store.keys.shardOf(scene.accountId), scene.keyId);
  await doubt();
  await store.command('hset', tree, 'tokens', '1');
  const command: RedisStore['command'] = async (name, args) => {
    if (name === 'del' && args[0] === tree) throw new Error('Redis is away');
    return store.redis.command(name, args);
  };
  const redis = Object.create(store.redis, {
    command: { value: command },
    script: { value: store.redis.script.bind(store.redis) },
  });
  await expect(new Reconciler({ sql, redis, keys: store.keys }).run('test')).rejects.toThrow('Redis is away');
  expect(await isLoaded(scene)).toBe(true);
  await reconciler().run('test');
  expect([await isLoaded(scene), await store.command('exists', tree)]).toEqual([false, 0]);
});

it('no wallet is dropped if another Postgres has trimmed: an older one could not load the wallet again', async () => {
  const scene = await compared.newScene(10_000);
  const { store } = compared.ledger;
  const mark = store.keys.mark[store.keys.shardOf(scene.accountId)] as string;
  await doubt();
  const own = reconciler(() => store.command('set', mark, '7 00000000-0000-4000-8000-000000000000'));
  await expect(own.run('test')).rejects.toMatchObject({ message: expect.stringContaining('older') });
  expect(await isLoaded(scene)).toBe(true);
});

it('a wallet that is ahead of Postgres stays, and is reported', async () => {
  const { ledger } = compared;
  const scene = await compared.newScene(10_000);
  const name = ledger.store.walletName(scene.accountId);
  await ledger.store.command('hincrby', name, 'credit_seq', 1);
  await ledger.store.command('hincrby', name, 'balance', 700);
  await doubt();
  const own = reconciler();
  const { reports } = await own.run('test');
  expect(own.dropped).toBe(0);
  expect(reports.flatMap(({ drifts }) => drifts)).toMatchObject([{ accountId: scene.accountId, driftMicros: 700 }]);
});

it('an unreadable event that waits keeps all wallets of its shard, because it may belong to any account', async () => {
  const { ledger } = compared;
  const scene = await compared.newScene(10_000);
  await ledger.appendRaw(scene.accountId, 'no id', 'nonsense', 'nonsense');
  await compared.changeBalance(scene, -100);
  await doubt();
  const own = reconciler();
  const { reports } = await own.run('test');
  expect([own.dropped, own.repaired]).toEqual([0, 0]);
  expect(reports.flatMap(({ drifts }) => drifts)).toMatchObject([{ driftMicros: -100 }]);
});

it('a full Redis is compared, and the wallets that are dropped make room', async () => {
  const { ledger } = compared;
  const [idle, busy] = [await compared.newScene(10_000), await compared.newScene(10_000)];
  await compared.keepBusy(busy);
  await compared.changeBalance(busy, 50);
  await doubt();
  await ledger.store.command('config', 'set', 'maxmemory', '1');
  const own = reconciler();
  try {
    await own.run('test');
  } finally {
    await ledger.store.command('config', 'set', 'maxmemory', '0');
  }
  expect([own.dropped, own.repaired]).toEqual([1, 1]);
  expect(await isLoaded(idle)).toBe(false);
  expect(await compared.balances(busy)).toEqual([10_000, 10_000]);
});

it('a wallet of an account with a rejected event stays: Redis is not to blame for what it lacks', async () => {
  const { ledger } = compared;
  const scene = await compared.newScene(10_000);
  await ledger.appendRaw(scene.accountId, 'no id', scene.accountId, 'nonsense');
  await compared.storeAll();
  await doubt();
  const own = reconciler();
  await own.run('test');
  expect(own.dropped).toBe(0);
});
