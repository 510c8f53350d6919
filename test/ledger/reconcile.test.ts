import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Hydrator } from '../../src/ledger/hydrate.ts';
import { findDrifts, reconcile } from '../../src/ledger/reconcile.ts';
import { admit, request, settle } from '../admission/calls.ts';
import { QUIET } from '../admission/redis.ts';
import { Ledger, newEvent } from './support.ts';

describe('the money identity', () => {
  const state = {
    wallets: new Map([['a', { balanceMicros: 1_000, creditSeq: 2 }]]),
    settled: new Map([['a', { balanceMicros: 2_000, missingCreditsMicros: 100 }]]),
    heldMicros: new Map([['a', 300]]),
    streamedMicros: new Map([['a', 600]]),
  };

  it('holds when balance − missing credits − stream − holds is the wallet', () => {
    expect(findDrifts(state)).toEqual([]);
  });

  it.each([
    ['the wallet has more than it should', { wallets: new Map([['a', { balanceMicros: 1_007, creditSeq: 2 }]]) }, 7],
    ['a charge is missing in Postgres', { streamedMicros: new Map() }, -600],
    ['a hold is missing', { heldMicros: new Map() }, -300],
    ['an account is unknown to Postgres', { settled: new Map() }, 1_900],
  ])('does not when %s', (_, change, driftMicros) => {
    expect(findDrifts({ ...state, ...change })).toMatchObject([{ accountId: 'a', driftMicros }]);
  });

  it('lists the largest drift first', () => {
    const wallets = new Map(
      ['a', 'b', 'c'].map((id, i) => [id, { balanceMicros: [5, -90, 20][i] as number, creditSeq: 0 }]),
    );
    const drifts = findDrifts({ wallets, settled: new Map(), heldMicros: new Map(), streamedMicros: new Map() });
    expect(drifts.map(({ accountId }) => accountId)).toEqual(['b', 'c', 'a']);
  });
});

describe('reconcile', () => {
  let ledger: Ledger;
  let hydrator: Hydrator;
  beforeAll(async () => {
    ledger = await Ledger.open();
    const { databaseUrl, sql, store } = ledger;
    hydrator = new Hydrator({ databaseUrl, sql, redis: store.redis, keys: store.keys, log: QUIET });
  });
  afterAll(async () => {
    hydrator.close();
    await ledger.close();
  });
  beforeEach(() => ledger.clear());

  const drifts = async () => {
    const reports = await reconcile({ sql: ledger.sql, redis: ledger.store.redis, keys: ledger.store.keys });
    return reports.flatMap((report) => report.drifts);
  };

  it('finds none at any stage of a call: held, settled, stored, not deleted yet, credited', async () => {
    const accountId = await ledger.account(10_000);
    const scene = { accountId, keyId: 'acf_key', serviceId: newEvent().serviceId };
    await ledger.store.loadKey(scene.keyId, accountId);
    await hydrator.loadWallet(accountId);
    const calls = [request(scene, 1_000), request(scene, 200), request(scene, 30)];
    for (const call of calls) await admit(ledger.store, call);
    expect(await drifts()).toEqual([]);
    await settle(ledger.store, calls[0] as (typeof calls)[0], false);
    await settle(ledger.store, calls[1] as (typeof calls)[0], true);
    expect(await drifts()).toEqual([]);
    let inBetween: unknown;
    const afterCommit = async () => {
      inBetween = await drifts();
    };
    const writer = ledger.startWriter({ afterCommit });
    await ledger.drained();
    await writer.stop();
    expect(inBetween).toEqual([]);
    expect(await drifts()).toEqual([]);
    // A credit that is not in the wallet yet is no drift.
    await ledger.credit(accountId, 5_000);
    expect(await drifts()).toEqual([]);
    expect(await ledger.balance(accountId)).toBe(14_000);
  });

  it('finds money that came from nowhere, and money that went nowhere', async () => {
    const [rich, charged] = [await ledger.account(1_000), await ledger.account(1_000)];
    await hydrator.loadWallet(rich);
    await hydrator.loadWallet(charged);
    await ledger.store.command('hincrby', ledger.store.walletName(rich), 'balance', 5);
    expect(await drifts()).toEqual([{ accountId: rich, walletMicros: 1_005, expectedMicros: 1_000, driftMicros: 5 }]);
    await ledger.store.command('hincrby', ledger.store.walletName(charged), 'balance', -400);
    // Sorted: they may lie in different shards.
    const both = (await drifts()).map(({ accountId, driftMicros }) => ({ accountId, driftMicros }));
    const byDrift = both.sort((a, b) => a.driftMicros - b.driftMicros);
    expect(byDrift).toEqual([
      { accountId: charged, driftMicros: -400 },
      { accountId: rich, driftMicros: 5 },
    ]);
  });
});
