// The faults that docs/guarantees.md lists under 'Seen, and not mended yet'. If a test fails here because a fault was mended,
// that page has to change as well.

import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { Reconciler } from '../../../src/ledger/reconcile/reconciler.ts';
import { CreditWallets } from '../../../src/ledger/wallets/credit-wallets.ts';
import { QUIET } from '../../support/store.ts';
import { until } from '../../support/wait.ts';
import { comeBackOlder, keepState } from './older-redis.ts';
import { ComparedLedger } from './scene.ts';

let compared: ComparedLedger;
beforeAll(async () => {
  compared = await ComparedLedger.open();
});
afterAll(() => compared.close());
beforeEach(() => compared.clear());

/** The command on that page that takes a drift out of a wallet, filled in for this account. */
function takeOutCommand(shard: number, accountId: string, driftMicros: number): [string, string[]] {
  const page = readFileSync('docs/guarantees.md', 'utf8');
  const [, command = ''] = /`redis-cli (HINCRBY [^`]+)`/.exec(page) ?? [];
  const [name = '', ...args] = command
    .replace('SHARD', String(shard))
    .replace('ACCOUNT_ID', accountId)
    .replace('-DRIFT', String(-driftMicros))
    .replaceAll("'", '')
    .split(' ');
  return [name, args];
}

it('a wallet that is wrong after two crashes of Redis stays wrong, is reported, and is right after the command on the page', async () => {
  const { ledger } = compared;
  const { store, sql } = ledger;
  const scene = await compared.newScene(10_000);
  await keepState(ledger);
  await compared.call(scene, 700);
  await compared.storeAll();
  await comeBackOlder(ledger);
  // The second crash comes after the loss was found and before it is repaired.
  await new Reconciler({ sql, redis: store.redis, keys: store.keys }, { maxRepairs: 0 }).run('test');
  const foundAt = await store.now();
  await until(async () => (await store.now()) > foundAt + 2_000);
  await comeBackOlder(ledger);

  for (let i = 0; i < 2; i++) {
    expect(await compared.drifts()).toMatchObject([
      { driftMicros: 700, notRepaired: 'the drift began before Redis started' },
    ]);
  }
  expect(await compared.balances(scene)).toEqual([10_000, 9_300]);
  const [name, args] = takeOutCommand(store.keys.shardOf(scene.accountId), scene.accountId, 700);
  await store.command(name, ...args);
  expect(await compared.drifts()).toEqual([]);
  expect(await compared.balances(scene)).toEqual([9_300, 9_300]);
});

/** @returns a function that brings Postgres back to its present state, like a restored backup or a lagging standby */
async function keepPostgres(): Promise<() => Promise<void>> {
  const { sql } = compared.ledger;
  const tables = [
    'accounts',
    'journal',
    'entries',
    'balances',
    'calls',
    'free_usage',
    'service_hours',
    'key_hours',
    'credits',
  ];
  const each = (statements: (table: string) => string) =>
    sql.unsafe(`BEGIN; SET LOCAL session_replication_role = replica; ${tables.map(statements).join('')} COMMIT;`);
  await each((table) => `DROP TABLE IF EXISTS kept_${table}; CREATE TABLE kept_${table} AS TABLE ${table};`);
  return async () => {
    await each((table) => `DELETE FROM ${table}; INSERT INTO ${table} OVERRIDING SYSTEM VALUE TABLE kept_${table};`);
  };
}

it('after Postgres came back with an older state, only loaded wallets show a drift, and none is repaired', async () => {
  const { ledger, hydrator } = compared;
  const { store } = ledger;
  const [loaded, unloaded] = [await compared.newScene(10_000), await compared.newScene(10_000)];
  const comeBack = await keepPostgres();
  for (const scene of [loaded, unloaded]) await compared.call(scene, 700);
  await compared.storeAll();
  await comeBack();
  await store.command('del', store.walletName(unloaded.accountId));
  await hydrator.loadWallet(unloaded.accountId);
  expect(await compared.drifts()).toMatchObject([{ accountId: loaded.accountId, driftMicros: -700 }]);
  expect(await compared.repairs()).toEqual([]);
  expect(await compared.balances(loaded)).toEqual([9_300, 10_000]);
  expect(await compared.balances(unloaded)).toEqual([10_000, 10_000]);
});

it('after Postgres came back older, a credit that reuses the number of a lost one reaches the wallet only once Redis is emptied', async () => {
  const { ledger, hydrator } = compared;
  const { store, sql } = ledger;
  const credits = new CreditWallets({ sql, redis: store.redis, keys: store.keys, hydrator, log: QUIET });
  const scene = await compared.newScene(10_000);
  const comeBack = await keepPostgres();
  const lost = await ledger.credit(scene.accountId, 300);
  await credits.apply({ accountId: scene.accountId, seq: lost, amountMicros: 300 });
  await comeBack();
  const seq = await ledger.credit(scene.accountId, 5_000);
  expect(seq).toBe(lost);
  await credits.apply({ accountId: scene.accountId, seq, amountMicros: 5_000 });
  expect(await compared.balances(scene)).toEqual([10_300, 15_000]);

  await store.command('flushdb');
  await hydrator.loadWallet(scene.accountId);
  expect(await compared.balances(scene)).toEqual([15_000, 15_000]);
  expect(await compared.drifts()).toEqual([]);
});
