import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { readRedisRun } from '../../../src/ledger/redis-run.ts';
import { lookForHoldsScript, sweepScript } from '../../../src/ledger/scripts.ts';
import { Steadiness } from '../../../src/ledger/sweep/steadiness.ts';
import { Sweeper } from '../../../src/ledger/sweep/sweeper.ts';
import { ABANDONED, decodeUsageEvent } from '../../../src/ledger/usage-event.ts';
import { RedisClient } from '../../../src/platform/redis.ts';
import { freeField } from '../../../src/platform/redis-keys.ts';
import { admit, admitAll, openScene, request, type Scene, settle } from '../../admission/calls.ts';
import { QUIET, Store } from '../../support/store.ts';
import { TcpProxy } from '../../support/tcp-proxy.ts';
import { until } from '../../support/wait.ts';

const LEASE_SECONDS = 15;

let store: Store;
let sweeper: Sweeper;
beforeAll(async () => {
  store = await Store.open();
});
afterAll(() => store.close());
beforeEach(async () => {
  await store.command('flushall');
  sweeper = new Sweeper({
    redis: store.redis,
    keys: store.keys,
    leaseSeconds: LEASE_SECONDS,
    isReconciled: () => true,
    log: QUIET,
  });
});

const leaseOf = (scene: Scene): string => store.keys.lease[store.keys.shardOf(scene.accountId)] as string;

/** Sets the lease of an instance, in seconds from now. */
async function seen(scene: Scene, instance: string, secondsAgo: number): Promise<void> {
  await store.command('hset', leaseOf(scene), instance, (await store.now()) - secondsAgo * 1000);
}

describe('the sweep', () => {
  it('refunds the holds of a dead gateway, including free slots, with one event each', async () => {
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

  it('keeps details of the call that the hold contains, such as its tag', async () => {
    const scene = await openScene(store, 5_000);
    const call = { ...request(scene, 1_000), tag: 'customer-17' };
    await admit(store, call, 'dead');
    await seen(scene, 'dead', LEASE_SECONDS + 1);
    expect(await sweeper.sweepOnce()).toBe(1);
    const [event] = await store.events(scene.accountId);
    const text = [event?.usageId, event?.hold, event?.settlement].join('\t');
    expect(decodeUsageEvent(text)).toMatchObject({ usageId: call.usageId, tag: 'customer-17', outcome: 'abandoned' });
  });

  it('leaves the holds of living gateways alone', async () => {
    const scene = await openScene(store, 5_000);
    await admit(store, request(scene, 1_000), 'alive');
    await admit(store, request(scene, 2_000), 'dead');
    await seen(scene, 'alive', LEASE_SECONDS - 2);
    await seen(scene, 'dead', LEASE_SECONDS + 1);
    expect(await sweeper.sweepOnce()).toBe(1);
    expect(await store.balance(scene.accountId)).toBe(4_000);
    expect(Object.values(await store.open(scene.accountId))).toEqual([expect.stringContaining('alive')]);
  });

  it('gives an instance without a lease a new one before it considers the instance dead', async () => {
    const scene = await openScene(store, 5_000);
    await admit(store, request(scene, 1_000), 'unknown');
    expect(await sweeper.sweepOnce()).toBe(0);
    const lease = Number((await store.hash(leaseOf(scene))).unknown);
    expect(Math.abs(lease - (await store.now()))).toBeLessThan(5_000);
    await seen(scene, 'unknown', LEASE_SECONDS + 1);
    expect(await sweeper.sweepOnce()).toBe(1);
    expect(await store.balance(scene.accountId)).toBe(5_000);
  });

  it('and a gateway have one effect between them when they settle the same call at the same time', async () => {
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

  it('leaves nothing to do for a later settlement', async () => {
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

  it('keeps young tombstones and deletes old ones', async () => {
    const scene = await openScene(store, 5_000);
    const open = store.keys.open[store.keys.shardOf(scene.accountId)] as string;
    const now = await store.now();
    await store.command('hset', open, 'young', `x\t\t${now - 30_000}\tgone`, 'old', `x\t\t${now - 61_000}\tgone`);
    expect(await sweeper.sweepOnce()).toBe(0);
    expect(Object.keys(await store.hash(open))).toEqual(['young']);
    expect(await store.events(scene.accountId)).toEqual([]);
  });

  it('settles thousands of holds in bounded groups', async () => {
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

  it('deletes the leases of instances that died long ago, unless they still have holds', async () => {
    const scene = await openScene(store, 5_000);
    await admit(store, request(scene, 1_000), 'holder');
    await seen(scene, 'long dead', LEASE_SECONDS * 10 + 1);
    await seen(scene, 'dead', LEASE_SECONDS * 9);
    await seen(scene, 'holder', LEASE_SECONDS * 11);
    await sweeper.sweepOnce();
    expect(Object.keys(await store.hash(leaseOf(scene))).sort()).toEqual(['dead', 'holder']);
  });
});

describe('a shard in which nothing is open', () => {
  const SHARD = 1;
  const open = (): string => store.keys.open[SHARD] as string;
  const lease = (): string => store.keys.lease[SHARD] as string;

  /** How often Redis has carried out each command since it started. */
  async function counts(): Promise<Map<string, number>> {
    const stats = String(await store.command('info', 'commandstats'));
    return new Map(
      Array.from(stats.matchAll(/^cmdstat_(\w+):calls=(\d+)/gm), ([, name, calls]) => [name as string, Number(calls)]),
    );
  }

  it('is not examined: a round over such shards is one command', async () => {
    const now = await store.now();
    for (const shard of store.keys.open.keys()) {
      await store.command('hset', store.keys.open[shard] as string, 'kept', `x\t\t${now}\tliving`);
      await store.command('hset', store.keys.lease[shard] as string, 'living', now);
    }
    // Loads the script.
    await sweeper.sweepOnce();
    const before = await counts();
    await sweeper.sweepOnce();
    const after = await counts();
    const more = (name: string): number => (after.get(name) ?? 0) - (before.get(name) ?? 0);
    expect([more('evalsha'), more('hscan')]).toEqual([1, 0]);
  });

  it('has a tombstone that belongs to no call deleted unless a gateway renews it', async () => {
    const now = await store.now();
    await store.command('hset', open(), 'kept', `x\t\t${now - 59_000}\tgone`);
    await sweeper.sweepOnce();
    expect(await store.hash(open())).toHaveProperty('kept');
    await store.command('hset', open(), 'kept', `x\t\t${now - 61_000}\tgone`);
    await sweeper.sweepOnce();
    expect(await store.hash(open())).toEqual({});
  });

  it('has the leases of instances that died long ago deleted', async () => {
    const now = await store.now();
    const secondsAgo = (seconds: number): number => now - seconds * 1_000;
    await store.command(
      'hset',
      lease(),
      'long dead',
      secondsAgo(LEASE_SECONDS * 10 + 1),
      'dead',
      secondsAgo(LEASE_SECONDS * 9),
    );
    await sweeper.sweepOnce();
    expect(Object.keys(await store.hash(lease()))).toEqual(['dead']);
  });

  it.each([
    ['the holds', open],
    ['the leases', lease],
  ])('is reported when the key of %s has another type', async (_, key) => {
    await store.command('set', key(), 'x');
    await expect(sweeper.sweepOnce()).rejects.toThrow('WRONGTYPE');
    expect(sweeper.damage.get('shard')).toBe(1);
  });
});

describe('a started sweeper', () => {
  const BOUND_SECONDS = 2;
  let proxy: TcpProxy;
  let redis: RedisClient;
  let own: Sweeper;
  let lines: string[];
  beforeEach(async () => {
    proxy = await TcpProxy.open(store.server.port);
    redis = new RedisClient({ url: proxy.through(store.server.url), name: 'sweeper', commandTimeoutMs: 5_000 }, QUIET);
    await redis.connect();
    lines = [];
    const log = { info: () => {}, warn: (_: object, message: string) => void lines.push(message) };
    own = new Sweeper({
      redis,
      keys: store.keys,
      leaseSeconds: BOUND_SECONDS,
      intervalMs: 20,
      isReconciled: () => true,
      log,
    });
  });
  afterEach(async () => {
    await own.stop();
    redis.destroy();
    await proxy.close();
  });

  /** Number of rounds that sweepers have begun since Redis started. */
  async function rounds(): Promise<number> {
    const stats = String(await store.command('info', 'commandstats'));
    return Number(/^cmdstat_time:calls=(\d+)/m.exec(stats)?.[1] ?? 0);
  }

  /** @param shard the account's shard; default: any */
  async function holdOfDead(shard?: number): Promise<Scene> {
    let scene = await openScene(store, 5_000);
    while (shard !== undefined && store.keys.shardOf(scene.accountId) !== shard) scene = await openScene(store, 5_000);
    await admit(store, request(scene, 1_000), 'dead');
    await seen(scene, 'dead', BOUND_SECONDS + 1);
    return scene;
  }

  it('considers no gateway dead until, after Redis was away, living gateways had one lease time to renew', async () => {
    const dead = await holdOfDead();
    own.start();
    await until(async () => (await store.balance(dead.accountId)) === 5_000);

    proxy.refuse();
    await until(() => lines.length > 0);
    const scene = await openScene(store, 5_000);
    await admit(store, request(scene, 1_000), 'living');
    const deadToo = await holdOfDead();
    await seen(scene, 'living', BOUND_SECONDS + 1);
    const before = await rounds();
    proxy.set('pass');
    // It has looked several times, and the leases were still as old as the outage left them.
    await until(async () => (await rounds()) > before + 5);
    expect(await store.balance(scene.accountId)).toBe(4_000);
    const backAt = performance.now();
    await until(async () => {
      await seen(scene, 'living', 0);
      return (await store.balance(deadToo.accountId)) === 5_000;
    });
    expect(performance.now() - backAt).toBeLessThan((BOUND_SECONDS + 3) * 1_000);
    expect(await store.balance(scene.accountId)).toBe(4_000);
    expect(Object.values(await store.open(scene.accountId)).join()).toContain('living');
  });

  it('considers no gateway dead until Redis itself has run for one lease time', async () => {
    own.start();
    await store.server.restart();
    await store.reconnected();
    const dead = await holdOfDead();
    await until(async () => (await store.balance(dead.accountId)) === 5_000);
    const info = String(await store.command('info', 'server'));
    expect(Number(/^uptime_in_seconds:(\d+)/m.exec(info)?.[1])).toBeGreaterThanOrEqual(BOUND_SECONDS);
  });

  it('does not wait for a clock that was ahead when Redis started and is right now', async () => {
    const AHEAD_SECONDS = 400 * 86_400;
    const dead = await holdOfDead();
    await seen(dead, 'dead', -AHEAD_SECONDS);
    let looks = 0;
    /** What such a Redis says: it starts in the future, so it has not run yet. */
    const wrong = Object.create(store.redis) as typeof store.redis;
    wrong.script = async (script, ...args) => {
      const reply = await store.redis.script(script, ...args);
      if (script !== lookForHoldsScript || looks++ > 5) return reply;
      const [nowMs, ...rest] = reply as [number, ...unknown[]];
      return [nowMs + AHEAD_SECONDS * 1000, ...rest];
    };
    wrong.command = (...args) => store.redis.command(...args);
    own = new Sweeper({
      redis: wrong,
      keys: store.keys,
      leaseSeconds: BOUND_SECONDS,
      intervalMs: 20,
      isReconciled: () => true,
      log: QUIET,
    });
    own.start();
    await until(async () => (await store.balance(dead.accountId)) === 5_000);
    expect(looks).toBeGreaterThan(5);
  });

  it('sweeps by itself, logs once that Redis is away, and sweeps again when Redis is back', async () => {
    const dead = await holdOfDead();
    own.start();
    await until(async () => (await store.balance(dead.accountId)) === 5_000);
    await store.server.stop();
    await until(() => lines.length > 0);
    await store.server.restart();
    await store.reconnected();
    const another = await holdOfDead();
    await until(async () => (await store.balance(another.accountId)) === 5_000);
    expect(lines).toEqual(['cannot sweep the holds of dead gateways now']);
    // The sweeper counts holds at the end of a round.
    await until(() => own.swept === 2);
  });

  it('keeps its pace despite a damaged shard, logs each damage once, and sweeps the shard once it is repaired', async () => {
    const lost = vi.spyOn(Steadiness.prototype, 'lost');
    const broken = store.keys.open[0] as string;
    const isSwept = async ({ accountId }: Scene) => (await store.balance(accountId)) === 5_000;
    own.start();
    for (let times = 1; times <= 2; times++) {
      await store.command('set', broken, 'x');
      for (let i = 0; i < 3; i++) {
        const scene = await holdOfDead(1);
        await until(() => isSwept(scene));
      }
      await until(() => (own.damage.get('shard') ?? 0) >= 10 * times);
      expect(lines).toHaveLength(times);
      await store.command('del', broken);
      const mended = await holdOfDead(0);
      await until(() => isSwept(mended));
    }
    expect(lost).not.toHaveBeenCalled();
    lost.mockRestore();
  });

  it('logs once that a wallet is damaged, however many of its holds are swept', async () => {
    const scene = await openScene(store, 5_000);
    await admitAll(
      store,
      [1, 2, 3].map((price) => request(scene, price)),
      'dead',
    );
    await store.command('hset', store.walletName(scene.accountId), 'balance', '1.5');
    await seen(scene, 'dead', BOUND_SECONDS + 1);
    own.start();
    await until(() => own.swept === 3);
    expect(own.damage.get('wallet')).toBe(3);
    expect(lines).toEqual([expect.stringContaining('wallet')]);
  });
});

describe('leases are trusted', () => {
  const report = (nowMs: number, dataId = 'a') => ({ nowMs, dataId });
  function steadyFor(seconds: number): Steadiness {
    const steadiness = new Steadiness(LEASE_SECONDS);
    for (let s = 0; s <= seconds; s += 5) steadiness.reported(report(s * 1000));
    return steadiness;
  }

  it('once Redis has answered for one lease time, and not before', () => {
    expect([0, 5, 10, 15, 20].map((seconds) => steadyFor(seconds).lasting)).toEqual([false, false, false, true, true]);
  });

  it.each<[string, (steadiness: Steadiness) => void]>([
    ['a failed round', (steadiness) => steadiness.lost()],
    ['a restart or a failover between two rounds', (steadiness) => steadiness.reported(report(31_000, 'b'))],
    ['a machine that slept between two rounds', (steadiness) => steadiness.reported(report(30_000 + 13_000))],
    ['a clock that jumped ahead', (steadiness) => steadiness.reported(report(400 * 86_400_000))],
    ['a clock that was put back', (steadiness) => steadiness.reported(report(20_000))],
  ])('but not any more after %s', (_, happens) => {
    const steadiness = steadyFor(30);
    happens(steadiness);
    expect(steadiness.lasting).toBe(false);
  });
});

it('a lease is judged by the time when the sweeper looked: a gateway that slept from then until the script ran is not dead', async () => {
  const scene = await openScene(store, 5_000);
  const call = request(scene, 1_000);
  await admit(store, call, 'asleep');
  const now = await store.now();
  await seen(scene, 'asleep', LEASE_SECONDS + 60);
  const shard = store.keys.shardOf(scene.accountId);
  const names = [store.keys.open[shard], store.keys.lease[shard], store.keys.usage[shard]] as string[];
  names.push(store.walletName(scene.accountId));
  const run = await readRedisRun(store.redis);
  const sweepAsOf = (ms: number, dataId = run.dataId) =>
    store.redis.script(sweepScript, 4, [
      ...names,
      String(LEASE_SECONDS * 1000),
      '60000',
      ABANDONED,
      String(ms),
      dataId,
      call.usageId,
    ]);
  expect(await sweepAsOf(now - 61_000)).toEqual([0]);
  // Nor is it swept in a Redis that has restarted since, or was a replica since.
  const [runId, replicationId] = run.dataId.split(' ');
  expect(await sweepAsOf(now, `${'f'.repeat(40)} ${replicationId}`)).toEqual([0]);
  expect(await sweepAsOf(now, `${runId} ${'f'.repeat(40)}`)).toEqual([0]);
  expect(await sweepAsOf(now)).toEqual([1]);
});
