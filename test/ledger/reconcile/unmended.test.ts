// What docs/guarantees.md says under 'Seen, and not mended yet': where a test here fails because something was mended, the
// page has to change as well.

import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { Reconciler } from '../../../src/ledger/reconcile/reconciler.ts';
import { CreditWallets } from '../../../src/ledger/wallets/credit-wallets.ts';
import { QUIET } from '../../admission/redis.ts';
import { until } from '../../support/wait.ts';
import { comeBackOlder, keepState } from './older-redis.ts';
import { ComparedLedger } from './scene.ts';

let compared: ComparedLedger;
beforeAll(async () => {
  compared = await ComparedLedger.open();
});
afterAll(() => compared.close());
beforeEach(() => compared.ledger.clear());

/** The command of the page that takes a drift out of a wallet, for this account. */
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

it('a wallet that two crashes of Redis left wrong stays so, is reported, and is right after the command on the page', async () => {
  const { ledger } = compared;
  const { store, sql } = ledger;
  const scene = await compared.newScene(10_000);
  await keepState(ledger);
  await compared.call(scene, 700);
  await compared.storeAll();
  await comeBackOlder(ledger);
  // The second crash comes when the loss was found and before it was repaired.
  await new Reconciler({ sql, redis: store.redis, keys: store.keys }, 0).run('test');
  const foundAt = await store.now();
  await until(async () => (await store.now()) > foundAt + 2_000);
  await comeBackOlder(ledger);

  for (let i = 0; i < 2; i++) {
    expect(await compared.drifts()).toMatchObject([{ driftMicros: 700, unproven: 'it was so before Redis started' }]);
  }
  expect(await compared.balances(scene)).toEqual([10_000, 9_300]);
  const [name, args] = takeOutCommand(store.keys.shardOf(scene.accountId), scene.accountId, 700);
  await store.command(name, ...args);
  expect(await compared.drifts()).toEqual([]);
  expect(await compared.balances(scene)).toEqual([9_300, 9_300]);
});

/** @returns brings Postgres back to what it is now, as a restored backup or a standby that lags does */
async function keepPostgres(): Promise<() => Promise<void>> {
  const { sql } = compared.ledger;
  const tables = ['accounts', 'journal', 'entries', 'balances', 'calls', 'free_usage', 'service_days', 'credits'];
  const each = (statements: (table: string) => string) =>
    sql.unsafe(`BEGIN; SET LOCAL session_replication_role = replica; ${tables.map(statements).join('')} COMMIT;`);
  await each((table) => `DROP TABLE IF EXISTS kept_${table}; CREATE TABLE kept_${table} AS TABLE ${table};`);
  return async () => {
    await each((table) => `DELETE FROM ${table}; INSERT INTO ${table} OVERRIDING SYSTEM VALUE TABLE kept_${table};`);
  };
}

it('of a Postgres that came back older only drifts of loaded wallets tell, and none is repaired', async () => {
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

it('after a Postgres that came back older a credit with the number of a lost one is in the wallet only once Redis was emptied', async () => {
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
