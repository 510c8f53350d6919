// A Redis that is replaced by its replica and comes back (A, B, A), as Sentinel or an operator does with REPLICAOF: the process is the same,
// its data are the replica's.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Reconciler } from '../../../src/ledger/reconcile/reconciler.ts';
import { readRedisRun } from '../../../src/ledger/redis-run.ts';
import { Sweeper } from '../../../src/ledger/sweep/sweeper.ts';
import { admit, INSTANCE, request, type Scene, settle } from '../../admission/calls.ts';
import { ask, startTestReplica, type TestReplica } from '../../support/replica.ts';
import { QUIET } from '../../support/store.ts';
import { until } from '../../support/wait.ts';
import { comeBackOlder, keepState } from './older-redis.ts';
import { ComparedLedger } from './scene.ts';

let compared: ComparedLedger;
let replica: TestReplica;
let scene: Scene;

beforeAll(async () => {
  compared = await ComparedLedger.open();
});
afterAll(() => compared.close());

const a = () => compared.ledger.store.server;
const runOfA = () => readRedisRun(compared.ledger.store.redis);

/** The replica takes over with what it has, and A follows it until it has the same. */
async function aFollowsB(): Promise<void> {
  await replica.promote();
  await ask(replica.server, 'CONFIG SET repl-diskless-sync-delay 0');
  await ask(a(), `REPLICAOF 127.0.0.1 ${replica.server.port}`);
  await until(async () => (await ask(a(), 'INFO replication')).includes('master_link_status:up'));
}

async function aLeadsAgain(): Promise<void> {
  await ask(a(), 'REPLICAOF NO ONE');
  await compared.ledger.store.reconnected();
}

describe('a Redis that was a replica for a while', () => {
  beforeEach(async () => {
    await compared.clear();
    // A starts with all its data. The last call before its start cost 300.
    scene = await compared.newScene(10_000);
    await compared.call(scene, 300);
    await compared.storeAll();
    await keepState(compared.ledger);
    await comeBackOlder(compared.ledger);
    replica = await startTestReplica(a());
    return () => replica.close();
  });

  it('has other data: earlier verdicts do not count, and its holds of stored calls are removed instead of swept', async () => {
    const { ledger } = compared;
    const { redis, keys } = ledger.store;
    const reconciler = new Reconciler({ sql: ledger.sql, redis, keys });
    await reconciler.run('test');
    const before = await runOfA();
    const shard = keys.shardOf(scene.accountId);
    expect(reconciler.hasCompared(shard, before.dataId)).toBe(true);

    // The first comparison of a Redis that has restarted has dropped the wallet.
    await compared.hydrator.loadWallet(scene.accountId);
    const open = request(scene, 70);
    await admit(ledger.store, open);
    await replica.caughtUp();
    // B lacks the end of the open call and the whole next one. Postgres has both.
    replica.line.set('swallow replies');
    await settle(ledger.store, open, false);
    await compared.call(scene, 500);
    await compared.storeAll();
    await aFollowsB();
    await aLeadsAgain();

    const now = await runOfA();
    expect(now.runId).toBe(before.runId);
    expect(now.dataId).not.toBe(before.dataId);
    expect(reconciler.hasCompared(shard, now.dataId)).toBe(false);
    await ledger.store.command('hset', keys.lease[shard] as string, INSTANCE, 1);
    const isReconciled = (of: number, dataId: string): boolean => reconciler.hasCompared(of, dataId);
    const { reports } = await reconciler.run('test');
    expect(reports.flatMap(({ drifts }) => drifts)).toEqual([]);
    expect(await compared.balances(scene)).toEqual([9_130, 9_130]);
    expect(await ledger.store.open(scene.accountId)).toEqual({});
    const sweeper = new Sweeper({ redis, keys, leaseSeconds: 1, intervalMs: 20, isReconciled, log: QUIET });
    sweeper.start();
    await until(async () => (await ledger.store.command('hlen', keys.lease[shard] as string)) === 0);
    await sweeper.stop();
    expect(sweeper.swept).toBe(0);
  });

  it('ends a comparison that had read its earlier data', async () => {
    const { ledger } = compared;
    const { redis, keys } = ledger.store;
    // The last thing that a comparison asks before it relies on what it has read.
    let isReplaced = false;
    const command: typeof redis.command = async (name, args) => {
      const asked = await redis.command(name, args);
      if (name === 'xlen' && !isReplaced) {
        isReplaced = true;
        await aFollowsB();
        await aLeadsAgain();
      }
      return asked;
    };
    const watched = new Proxy(redis, {
      get: (target, name) => {
        const value: unknown = name === 'command' ? command : Reflect.get(target, name, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    const run = new Reconciler({ sql: ledger.sql, redis: watched, keys }).run('test');
    await expect(run).rejects.toThrow('was replaced');
  });

  it('is doubted for one comparison: later drifts are reported, even after it has forgotten that it was a replica', async () => {
    const { ledger } = compared;
    await aFollowsB();
    await aLeadsAgain();
    const open = request(scene, 70);
    await admit(ledger.store, open);
    await compared.changeBalance(scene, 300);
    expect(await compared.drifts()).toEqual([]);
    expect(await compared.balances(scene)).toEqual([9_630, 9_700]);
    await compared.changeBalance(scene, 300);
    expect(await compared.drifts()).toMatchObject([{ driftMicros: 300 }]);
    expect(await compared.repairs()).toHaveLength(1);
    const { dataId } = await runOfA();
    await ledger.store.command('config', 'set', 'repl-backlog-ttl', 1);
    await until(async () => (await runOfA()).dataId !== dataId);
    await ledger.store.command('config', 'set', 'repl-backlog-ttl', 3_600);
  });
});
