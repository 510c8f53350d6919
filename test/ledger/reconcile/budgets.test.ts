import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { hashSecret } from '../../../src/keys/credentials.ts';
import { Corrector } from '../../../src/ledger/reconcile/corrector.ts';
import { admit, newKeyId, request, type Scene, settle } from '../../admission/calls.ts';
import { readChild, writeChild } from '../../support/child-state.ts';
import { comeBackOlder, keepState } from './older-redis.ts';
import { ComparedLedger } from './scene.ts';

let compared: ComparedLedger;
beforeAll(async () => {
  compared = await ComparedLedger.open();
});
afterAll(() => compared.close());
beforeEach(() => compared.clear());

/** A child key with a budget of 5 000 in all, whose number tells its period: 1 000 000 times it. */
async function newChild(balanceMicros: number): Promise<Scene> {
  const scene = await compared.newScene(balanceMicros);
  const child = { ...scene, keyId: newKeyId(), ancestors: [scene.keyId] };
  await giveBudget(child, 1);
  return child;
}

async function giveBudget({ accountId, keyId, ancestors = [] }: Scene, number: number): Promise<void> {
  const { store } = compared.ledger;
  const root = store.keys.key(store.keys.shardOf(accountId), ancestors[0] as string);
  await store.command('hset', root, keyId, `300 active 0 5000 total ${number}`);
}

const stateOf = ({ accountId, keyId }: Scene) =>
  readChild(compared.ledger.store.redis, compared.ledger.store.walletName(accountId), keyId);
const spent = async (scene: Scene): Promise<readonly (number | undefined)[]> => {
  const its = await stateOf(scene);
  return [its?.spentMicros, its?.period];
};
const stored = async ({ accountId, keyId }: Scene): Promise<number[][]> => {
  const rows = await compared.ledger.sql<{ period: number; spent: number }[]>`
    SELECT period, spent FROM budget_usage WHERE account_id = ${accountId} AND key_id = ${keyId} ORDER BY period`;
  return rows.map(({ period, spent: its }) => [period, its]);
};
async function change(scene: Scene, field: 'spentMicros' | 'period', by: number): Promise<void> {
  const { store } = compared.ledger;
  const value = ((await stateOf(scene))?.[field] ?? 0) + by;
  await writeChild(store.redis, store.walletName(scene.accountId), scene.keyId, { [field]: value });
}

const FIRST = 1_000_000;
const SECOND = 2_000_000;

describe('what a key has spent of its budget', () => {
  it('agrees at any stage of its calls, even after it got a new budget and the wallet was loaded again', async () => {
    const child = await newChild(10_000);
    const [open, refunded] = [request(child, 400), request(child, 70)];
    for (const one of [open, refunded]) await admit(compared.ledger.store, one);
    await compared.call(child, 1_000);
    expect(await compared.drifts()).toEqual([]);
    await settle(compared.ledger.store, refunded, true);
    await compared.storeAll();
    await compared.call(child, 30);
    expect(await compared.drifts()).toEqual([]);
    expect(await spent(child)).toEqual([1_430, FIRST]);
    expect(await stored(child)).toEqual([[FIRST, 1_000]]);
    await giveBudget(child, 2);
    await compared.call(child, 5);
    await settle(compared.ledger.store, open, false);
    expect(await compared.drifts()).toEqual([]);
    await compared.storeAll();
    expect(await stored(child)).toEqual([
      [FIRST, 1_430],
      [SECOND, 5],
    ]);
    await compared.ledger.store.command('del', compared.ledger.store.walletName(child.accountId));
    await compared.hydrator.loadWallet(child.accountId);
    expect(await spent(child)).toEqual([5, SECOND]);
    expect(await compared.drifts()).toEqual([]);
  });

  it('is repaired after Redis came back with older data, including the period, even beside holds of stored calls', async () => {
    const child = await newChild(10_000);
    await compared.call(child, 1_000);
    const held = request(child, 300);
    await admit(compared.ledger.store, held);
    await compared.keepBusy(child);
    await keepState(compared.ledger);
    await settle(compared.ledger.store, held, false);
    await compared.call(child, 20);
    await giveBudget(child, 2);
    await compared.call(child, 7);
    await compared.storeAll();
    await comeBackOlder(compared.ledger);
    expect(await spent(child)).toEqual([1_300, FIRST]);
    expect(await compared.drifts()).toEqual([]);
    expect(await spent(child)).toEqual([7, SECOND]);
    expect(await compared.repairs()).toMatchObject([
      {
        state: 'done',
        before: { budgets: { [child.keyId]: { period: FIRST, spent_micros: 1_300 } } },
        after: { budgets: { [child.keyId]: { period: SECOND, spent_micros: 7 } } },
      },
    ]);
  });

  it('is reported if nothing explains it, and what the hold of a stored call had taken still goes back', async () => {
    const child = await newChild(10_000);
    const captured = request(child, 300);
    await admit(compared.ledger.store, captured);
    const { [captured.usageId]: hold = '' } = await compared.ledger.store.open(child.accountId);
    await settle(compared.ledger.store, captured, true);
    await compared.storeAll();
    const { keys } = compared.ledger.store;
    const open = keys.open[keys.shardOf(child.accountId)] as string;
    await compared.ledger.store.command('hset', open, captured.usageId, hold);
    await compared.changeBalance(child, -300);
    await change(child, 'spentMicros', 340);
    const [drift] = await compared.drifts();
    expect(drift?.budgetDrifts).toMatchObject([{ keyId: child.keyId, spentMicros: 40, expectedMicros: 0 }]);
    expect(await spent(child)).toEqual([40, FIRST]);
    expect(await compared.ledger.store.balance(child.accountId)).toBe(10_000);
  });
});

describe('what Redis must know of child keys', () => {
  it('is what Postgres has after Redis came back with older data, even if the wallet is in use', async () => {
    const [busy, idle] = [await newChild(10_000), await newChild(10_000)];
    const { sql, store } = compared.ledger;
    for (const { accountId, keyId, ancestors = [] } of [busy, idle]) {
      await sql`
        INSERT INTO api_keys (key_id, account_id, role, secret_hash, rate_limit, ancestors, budget_amount, budget_period, budget_number)
        VALUES (${keyId}, ${accountId}, 'buyer', ${hashSecret(keyId)}, 300, ${ancestors}::text[], 1000, 'total', 1)`;
    }
    await compared.keepBusy(busy);
    await keepState(compared.ledger);
    await comeBackOlder(compared.ledger);
    await compared.run();
    for (const child of [busy, idle]) {
      await compared.hydrator.loadKey(child.keyId, child.accountId);
      await compared.hydrator.loadWallet(child.accountId);
      expect(await admit(store, request(child, 1_001))).toMatchObject({
        outcome: 'budget_exceeded',
        budget: { leftMicros: 1_000 },
      });
    }
  });
});

describe('an operator', () => {
  const operator = { madeBy: 'admin acf_1', record: async () => {} };
  const correct = ({ accountId }: Scene, believe: 'postgres' | 'redis') => {
    const { sql, store } = compared.ledger;
    const corrector = new Corrector({ sql, redis: store.redis, keys: store.keys });
    return corrector.correct({ accountId, believe, reason: 'a test', reference: `incident ${believe}` }, operator);
  };

  it.each(['postgres', 'redis'] as const)('who believes %s ends the drift of a budget', async (believe) => {
    const child = await newChild(10_000);
    await compared.call(child, 1_000);
    await compared.storeAll();
    await compared.keepBusy(child);
    await change(child, 'spentMicros', 40);
    const { correction } = await correct(child, believe);
    const drift = {
      keyId: child.keyId,
      period: FIRST,
      spentMicros: 1_040,
      expectedPeriod: FIRST,
      expectedMicros: 1_000,
    };
    expect(correction).toMatchObject({ driftMicros: 0, budgetDrifts: [drift] });
    const should = believe === 'redis' ? 1_040 : 1_000;
    expect([await spent(child), await stored(child)]).toEqual([[should, FIRST], [[FIRST, should]]]);
    expect(await compared.drifts()).toEqual([]);
  });

  it('cannot believe a wallet that counts spending in an earlier period', async () => {
    const child = await newChild(10_000);
    await compared.call(child, 1_000);
    await compared.storeAll();
    await compared.keepBusy(child);
    await change(child, 'period', -1);
    await expect(correct(child, 'redis')).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('period'),
    });
    await correct(child, 'postgres');
    expect(await spent(child)).toEqual([1_000, FIRST]);
  });
});
