import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { FLUSH_LOCK } from '../../../src/ledger/locks.ts';
import { PostgresSession } from '../../../src/platform/postgres.ts';
import type { Scene } from '../../admission/calls.ts';
import { until } from '../../support/wait.ts';
import { comeBackOlder, keepState } from './older-redis.ts';
import { ComparedLedger } from './scene.ts';

let compared: ComparedLedger;
beforeAll(async () => {
  compared = await ComparedLedger.open();
});
afterAll(() => compared.close());
beforeEach(() => compared.ledger.clear());

/** Redis's start is known to a second: what happens from now on is certainly after it. */
async function passTheStart(): Promise<void> {
  const { store } = compared.ledger;
  const uptime = async () => Number(/uptime_in_seconds:(\d+)/.exec(String(await store.command('info', 'server')))?.[1]);
  await until(async () => (await uptime()) > 2);
}

describe('a Redis that restarts under a comparison', () => {
  /** Runs `restart` while a comparison waits for a flush, with the stream read before. */
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
    await until(async () => (await ledger.sql`SELECT 1 FROM pg_locks WHERE NOT granted`).length > 0);
    await restart();
    await flush.query('COMMIT');
    flush.close();
    return (await running)[0];
  }

  it('makes it take no money: the events that it has read are not in the stream any more', async () => {
    const { ledger } = compared;
    const scene = await compared.newScene(10_000);
    await compared.call(scene, 100);
    await compared.storeAll();
    await keepState(ledger);
    await comeBackOlder(ledger);
    await passTheStart();
    // Lost with its charge, and of the same price as the last call before the start that the comparison knows.
    await compared.call(scene, 100);
    const result = await underComparison(scene, () => comeBackOlder(ledger));
    expect(await compared.balances(scene)).toEqual([9_900, 9_900]);
    expect(result).toMatchObject({ status: 'rejected', reason: new Error('redis restarted while it was compared') });
    expect(await compared.drifts()).toEqual([]);
    expect(await compared.repairs()).toEqual([]);
  });
});

describe('what was found before', () => {
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

  it('counts: a drift that begins after the account agreed with the restarted Redis is not of the restart', async () => {
    const scene = await restarted();
    expect(await compared.drifts()).toEqual([]);
    await compared.changeBalance(scene, 100);
    expect(await compared.drifts()).toMatchObject([{ driftMicros: 100, unproven: 'it agreed after Redis started' }]);
    expect(await compared.repairs()).toEqual([]);
  });

  it('stays known while the stream is too long to be compared', async () => {
    const { ledger } = compared;
    const { store } = ledger;
    const scene = await restarted();
    await compared.changeBalance(scene, 50);
    const shard = store.keys.shardOf(scene.accountId);
    const [known] = await compared.drifts();
    expect(known).toMatchObject({ driftMicros: 50 });
    await passTheStart();
    await keepState(ledger);
    const fill = "for i = 1, 100001 do redis.call('XADD', KEYS[1], '*', 'e', 'x') end";
    await store.command('eval', fill, 1, store.keys.usage[shard] as string);
    const report = (await compared.run())[shard];
    expect(report).toMatchObject({ compared: false, driftingAccounts: 1, absoluteDriftMicros: 50, drifts: [known] });

    // The long stream is gone, and the drift is now the price of the last call: it is from before this start.
    await comeBackOlder(ledger);
    await compared.changeBalance(scene, 50);
    expect(await compared.drifts()).toMatchObject([
      { driftMicros: 100, sinceMs: known?.sinceMs, unproven: 'it was so before Redis started' },
    ]);
    expect(await compared.repairs()).toEqual([]);
  });

  it("is dated by Redis's clock, as its start is: that of the writer may be wrong", async () => {
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
