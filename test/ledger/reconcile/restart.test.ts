import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { FLUSH_LOCK } from '../../../src/ledger/locks.ts';
import { selectReports } from '../../../src/ledger/reconcile/reconcile-sql.ts';
import { Reconciler } from '../../../src/ledger/reconcile/reconciler.ts';
import { readRedisRun } from '../../../src/ledger/redis-run.ts';
import { repairWalletScript } from '../../../src/ledger/scripts.ts';
import { Sweeper } from '../../../src/ledger/sweep/sweeper.ts';
import { PostgresSession } from '../../../src/platform/postgres.ts';
import type { RedisClient, Script } from '../../../src/platform/redis.ts';
import { Reconcilers } from '../../../src/roles/upkeep.ts';
import { admit, INSTANCE, request, type Scene, settle } from '../../admission/calls.ts';
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

/** Waits out the second by which Redis's start is uncertain, so that everything from now on is certainly after it. */
async function passTheStart(): Promise<void> {
  const { store } = compared.ledger;
  const uptime = async () => Number(/uptime_in_seconds:(\d+)/.exec(String(await store.command('info', 'server')))?.[1]);
  await until(async () => (await uptime()) > 2);
}

describe('a Redis that restarts during a comparison', () => {
  /** Calls `restart` while a comparison that has read the stream waits for a flush. */
  async function underComparison(
    { accountId }: Scene,
    restart: () => Promise<void>,
  ): Promise<PromiseSettledResult<unknown>> {
    const { ledger } = compared;
    const flush = new PostgresSession({ url: ledger.databaseUrl, applicationName: 'test' });
    await flush.query('BEGIN');
    const shard = ledger.store.keys.shardOf(accountId);
    await flush.query('SELECT pg_advisory_xact_lock($1::int, $2::int)', [FLUSH_LOCK, shard]);
    const running = Promise.allSettled([compared.run()]);
    await until(async () => (await ledger.advisoryLocks({ granted: false })).length > 0);
    await restart();
    await flush.query('COMMIT');
    flush.close();
    return (await running)[0];
  }

  it('does not make the comparison take money for events that it read and Redis then lost', async () => {
    const { ledger } = compared;
    const scene = await compared.newScene(10_000);
    await compared.call(scene, 100);
    await compared.storeAll();
    await keepState(ledger);
    await comeBackOlder(ledger);
    await passTheStart();
    // Redis loses this call with its charge. It costs as much as the last call before the start that the comparison knows.
    await compared.call(scene, 100);
    const result = await underComparison(scene, () => comeBackOlder(ledger));
    expect(await compared.balances(scene)).toEqual([9_900, 9_900]);
    expect(result).toMatchObject({
      status: 'rejected',
      reason: new Error('redis restarted or was replaced while it was compared'),
    });
    expect(await compared.drifts()).toEqual([]);
    expect(await compared.repairs()).toEqual([]);
  });
});

describe('a finding of an earlier comparison', () => {
  /** An account whose last call before Redis's start cost 100. */
  async function restarted(): Promise<Scene> {
    const { ledger } = compared;
    const scene = await compared.newScene(10_000);
    await compared.call(scene, 100);
    await compared.storeAll();
    await keepState(ledger);
    await comeBackOlder(ledger);
    return scene;
  }

  it('still counts: if the account agreed after Redis restarted, a later drift does not come from the restart', async () => {
    const scene = await restarted();
    await compared.keepBusy(scene);
    expect(await compared.drifts()).toEqual([]);
    await compared.changeBalance(scene, 100);
    expect(await compared.drifts()).toMatchObject([
      { driftMicros: 100, notRepaired: expect.stringMatching(/has not changed/) },
    ]);
    expect(await compared.repairs()).toEqual([]);
  });

  it('counts for one crash: a second crash raises a new doubt, even if the first was not repaired yet', async () => {
    const { ledger } = compared;
    const { sql, store } = ledger;
    const scene = await compared.newScene(10_000);
    await compared.keepBusy(scene);
    await keepState(ledger);
    await compared.call(scene, 700);
    await compared.storeAll();
    await comeBackOlder(ledger);
    const found = await new Reconciler({ sql, redis: store.redis, keys: store.keys }, { maxRepairs: 0 }).run('test');
    expect(found.undecided).toBe(1);
    await comeBackOlder(ledger);
    expect(await compared.drifts()).toEqual([]);
    expect(await compared.balances(scene)).toEqual([9_300, 9_300]);
  });

  it('is kept while the stream is too long to be compared', async () => {
    const { store } = compared.ledger;
    const scene = await compared.newScene(10_000);
    await compared.changeBalance(scene, 50);
    const shard = store.keys.shardOf(scene.accountId);
    const [known] = await compared.drifts();
    expect(known).toMatchObject({ driftMicros: 50 });
    const fill = "for i = 1, 100001 do redis.call('XADD', KEYS[1], '*', 'e1', 'x') end";
    await store.command('eval', fill, 1, store.keys.usage[shard] as string);
    const report = (await compared.run())[shard];
    expect(report).toMatchObject({
      compared: false,
      whyNot: 'too many events wait to be stored',
      driftingAccounts: 1,
      absoluteDriftMicros: 50,
      drifts: [known],
    });
    await store.command('del', store.keys.usage[shard] as string);
    expect(await compared.drifts()).toMatchObject([{ driftMicros: 50, sinceMs: known?.sinceMs }]);
    expect(await compared.repairs()).toEqual([]);
  });

  it("is dated by Redis's clock, like Redis's start, because the writer's clock may be wrong", async () => {
    const { store } = compared.ledger;
    const scene = await compared.newScene(10_000);
    await compared.changeBalance(scene, 50);
    const hourAgo = (await store.now()) - 3_600_000;
    const clock = vi.spyOn(Date, 'now').mockReturnValue(hourAgo);
    const report = (await compared.run())[store.keys.shardOf(scene.accountId)];
    clock.mockRestore();
    expect(report?.checkedAtMs).toBeGreaterThan(hourAgo + 3_500_000);
    expect(report?.drifts[0]?.sinceMs).toBeGreaterThan(hourAgo + 3_500_000);
  });
});

describe('the sweep after a restart', () => {
  it('waits for the comparison: it refunds no stored call whose gateway died with Redis, and settles other calls', async () => {
    const { ledger } = compared;
    const { redis, keys } = ledger.store;
    const scene = await compared.newScene(10_000);
    const [stored, open] = [request(scene, 500), request(scene, 20)];
    await admit(ledger.store, stored);
    await admit(ledger.store, open);
    await compared.call(scene, 300);
    await compared.storeAll();
    await keepState(ledger);
    await settle(ledger.store, stored, false);
    await compared.storeAll();
    await comeBackOlder(ledger);
    const shard = keys.shardOf(scene.accountId);
    await ledger.store.command('hset', keys.lease[shard] as string, INSTANCE, 1);

    const reconciler = new Reconciler({ sql: ledger.sql, redis, keys });
    const asked: boolean[] = [];
    const isReconciled = (of: number, dataId: string): boolean => {
      const answer = reconciler.hasCompared(of, dataId);
      if (of === shard) asked.push(answer);
      return answer;
    };
    const sweeper = new Sweeper({ redis, keys, leaseSeconds: 2, intervalMs: 20, isReconciled, log: QUIET });
    sweeper.start();
    // Every other condition for sweeping is met.
    await until(() => asked.length > 3);
    expect(Object.keys(await ledger.store.open(scene.accountId)).sort()).toEqual([stored.usageId, open.usageId].sort());
    await reconciler.run('test');
    await until(() => sweeper.swept === 1);
    await sweeper.stop();
    await compared.storeAll();
    expect(await compared.balances(scene)).toEqual([9_200, 9_200]);
    expect(await compared.drifts()).toEqual([]);
  });

  it('refunds no stored call after a failover in a cluster, and takes the charges that the replica lacked', async () => {
    const { ledger } = compared;
    const { keys } = ledger.store;
    const { redis } = ledger.store;
    const [charged, refunded] = [await compared.newScene(10_000), await compared.newScene(10_000)];
    const [first, second] = [request(charged, 500), request(refunded, 70)];
    await admit(ledger.store, first);
    await admit(ledger.store, second);
    await keepState(ledger);
    await settle(ledger.store, first, false);
    await settle(ledger.store, second, true);
    // As late as the end of the first call, so the replica that takes over lacks it as well.
    await compared.call(charged, 300);
    await compared.storeAll();
    await comeBackOlder(ledger);
    for (const lease of keys.lease) await ledger.store.command('hset', lease, INSTANCE, 1);

    const reconciler = new Reconciler({ sql: ledger.sql, redis, keys });
    const isReconciled = (shard: number, dataId: string): boolean => reconciler.hasCompared(shard, dataId);
    const { reports } = await reconciler.run('test');
    expect(reports.flatMap(({ drifts }) => drifts)).toEqual([]);
    const sweeper = new Sweeper({ redis, keys, leaseSeconds: 1, intervalMs: 20, isReconciled, log: QUIET });
    sweeper.start();
    // It has swept all shards, since it forgets leases of the dead only then.
    await until(async () => (await ledger.store.command('hlen', keys.lease[0] as string)) === 0);
    await sweeper.stop();
    expect(sweeper.swept).toBe(0);
    expect(await compared.balances(charged)).toEqual([9_200, 9_200]);
    expect(await compared.balances(refunded)).toEqual([10_000, 10_000]);
  });

  it('waits until the last of many repairs is made, except for accounts that cannot be repaired', async () => {
    const { ledger } = compared;
    const { redis, keys } = ledger.store;
    const scenes = await Promise.all(Array.from({ length: 6 }, () => compared.newScene(1_000)));
    await compared.keepBusy(...scenes);
    await keepState(ledger);
    for (const scene of scenes) await compared.call(scene, 100);
    await compared.storeAll();
    await comeBackOlder(ledger);
    // Ahead of Postgres.
    for (const { accountId } of scenes.slice(0, 3))
      await ledger.store.command('hset', ledger.store.walletName(accountId), 'credit_seq', 9);
    const reconciler = new Reconciler({ sql: ledger.sql, redis, keys }, { maxRepairs: 2 });
    const { dataId } = await readRedisRun(redis);
    const isDone = () => keys.open.every((_, shard) => reconciler.hasCompared(shard, dataId));
    const undecided: number[] = [];
    while (!isDone() && undecided.length < 10) undecided.push((await reconciler.run('test')).undecided);
    expect(undecided).toEqual([1, 0]);
    expect(reconciler.repaired).toBe(3);
    expect(reconciler.last?.reports.reduce((sum, report) => sum + report.driftingAccounts, 0)).toBe(3);
    expect(reconciler.hasCompared(0, 'another')).toBe(false);
  });
});

describe('a writer that is behind when Redis came back with an older state', () => {
  it('sweeps nothing and repairs nothing in that shard until it has caught up, and then repairs it', async () => {
    const { ledger } = compared;
    const { redis, keys } = ledger.store;
    const scene = await compared.newScene(1_000);
    await keepState(ledger);
    await compared.call(scene, 100);
    await compared.storeAll();
    await comeBackOlder(ledger);
    for (let i = 0; i < 3; i++) await compared.call(scene, 10);
    const shard = keys.shardOf(scene.accountId);
    const reconciler = new Reconciler({ sql: ledger.sql, redis, keys }, { bounds: { waiting: 2 } });
    const { dataId } = await readRedisRun(redis);
    const early = await reconciler.run('test');
    expect(early.behind).toEqual([shard]);
    expect(early.reports.filter(({ compared: isCompared }) => !isCompared).map((report) => report.shard)).toEqual([
      shard,
    ]);
    expect(reconciler.hasCompared(shard, dataId)).toBe(false);
    expect(await compared.balances(scene)).toEqual([970, 900]);
    await compared.storeAll();
    expect((await reconciler.run('test')).behind).toEqual([]);
    expect(reconciler.hasCompared(shard, dataId)).toBe(true);
    expect(await compared.balances(scene)).toEqual([870, 870]);
  });
});

describe('a repair whose reply was lost', () => {
  /** @param isMade whether Redis made the repair */
  async function repairLost(isMade: boolean): Promise<Scene> {
    const { ledger } = compared;
    const { sql, store } = ledger;
    const scene = await compared.newScene(10_000);
    await compared.keepBusy(scene);
    await keepState(ledger);
    await compared.call(scene, 300);
    await compared.storeAll();
    await comeBackOlder(ledger);
    const script: RedisClient['script'] = async (which: Script, keys, args) => {
      const isRepair = which === repairWalletScript;
      const reply = isRepair && !isMade ? null : await store.redis.script(which, keys, args);
      if (isRepair) throw new Error('Command timed out');
      return reply;
    };
    const redis = Object.create(store.redis, {
      script: { value: script },
      command: { value: store.redis.command.bind(store.redis) },
    });
    await expect(new Reconciler({ sql, redis, keys: store.keys }).run('test')).rejects.toThrow('timed out');
    expect((await compared.repairs()).map(({ state }) => state)).toEqual(['begun']);
    return scene;
  }
  const states = async () => (await compared.repairs()).map(({ state }) => state);

  it('is recorded as done by the next comparison if it was made', async () => {
    const scene = await repairLost(true);
    expect(await compared.drifts()).toEqual([]);
    expect(await states()).toEqual(['done']);
    expect(await compared.balances(scene)).toEqual([9_700, 9_700]);
  });

  it('is recorded as left by the next comparison if it was not made, and another repair is made', async () => {
    const scene = await repairLost(false);
    expect(await compared.drifts()).toEqual([]);
    expect(await states()).toEqual(['done', 'left']);
    expect(await compared.balances(scene)).toEqual([9_700, 9_700]);
  });
});

it('a comparison that finds Redis away says why in each report, and keeps what the last one found', async () => {
  const { store, sql } = compared.ledger;
  await compared.newScene(5_000);
  const reconcilers = new Reconcilers({ sql, redis: store.redis, keys: store.keys });
  await reconcilers.run('test');
  const before = await selectReports(sql);
  await store.server.kill();
  await expect(reconcilers.run('test')).rejects.toThrow();
  const away = await selectReports(sql);
  await store.server.restart();
  await store.reconnected();
  expect(before.every((report) => report.compared && report.whyNot === undefined)).toBe(true);
  expect(away).toEqual(
    before.map((report) => ({
      ...report,
      compared: false,
      whyNot: 'Redis was away or too slow',
      checkedAtMs: expect.any(Number),
    })),
  );
});
