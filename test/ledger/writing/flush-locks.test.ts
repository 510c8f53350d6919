import { describe, expect, it } from 'vitest';
import { FLUSH_LOCK } from '../../../src/ledger/locks.ts';
import type { UsageEvent } from '../../../src/ledger/usage-event.ts';
import { PostgresSession } from '../../../src/platform/postgres.ts';
import { QUIET } from '../../support/store.ts';
import { until } from '../../support/wait.ts';
import { expectedBooks, newEventOf } from '../support.ts';
import { ledger, useLedger } from '../use-ledger.ts';

useLedger();

const ofShard = (shard: number): UsageEvent => newEventOf(shard, ledger.store);

describe('a shard whose flush lock is taken', () => {
  const session = () => new PostgresSession({ url: ledger.databaseUrl, applicationName: 'test' });

  it('does not delay other shards, and is stored when its lock is free', async () => {
    const lock = session();
    await lock.query('SELECT pg_advisory_lock($1::int, 0)', [FLUSH_LOCK]);
    const warnings: string[] = [];
    const writer = ledger.startWriter({ log: { ...QUIET, warn: (_, message) => void warnings.push(message) } });
    const [held, free] = [ofShard(0), [ofShard(1), ofShard(1)]];
    try {
      await ledger.append(held, free[0] as UsageEvent);
      await until(() => writer.stats().storedCalls === 1);
      // The writer did not get the lock, and goes on with the other shards.
      await until(async () => (await ledger.sql`SELECT 1 FROM pg_locks WHERE NOT granted`).length > 0);
      await until(async () => (await ledger.sql`SELECT 1 FROM pg_locks WHERE NOT granted`).length === 0);
      await ledger.append(free[1] as UsageEvent);
      await until(() => writer.stats().storedCalls === 2);
      expect(await ledger.backlog()).toBe(1);
      expect([writer.stats().working, warnings]).toEqual([true, []]);
    } finally {
      lock.close();
    }
    await ledger.drained();
    expect(await ledger.readBooks()).toEqual(expectedBooks([held, ...free]));
  });

  it('is stored even if other sessions have its lock at every moment', async () => {
    const turns = [session(), session()];
    const lock = (i: number) => turns[i % 2]?.query('SELECT pg_advisory_lock_shared($1::int, 0)', [FLUSH_LOCK]);
    const unlock = (i: number) => turns[i % 2]?.query('SELECT pg_advisory_unlock_shared($1::int, 0)', [FLUSH_LOCK]);
    await lock(0);
    const writer = ledger.startWriter();
    await ledger.append(ofShard(0));
    for (let i = 1; writer.stats().storedCalls === 0 && i < 100_000; i++) {
      // Before the last session unlocks, the next one has the lock or queues behind the writer.
      const next = lock(i);
      await unlock(i - 1);
      await next;
    }
    expect(writer.stats().storedCalls).toBe(1);
    for (const turn of turns) turn.close();
  });

  it('makes a stopping writer wait, but no longer than its bound', async () => {
    const lock = session();
    await lock.query('SELECT pg_advisory_lock($1::int, 0)', [FLUSH_LOCK]);
    const writer = ledger.startWriter();
    await until(() => writer.stats().ownedShards > 0);
    await ledger.append(ofShard(0));
    const stopped = writer.stop();
    await until(async () => (await ledger.sql`SELECT 1 FROM pg_locks WHERE NOT granted`).length > 0);
    lock.close();
    await stopped;
    expect([writer.stats().storedCalls, await ledger.backlog()]).toEqual([1, 0]);
  });
});
