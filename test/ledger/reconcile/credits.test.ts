import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { CreditWallets } from '../../../src/ledger/wallets/credit-wallets.ts';
import { QUIET } from '../../support/store.ts';
import { comeBackOlder, keepState } from './older-redis.ts';
import { ComparedLedger } from './scene.ts';

let compared: ComparedLedger;
let credits: CreditWallets;
beforeAll(async () => {
  compared = await ComparedLedger.open();
});
afterAll(() => compared.close());
beforeEach(async () => {
  const { ledger, hydrator } = compared;
  await compared.clear();
  const { sql, store } = ledger;
  credits = new CreditWallets({ sql, redis: store.redis, keys: store.keys, hydrator, log: QUIET });
});

it.each([
  ['long ago', `- interval '3 days'`],
  ['by a clock that was ahead', `+ interval '400 days'`],
])(
  'a credit that was first applied %s and that Redis lost is applied to the wallet again, with a record',
  async (_, moved) => {
    const { ledger } = compared;
    const scene = await compared.newScene(10_000);
    await compared.keepBusy(scene);
    await credits.applyMissing();
    await keepState(ledger);
    for (const amountMicros of [5_000, 700]) {
      const seq = await ledger.credit(scene.accountId, amountMicros);
      await credits.apply({ accountId: scene.accountId, seq, amountMicros, budgets: null });
    }
    await comeBackOlder(ledger);
    await ledger.sql.unsafe(`UPDATE credits SET applied_at = applied_at ${moved}`);
    await credits.applyMissing();
    expect(await compared.balances(scene)).toEqual([10_000, 15_700]);

    expect(await compared.drifts()).toEqual([]);
    await credits.applyMissing();
    expect(await compared.balances(scene)).toEqual([15_700, 15_700]);
    expect(await compared.repairs()).toMatchObject([
      {
        accountId: scene.accountId,
        madeBy: 'test',
        state: 'done',
        reason: expect.stringContaining('without credits'),
        changeMicros: 5_700,
        before: { credit_seq: 1 },
        after: { credit_seq: 3 },
      },
    ]);
    expect(await compared.drifts()).toEqual([]);
    expect(await compared.repairs()).toHaveLength(1);
  },
);

it('a credit that has not reached its wallet yet is not mistaken for a lost credit', async () => {
  const { ledger } = compared;
  const scene = await compared.newScene(10_000);
  await credits.applyMissing();
  await ledger.credit(scene.accountId, 5_000);
  expect(await compared.drifts()).toEqual([]);
  await credits.applyMissing();
  expect(await compared.drifts()).toEqual([]);
  expect(await compared.balances(scene)).toEqual([15_000, 15_000]);
  expect(await compared.repairs()).toEqual([]);
});

it('credits applied minutes before a restart of Redis are applied again without a comparison, however late the writer runs', async () => {
  const { ledger } = compared;
  const scene = await compared.newScene(10_000);
  await credits.applyMissing();
  await keepState(ledger);
  const seq = await ledger.credit(scene.accountId, 5_000);
  await credits.apply({ accountId: scene.accountId, seq, amountMicros: 5_000, budgets: null });
  await comeBackOlder(ledger);
  const { sql, store } = ledger;
  // The credits look as if Redis had been running for an hour when the writer came back.
  await sql`UPDATE credits SET applied_at = applied_at - interval '1 hour'`;
  const redis = Object.create(store.redis, {
    command: {
      value: async (name: string, args: readonly string[]) => {
        const reply = await store.redis.command(name, args);
        return name === 'info' ? String(reply).replace(/uptime_in_seconds:\d+/, 'uptime_in_seconds:3600') : reply;
      },
    },
    script: { value: store.redis.script.bind(store.redis) },
    onReady: { value: store.redis.onReady.bind(store.redis) },
  });
  await new CreditWallets({ sql, redis, keys: store.keys, hydrator: compared.hydrator, log: QUIET }).applyMissing();
  expect(await compared.balances(scene)).toEqual([15_000, 15_000]);
});
