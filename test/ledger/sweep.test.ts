import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Sweeper } from '../../src/ledger/sweep.ts';
import { ABANDONED } from '../../src/ledger/usage-event.ts';
import { freeField } from '../../src/platform/redis-keys.ts';
import { admit, admitAll, openScene, request, type Scene, settle } from '../admission/calls.ts';
import { QUIET, Store } from '../admission/redis.ts';
import { until } from '../support/wait.ts';

const LEASE_SECONDS = 15;

let store: Store;
let sweeper: Sweeper;
beforeAll(async () => {
  store = await Store.open();
});
afterAll(() => store.close());
beforeEach(async () => {
  await store.command('flushall');
  sweeper = new Sweeper({ redis: store.redis, keys: store.keys, leaseSeconds: LEASE_SECONDS, log: QUIET });
});

const leaseOf = (scene: Scene): string => store.keys.lease[store.keys.shardOf(scene.accountId)] as string;

/** Sets when an instance was last seen, in seconds from now. */
async function seen(scene: Scene, instance: string, secondsAgo: number): Promise<void> {
  await store.command('hset', leaseOf(scene), instance, (await store.now()) - secondsAgo * 1000);
}

describe('the sweep', () => {
  it('refunds the holds of a dead gateway, free slots too, with one event each', async () => {
    const scene = await openScene(store, 5_000);
    const calls = [request(scene, 1_000, 1), request(scene, 1_000, 1), request(scene, 2_000)];
    await admitAll(store, calls, 'dead');
    expect(await store.balance(scene.accountId)).toBe(2_000);
    await seen(scene, 'dead', LEASE_SECONDS + 1);
    expect(await sweeper.sweepOnce()).toBe(3);
    expect(await store.hash(store.walletName(scene.accountId))).toEqual({
      balance: '5000',
      credit_seq: '1',
      [freeField(scene.serviceId)]: '0',
    });
    expect(await store.open(scene.accountId)).toEqual({});
    const events = await store.events(scene.accountId);
    expect(events.map(({ usageId }) => usageId).sort()).toEqual(calls.map(({ usageId }) => usageId).sort());
    expect(new Set(events.map(({ settlement }) => settlement))).toEqual(new Set([ABANDONED]));
  });

  it('leaves the holds of the living alone', async () => {
    const scene = await openScene(store, 5_000);
    await admit(store, request(scene, 1_000), 'alive');
    await admit(store, request(scene, 2_000), 'dead');
    await seen(scene, 'alive', LEASE_SECONDS - 2);
    await seen(scene, 'dead', LEASE_SECONDS + 1);
    expect(await sweeper.sweepOnce()).toBe(1);
    expect(await store.balance(scene.accountId)).toBe(4_000);
    expect(Object.values(await store.open(scene.accountId))).toEqual([expect.stringContaining('alive')]);
  });

  it('gives an instance without a lease the time of one before it takes it for dead', async () => {
    const scene = await openScene(store, 5_000);
    await admit(store, request(scene, 1_000), 'unknown');
    expect(await sweeper.sweepOnce()).toBe(0);
    const lease = Number((await store.hash(leaseOf(scene))).unknown);
    expect(Math.abs(lease - (await store.now()))).toBeLessThan(5_000);
    await seen(scene, 'unknown', LEASE_SECONDS + 1);
    expect(await sweeper.sweepOnce()).toBe(1);
    expect(await store.balance(scene.accountId)).toBe(5_000);
  });

  it('of a call that its gateway settles at the same time has one effect between them', async () => {
    const scene = await openScene(store, 100_000);
    const calls = Array.from({ length: 60 }, () => request(scene, 1_000));
    await admitAll(store, calls, 'slow');
    await seen(scene, 'slow', LEASE_SECONDS + 1);
    await Promise.all([sweeper.sweepOnce(), sweeper.sweepOnce(), ...calls.map((call) => settle(store, call, false))]);
    const events = await store.events(scene.accountId);
    expect(events.map(({ usageId }) => usageId).sort()).toEqual(calls.map(({ usageId }) => usageId).sort());
    const swept = events.filter(({ settlement }) => settlement === ABANDONED).length;
    expect(await store.balance(scene.accountId)).toBe(100_000 - (60 - swept) * 1_000);
  });

  it('before a late settlement leaves it nothing to do', async () => {
    const scene = await openScene(store, 5_000);
    const call = request(scene, 2_000);
    await admit(store, call, 'asleep');
    await seen(scene, 'asleep', LEASE_SECONDS + 1);
    await sweeper.sweepOnce();
    await settle(store, call, false);
    await settle(store, call, true);
    expect(await store.balance(scene.accountId)).toBe(5_000);
    expect(await store.events(scene.accountId)).toHaveLength(1);
  });

  it('keeps young tombstones and removes old ones', async () => {
    const scene = await openScene(store, 5_000);
    const open = store.keys.open[store.keys.shardOf(scene.accountId)] as string;
    const now = await store.now();
    await store.command('hset', open, 'young', `x\t\t${now - 30_000}\tgone`, 'old', `x\t\t${now - 61_000}\tgone`);
    expect(await sweeper.sweepOnce()).toBe(0);
    expect(Object.keys(await store.hash(open))).toEqual(['young']);
    expect(await store.events(scene.accountId)).toEqual([]);
  });

  it('goes through thousands of holds in bounded groups', async () => {
    const scene = await openScene(store, 10_000_000);
    for (let i = 0; i < 20; i++) {
      const calls = Array.from({ length: 100 }, () => request(scene, 1_000));
      await store.loadKey(scene.keyId, scene.accountId, 300);
      await store.command('hdel', store.keys.key(store.keys.shardOf(scene.accountId), scene.keyId), 'tokens', 'ts');
      await admitAll(store, calls, 'dead');
    }
    await seen(scene, 'dead', LEASE_SECONDS + 1);
    expect(await sweeper.sweepOnce()).toBe(2_000);
    expect(await store.balance(scene.accountId)).toBe(10_000_000);
  });

  it('forgets the leases of instances long dead, unless they still hold something', async () => {
    const scene = await openScene(store, 5_000);
    await admit(store, request(scene, 1_000), 'holder');
    await seen(scene, 'long dead', LEASE_SECONDS * 10 + 1);
    await seen(scene, 'dead', LEASE_SECONDS * 9);
    await seen(scene, 'holder', LEASE_SECONDS * 11);
    await sweeper.sweepOnce();
    expect(Object.keys(await store.hash(leaseOf(scene))).sort()).toEqual(['dead', 'holder']);
  });
});

it('a started sweeper sweeps by itself, says so once when Redis is away, and sweeps again when it is back', async () => {
  const lines: string[] = [];
  const log = { info: () => {}, warn: (_: object, message: string) => void lines.push(message) };
  const scene = await openScene(store, 5_000);
  await admit(store, request(scene, 1_000), 'dead');
  await seen(scene, 'dead', LEASE_SECONDS + 1);
  const own = new Sweeper({ redis: store.redis, keys: store.keys, leaseSeconds: LEASE_SECONDS, intervalMs: 20, log });
  own.start();
  await until(async () => (await store.balance(scene.accountId)) === 5_000);
  await store.server.stop();
  await until(() => lines.length > 0);
  await store.server.restart();
  await until(() => store.redis.ready);
  const another = await openScene(store, 5_000);
  await admit(store, request(another, 1_000), 'dead');
  await seen(another, 'dead', LEASE_SECONDS + 1);
  await until(async () => (await store.balance(another.accountId)) === 5_000);
  await own.stop();
  expect(lines).toEqual(['cannot sweep now']);
  expect(own.swept).toBe(2);
});
