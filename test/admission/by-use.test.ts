import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CancelCommand } from '../../src/admission/commands.ts';
import { Sweeper } from '../../src/ledger/sweep/sweeper.ts';
import { CANCELLED, decodeUsageEvent, useOf } from '../../src/ledger/usage-event.ts';
import { freeField } from '../../src/platform/redis-keys.ts';
import { hostOf, QUIET, Store } from '../support/store.ts';
import { admit, admitAll, capture, INSTANCE, openScene, request, requestByUse, type Scene, settle } from './calls.ts';

let store: Store;
beforeAll(async () => {
  store = await Store.open();
});
afterAll(() => store.close());
beforeEach(() => store.command('flushall'));

const PRICES = { price: 2_000, max: 50_000 };

/** The events of the account, as the writer reads them. */
const eventsOf = async ({ accountId }: Scene) =>
  (await store.events(accountId)).map(({ usageId, hold, settlement }) =>
    decodeUsageEvent([usageId, hold, settlement].join('\t')),
  );

describe('the admission of a call priced by use', () => {
  it('holds the maximum price, and reports it', async () => {
    const scene = await openScene(store, 60_000);
    const call = requestByUse(scene, PRICES);
    const held = { amountMicros: 50_000, authorizedMicros: 50_000, balanceMicros: 10_000 };
    expect(await admit(store, call)).toMatchObject({ outcome: 'admitted', freeTier: false, ...held });
    expect((await store.open(scene.accountId))[call.usageId]).toMatch(/^v1\t50000\t0\t.*\t\/x\tcap=50000$/);
  });

  it('holds only the maximum that its caller accepts, if that is lower', async () => {
    const scene = await openScene(store, 60_000);
    const call = requestByUse(scene, { ...PRICES, ceiling: 20_000 });
    expect(await admit(store, call)).toMatchObject({ amountMicros: 20_000, authorizedMicros: 20_000 });
    expect((await store.open(scene.accountId))[call.usageId]).toMatch(/\tcap=50000\tceiling=20000$/);
  });

  it('is refused if the balance does not cover the hold, while another call beside it is admitted', async () => {
    const scene = await openScene(store, 49_999);
    const [byUse, fixed] = await admitAll(store, [requestByUse(scene, PRICES), request(scene, 2_000)]);
    expect(byUse).toMatchObject({ outcome: 'insufficient_balance', balanceMicros: 49_999 });
    expect(fixed).toMatchObject({ outcome: 'admitted', amountMicros: 2_000, authorizedMicros: null });
  });

  it('takes nothing for a free call, and reports what the service would have been authorised to charge', async () => {
    const scene = await openScene(store, 0);
    const call = requestByUse(scene, { ...PRICES, ceiling: 20_000, freeCalls: 1 });
    expect(await admit(store, call)).toMatchObject({ freeTier: true, amountMicros: 0, authorizedMicros: 20_000 });
    expect((await admit(store, requestByUse(scene, { ...PRICES, freeCalls: 1 }))).outcome).toBe('insufficient_balance');
  });

  it('takes no money and no free call if the call has no base price and its caller accepts a maximum of 0', async () => {
    const scene = await openScene(store, 0);
    const call = requestByUse(scene, { price: 0, max: 50_000, ceiling: 0, freeCalls: 1 });
    expect(await admit(store, call)).toMatchObject({ freeTier: false, amountMicros: 0, authorizedMicros: 0 });
    await capture(store, call, 700);
    expect(await store.balance(scene.accountId)).toBe(0);
    const [event] = await eventsOf(scene);
    expect(useOf(event as never)).toEqual({ authorizedMicros: 0, isClamped: true, isAtCap: false });
  });
});

describe('a settlement with capture', () => {
  it('charges what was reported, and gives the rest of the hold back', async () => {
    const scene = await openScene(store, 60_000);
    const call = requestByUse(scene, PRICES);
    await admit(store, call);
    await capture(store, call, 12_300);
    expect(await store.balance(scene.accountId)).toBe(60_000 - 12_300);
    expect(await store.open(scene.accountId)).toEqual({});
    expect(await eventsOf(scene)).toMatchObject([{ heldMicros: 50_000, capMicros: 50_000, capturedMicros: 12_300 }]);
  });

  it.each([
    ['nothing', 0, 0],
    ['the whole hold', 50_000, 50_000],
    ['more than the hold', 50_001, 50_000],
    ['far more than any balance', Number.MAX_SAFE_INTEGER, 50_000],
  ])('of %s charges at most the hold', async (_, reported, charged) => {
    const scene = await openScene(store, 60_000);
    const call = requestByUse(scene, PRICES);
    await admit(store, call);
    await capture(store, call, reported);
    expect(await store.balance(scene.accountId)).toBe(60_000 - charged);
  });

  it('of the largest amounts is exact', async () => {
    const scene = await openScene(store, 1_000_000_000_000_000);
    const call = requestByUse(scene, { price: 0, max: 999_999_999_999_999 });
    await admit(store, call);
    await capture(store, call, 123_456_789_012_345);
    expect(await store.balance(scene.accountId)).toBe(876_543_210_987_655);
  });

  it('counts once, however often it arrives', async () => {
    const scene = await openScene(store, 60_000);
    const call = requestByUse(scene, PRICES);
    await admit(store, call);
    for (let i = 0; i < 3; i++) await capture(store, call, 12_300);
    await settle(store, call, true);
    expect(await store.balance(scene.accountId)).toBe(60_000 - 12_300);
    expect(await store.events(scene.accountId)).toHaveLength(1);
  });

  it('of a free call charges nothing, and the free call stays used', async () => {
    const scene = await openScene(store, 5);
    const call = requestByUse(scene, { ...PRICES, freeCalls: 1 });
    await admit(store, call);
    await capture(store, call, 12_300);
    const wallet = await store.hash(store.walletName(scene.accountId));
    expect(wallet).toMatchObject({ balance: '5', [freeField(scene.serviceId)]: '1' });
    expect(await eventsOf(scene)).toMatchObject([{ freeTier: true, heldMicros: 0, capturedMicros: 12_300 }]);
  });

  it('gives nothing back to a wallet that is not loaded: loading the wallet will include that money', async () => {
    const scene = await openScene(store, 60_000);
    const call = requestByUse(scene, PRICES);
    await admit(store, call);
    await store.command('del', store.walletName(scene.accountId));
    await capture(store, call, 12_300);
    expect(await store.hash(store.walletName(scene.accountId))).toEqual({});
    expect(await eventsOf(scene)).toMatchObject([{ capturedMicros: 12_300 }]);
  });

  it('gives back to a loaded wallet that has nothing left', async () => {
    const scene = await openScene(store, 50_000);
    const call = requestByUse(scene, PRICES);
    expect(await admit(store, call)).toMatchObject({ amountMicros: 50_000, balanceMicros: 0 });
    await capture(store, call, 12_300);
    expect(await store.balance(scene.accountId)).toBe(50_000 - 12_300);
  });

  it('gives its rest back in time for an admission in the same trip', async () => {
    const scene = await openScene(store, 50_000);
    const call = requestByUse(scene, PRICES);
    await admit(store, call);
    expect((await admit(store, request(scene, 1_000))).outcome).toBe('insufficient_balance');
    await capture(store, call, 49_000);
    expect((await admit(store, request(scene, 1_000))).outcome).toBe('admitted');
  });
});

describe('a call priced by use that ends in another way', () => {
  it('is charged its whole hold if the service reported nothing', async () => {
    const scene = await openScene(store, 60_000);
    const call = requestByUse(scene, PRICES);
    await admit(store, call);
    await settle(store, call, false);
    expect(await store.balance(scene.accountId)).toBe(10_000);
  });

  it('gets its whole hold back when it is refunded, cancelled or swept', async () => {
    const scene = await openScene(store, 150_000);
    const calls = [0, 1, 2].map(() => requestByUse(scene, PRICES));
    await admitAll(store, calls);
    const [refunded, cancelled] = calls as [(typeof calls)[0], (typeof calls)[0]];
    await settle(store, refunded, true);
    const cancel = new CancelCommand(cancelled.usageId, scene.accountId, CANCELLED, () => {});
    await store.run([cancel], hostOf(store.keys, INSTANCE));
    expect(await store.balance(scene.accountId)).toBe(100_000);
    const sweeper = new Sweeper({
      redis: store.redis,
      keys: store.keys,
      leaseSeconds: 15,
      isReconciled: () => true,
      log: QUIET,
    });
    for (const lease of store.keys.lease) await store.command('hset', lease, INSTANCE, (await store.now()) - 20_000);
    expect(await sweeper.sweepOnce()).toBe(1);
    expect(await store.balance(scene.accountId)).toBe(150_000);
    const events = await eventsOf(scene);
    expect(events.map(({ outcome }) => outcome)).toEqual([
      'refunded:upstream_error',
      'refunded:unavailable',
      'abandoned',
    ]);
    for (const event of events) expect(useOf(event)).toMatchObject({ authorizedMicros: 50_000, isAtCap: false });
  });
});
