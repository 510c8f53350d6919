import { describe, expect, it } from 'vitest';
import { FLUSH_LOCK } from '../../../src/ledger/locks.ts';
import type { UsageEvent } from '../../../src/ledger/usage-event.ts';
import { PostgresSession } from '../../../src/platform/postgres.ts';
import { QUIET } from '../../support/store.ts';
import { until } from '../../support/wait.ts';
import { newEvent, newEventOf } from '../support.ts';
import { ledger, useLedger } from '../use-ledger.ts';

useLedger();

const ofShard = (shard: number): UsageEvent => newEventOf(shard, ledger.store);

describe('a writer that is told to stop', () => {
  it('stores events that arrived after it had read ahead', async () => {
    const lock = new PostgresSession({ url: ledger.databaseUrl, applicationName: 'test' });
    await lock.query('SELECT pg_advisory_lock($1::int, 0)', [FLUSH_LOCK]);
    const events = [ofShard(0), ofShard(1), ofShard(1)];
    let stopped: Promise<void> | null = null;
    const writer = ledger.writer({
      afterCommit: async () => {
        if (stopped !== null) return;
        // One shard was locked, so the writer has read ahead and does not know of this event yet.
        await ledger.append(events[2] as UsageEvent);
        lock.close();
        stopped = writer.stop();
      },
    });
    await ledger.append(...events.slice(0, 2));
    writer.start();
    await until(() => stopped !== null);
    await stopped;
    expect([writer.stats().storedCalls, await ledger.backlog()]).toEqual([3, 0]);
  });

  it('retries after a failure until its time has run out', async () => {
    const { redis } = ledger.store;
    let [slow, failures] = [false, 0];
    let stopped: Promise<void> | null = null;
    // The same Redis, too slow for a while, and still so for the first commands after the writer was told to stop.
    const sometimesSlow = Object.create(redis) as typeof redis;
    sometimesSlow.script = (...args) => redis.script(...args);
    sometimesSlow.command = async (name, args) => {
      if (slow && (stopped === null || failures++ < 6)) throw new Error('Command timed out');
      return redis.command(name, args);
    };
    const writer = ledger.startWriter({ redis: sometimesSlow });
    await until(() => writer.stats().ownedShards > 0);
    slow = true;
    await until(() => !writer.stats().working);
    await ledger.append(newEvent());
    stopped = writer.stop();
    await stopped;
    expect(failures).toBeGreaterThan(6);
    expect([writer.stats().storedCalls, await ledger.backlog()]).toEqual([1, 0]);
  });

  it('logs how many events it leaves when its time has run out', async () => {
    const lock = new PostgresSession({ url: ledger.databaseUrl, applicationName: 'test' });
    await lock.query('SELECT pg_advisory_lock($1::int, 0)', [FLUSH_LOCK]);
    try {
      const warnings: object[] = [];
      const log = { ...QUIET, warn: (fields: object, message: string) => void warnings.push({ ...fields, message }) };
      const writer = ledger.startWriter({ log });
      await ledger.append(ofShard(0), ofShard(1));
      await until(() => writer.stats().storedCalls === 1);
      await writer.stop(1_000);
      const message = 'writer stops and leaves events for the next writer';
      await until(() => warnings.length > 0);
      expect(warnings).toContainEqual({ events: 1, message });
      expect([writer.stats().storedCalls, await ledger.backlog()]).toEqual([1, 1]);
    } finally {
      lock.close();
    }
  });
});
