import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
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
