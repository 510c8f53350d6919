import { setTimeout } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { UsageEvent } from '../../../src/ledger/usage-event.ts';
import { QUIET } from '../../support/store.ts';
import { until } from '../../support/wait.ts';
import { expectedBooks, holdOf, newEventOf, tailOf } from '../support.ts';
import { ledger, useLedger } from '../use-ledger.ts';

useLedger();

const errors: { shard?: number; events?: number }[] = [];
const log = { ...QUIET, error: (fields: object) => void errors.push(fields) };
const newer = async (field = 'e2', text = 'something that only it can read'): Promise<string> => {
  const stream = ledger.store.keys.usage[0] as string;
  return (await ledger.store.command('xadd', stream, '*', field, text)) as string;
};
/** Another version, a field of the hold that this one does not know, and one of the settlement. */
function newerIn(i: number): Promise<string> {
  const event = newEventOf(0, ledger.store);
  const [hold, settlement] = [holdOf(event), tailOf(event)];
  if (i % 3 === 0) return newer();
  const text = i % 3 === 1 ? [hold, 'colour=red', settlement] : [hold, settlement, 'tokens=17'];
  return newer('e1', [event.usageId, ...text].join('\t'));
}
const idsLeft = async (): Promise<string[]> => {
  const entries = await ledger.store.command('xrange', ledger.store.keys.usage[0] as string, '-', '+');
  return (entries as [string][]).map(([id]) => id);
};

describe('usage events', () => {
  it.each([
    ['by COPY, if all are new', false],
    ['by INSERT, if one was stored before', true],
  ])(
    'of a newer version stay in the stream and are logged once; all others are stored, %s',
    async (_, isStoredBefore) => {
      errors.length = 0;
      const events = Array.from({ length: 4 }, () => newEventOf(0, ledger.store));
      if (isStoredBefore) {
        await ledger.append(events[2] as UsageEvent);
        ledger.startWriter();
        await ledger.drained();
        await ledger.stopWriters();
      }
      const left: string[] = [];
      for (const [i, event] of events.entries()) {
        left.push(await newerIn(i));
        await ledger.append(event);
      }
      const writer = ledger.startWriter({ log });
      await until(async () => (await idsLeft()).length === left.length);
      await until(() => writer.stats().newerEvents === left.length);
      // Afterwards the writer goes on, and can stop.
      const next = newEventOf(0, ledger.store);
      await ledger.append(next);
      await until(async () => (await idsLeft()).length === left.length);
      await ledger.stopWriters();
      expect(await idsLeft()).toEqual(left);
      expect(await ledger.readBooks()).toEqual(expectedBooks([...events, next]));
      expect(await ledger.sql`SELECT FROM rejected_events`).toHaveLength(0);
      expect(errors).toEqual([expect.objectContaining({ shard: 0 })]);
    },
  );

  it('of a newer version, a thousand at the head of the stream, do not prevent later events from being stored', async () => {
    for (let i = 0; i < 1_100; i++) await newer();
    const event = newEventOf(0, ledger.store);
    await ledger.append(event);
    const writer = ledger.startWriter({ log, batchSize: 100 });
    await until(async () => (await idsLeft()).length === 1_100);
    expect(await ledger.readBooks()).toEqual(expectedBooks([event]));
    await until(() => writer.stats().newerEvents === 1_100);
  });
});

async function commands(name: string): Promise<number> {
  const stats = String(await ledger.store.command('info', 'commandstats'));
  return Number(new RegExp(`^cmdstat_${name}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0);
}

it('beside an event of a newer version, the writer gathers batches under steady load as usual', async () => {
  await newer();
  const writer = ledger.startWriter({ log });
  await until(() => writer.stats().newerEvents === 1);
  const startedAt = performance.now();
  const seconds = (): number => (performance.now() - startedAt) / 1_000;
  let appended = 0;
  // On a busy machine it takes longer until there was a steady load of 200 events.
  while (seconds() < 3 || appended <= 200) {
    await ledger.append(newEventOf(0, ledger.store));
    appended++;
    // About 300 events a second: the next one comes before a flush has ended.
    await setTimeout(3);
  }
  // At most ten flushes, 0.1 s apart, until the load counts as steady; then two a second.
  expect(writer.stats().flushes).toBeLessThan(14 + 2 * seconds());
  await until(async () => (await idsLeft()).length === 1);
  expect(writer.stats().storedCalls).toBe(appended);
});

it('newer events that were skipped are not read at each look, and the events behind them are stored', async () => {
  for (let i = 0; i < 1_500; i++) await newer();
  const writer = ledger.startWriter({ log });
  await until(() => writer.stats().newerEvents === 1_500);
  const looks = async () => (await commands('xread')) + (await commands('xlen'));
  await until(async () => (await commands('xread')) > 0);
  await ledger.store.command('config', 'resetstat');
  // An idle writer waits up to five seconds.
  await until(async () => (await looks()) >= 2);
  expect(await commands('xrange')).toBe(0);
  const event = newEventOf(0, ledger.store);
  await ledger.append(event);
  await until(async () => (await ledger.readBooks()).calls.length === 1);
  await until(async () => (await idsLeft()).length === 1_500);
  expect(writer.stats().backlog).toBe(0);
});

it('newer events do not prevent later events from being stored, even if they are more than one look skips', async () => {
  const add = Array.from({ length: 1_000 }, () => "redis.call('XADD', KEYS[1], '*', 'e2', 'x')").join('\n');
  for (let i = 0; i < 22; i++) await ledger.store.command('eval', add, 1, ledger.store.keys.usage[0] as string);
  const event = newEventOf(0, ledger.store);
  await ledger.append(event);
  const writer = ledger.startWriter({ log });
  await until(async () => (await ledger.readBooks()).calls.length === 1);
  await until(() => writer.stats().newerEvents === 22_000);
});

it('a stream key of another type does not delay other shards, and is logged once', async () => {
  errors.length = 0;
  await ledger.store.command('set', ledger.store.keys.usage[0] as string, 'x');
  const event = newEventOf(1, ledger.store);
  await ledger.append(event);
  const writer = ledger.startWriter({ log });
  await until(async () => (await ledger.readBooks()).calls.length === 1);
  await until(async () => (await ledger.store.command('xlen', ledger.store.keys.usage[1] as string)) === 0);
  expect(writer.stats().working).toBe(true);
  expect(errors).toHaveLength(1);
  // If it is damaged again after it was mended, that is logged again.
  await ledger.store.command('del', ledger.store.keys.usage[0] as string);
  const another = newEventOf(0, ledger.store);
  await ledger.append(another);
  await until(async () => (await ledger.readBooks()).calls.length === 2);
  await until(async () => (await ledger.store.command('xlen', ledger.store.keys.usage[0] as string)) === 0);
  await ledger.store.command('set', ledger.store.keys.usage[0] as string, 'x');
  await until(() => errors.length === 2);
});
