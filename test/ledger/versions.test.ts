import { describe, expect, it } from 'vitest';
import { QUIET } from '../admission/redis.ts';
import { until } from '../support/wait.ts';
import { expectedBooks, holdOf, newEventOf, tailOf } from './support.ts';
import { ledger, useLedger } from './use-ledger.ts';

useLedger();

const errors: { shard?: number; events?: number }[] = [];
const log = { ...QUIET, error: (fields: object) => void errors.push(fields) };
const newer = async (): Promise<string> => {
  const stream = ledger.store.keys.usage[0] as string;
  return (await ledger.store.command('xadd', stream, '*', 'e2', 'something that only it can read')) as string;
};
const idsLeft = async (): Promise<string[]> => {
  const entries = await ledger.store.command('xrange', ledger.store.keys.usage[0] as string, '-', '+');
  return (entries as [string][]).map(([id]) => id);
};

describe('usage events', () => {
  it('of the version without a number are stored as those of this one', async () => {
    const [old, present] = [newEventOf(0, ledger.store), newEventOf(0, ledger.store)];
    await ledger.appendOld(old);
    await ledger.append(present);
    // A hold of before, settled by this version.
    const between = newEventOf(1, ledger.store);
    await ledger.appendRaw(between.accountId, between.usageId, holdOf(between), tailOf(between), 'e1');
    ledger.startWriter();
    await ledger.drained();
    expect(await ledger.readBooks()).toEqual(expectedBooks([old, present, between]));
    expect(await ledger.sql`SELECT FROM rejected_events`).toHaveLength(0);
  });

  it.each([false, true])(
    'of a newer version stay in the stream, all others are stored (again: %s), and it is said once',
    async (careful) => {
      errors.length = 0;
      const events = Array.from({ length: 4 }, () => newEventOf(0, ledger.store));
      const left: string[] = [];
      for (const event of events) {
        left.push(await newer());
        await ledger.append(event);
      }
      // Stored already, and not deleted: the batch fails, and is stored with care.
      if (careful) {
        const first = events[0] as (typeof events)[number];
        ledger.startWriter();
        await until(async () => (await idsLeft()).length === left.length);
        await ledger.append(first);
      }
      const writer = ledger.startWriter({ log });
      if (careful) await ledger.stopWriters();
      const last = careful ? ledger.startWriter({ log }) : writer;
      await until(async () => (await idsLeft()).length === left.length);
      await until(() => last.stats().newerEvents === left.length);
      expect(await idsLeft()).toEqual(left);
      expect(await ledger.readBooks()).toEqual(expectedBooks(events));
      expect(await ledger.sql`SELECT FROM rejected_events`).toHaveLength(0);
      expect(errors.filter(({ shard }) => shard === 0).length).toBeLessThanOrEqual(careful ? 2 : 1);
      expect(errors.length).toBeGreaterThan(0);
      // And it goes on, and ends.
      const next = newEventOf(0, ledger.store);
      await ledger.append(next);
      await until(async () => (await idsLeft()).length === left.length);
      await ledger.stopWriters();
      expect(await idsLeft()).toEqual(left);
      expect((await ledger.readBooks()).calls).toHaveLength(5);
    },
  );

  it('of a newer version, a thousand of them before all others, keep these from nothing', async () => {
    for (let i = 0; i < 1_100; i++) await newer();
    const event = newEventOf(0, ledger.store);
    await ledger.append(event);
    const writer = ledger.startWriter({ log, batchSize: 100 });
    await until(async () => (await idsLeft()).length === 1_100);
    expect(await ledger.readBooks()).toEqual(expectedBooks([event]));
    await until(() => writer.stats().newerEvents === 1_100);
  });
});

it('a stream that is of another type keeps no other shard waiting, and is said once', async () => {
  errors.length = 0;
  await ledger.store.command('set', ledger.store.keys.usage[0] as string, 'x');
  const event = newEventOf(1, ledger.store);
  await ledger.append(event);
  const writer = ledger.startWriter({ log });
  await until(async () => (await ledger.readBooks()).calls.length === 1);
  await until(async () => (await ledger.store.command('xlen', ledger.store.keys.usage[1] as string)) === 0);
  expect(writer.stats().working).toBe(true);
  expect(errors).toHaveLength(1);
});
