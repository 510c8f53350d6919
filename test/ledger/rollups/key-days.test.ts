import { expect, it } from 'vitest';
import { addHour } from '../../../src/ledger/rollups/key-days.ts';
import { KeyDaysJob } from '../../../src/ledger/rollups/key-days-job.ts';
import { rebuildSums } from '../../../src/ledger/rollups/rebuild.ts';
import { uuidv7 } from '../../../src/platform/ids.ts';
import { PostgresSession } from '../../../src/platform/postgres.ts';
import { QUIET } from '../../support/store.ts';
import { until } from '../../support/wait.ts';
import { newEvent } from '../support.ts';
import { ledger, readAll, session, storeFast, useFlush } from '../writing/flush-support.ts';
import { compareSums } from './sums-oracle.ts';

useFlush();

const HOUR_MS = 3_600_000;
const [accountId, serviceId, keyId] = [uuidv7(), uuidv7(), 'acf_0000000000000000000001'];
const thisHour = (): number => Math.floor(Date.now() / HOUR_MS) * HOUR_MS;

const setSummedTo = (ms: number) => ledger.sql`UPDATE installation SET days_summed_to = ${new Date(ms)}`;
const summedTo = async (): Promise<number> => {
  const [row] = await ledger.sql<{ toMs: number }[]>`
    SELECT (extract(epoch FROM days_summed_to) * 1000)::bigint AS "toMs" FROM installation`;
  return row?.toMs as number;
};
const callsOfDays = async (): Promise<number> => {
  const [row] = await ledger.sql<{ calls: number }[]>`SELECT coalesce(sum(calls), 0)::int AS calls FROM key_days`;
  return row?.calls as number;
};

const addAll = async (): Promise<void> => {
  while ((await ledger.sql.begin(addHour)) === 'one');
  expect(await ledger.sql.begin(addHour)).toBe('none');
};

/** Puts a call that began at this time into its stream, and reads it as the writer does. */
async function waiting(atMs: number) {
  await ledger.store.command('flushall');
  await ledger.append(newEvent({ accountId, serviceId, keyId, usageId: uuidv7(atMs), admittedAtMs: atMs }));
  return readAll();
}

const store = async (atMs: number): Promise<void> => {
  const batch = await waiting(atMs);
  await session.transaction(() => storeFast(batch));
};

it('the hours that are over are added to the days once, one at a time, and the present hour is not', async () => {
  const from = thisHour() - 50 * HOUR_MS;
  await setSummedTo(from);
  for (const atMs of [from, from, from + 23 * HOUR_MS + 5, from + 24 * HOUR_MS, Date.now()]) await store(atMs);
  expect(await callsOfDays()).toBe(0);
  expect(await ledger.sql.begin(addHour)).toBe('one');
  expect([await summedTo(), await callsOfDays()]).toEqual([from + HOUR_MS, 2]);
  await addAll();
  expect(await callsOfDays()).toBe(4);
  expect(await compareSums(ledger.sql)).toEqual([]);
});

it('an hour is not added while a flush that has calls of it is under way, and has these calls afterwards', async () => {
  const atMs = thisHour() - 20 * HOUR_MS;
  await setSummedTo(atMs);
  const batch = await waiting(atMs + 5);
  await session.transaction(async () => {
    await storeFast(batch);
    expect(await ledger.sql.begin(addHour)).toBe('busy');
    expect(await summedTo()).toBe(atMs);
  });
  await addAll();
  expect(await callsOfDays()).toBe(1);
});

it('a flush of an hour that is being added waits for it, and adds its calls to the day itself', async () => {
  const atMs = thisHour() - 20 * HOUR_MS;
  await setSummedTo(atMs);
  await store(atMs);
  const batch = await waiting(atMs + 5);
  let flushed: Promise<void> | null = null;
  await ledger.sql.begin(async (tx) => {
    expect(await addHour(tx)).toBe('one');
    flushed = session.transaction(() => storeFast(batch));
    await until(async () => {
      const [row] = await ledger.sql`SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`;
      return row !== undefined;
    });
  });
  await flushed;
  expect(await callsOfDays()).toBe(2);
  expect(await compareSums(ledger.sql)).toEqual([]);
});

it('two writers that add the same hours at the same time add them once', async () => {
  const atMs = thisHour() - 20 * HOUR_MS;
  await setSummedTo(atMs);
  await store(atMs);
  let second: Promise<string> | null = null;
  await ledger.sql.begin(async (tx) => {
    expect(await addHour(tx)).toBe('one');
    second = ledger.sql.begin(addHour);
    await until(async () => {
      const [row] =
        await ledger.sql`SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      return row !== undefined;
    });
  });
  expect([await second, await summedTo()]).toEqual(['one', atMs + 2 * HOUR_MS]);
  expect(await callsOfDays()).toBe(1);
});

it('no hour of a day is added while the day is rebuilt', async () => {
  const atMs = thisHour() - 20 * HOUR_MS;
  await setSummedTo(atMs);
  await store(atMs);
  const rebuilding = new PostgresSession({ url: ledger.databaseUrl, applicationName: 'test' });
  const added: string[] = [];
  const days = rebuildSums(rebuilding, { afterReading: async () => void added.push(await ledger.sql.begin(addHour)) });
  for await (const { changes } of days)
    expect(changes.every(({ removed, written }) => removed + written === 0)).toBe(true);
  rebuilding.close();
  expect(added).toEqual(['busy']);
  await addAll();
  expect(await compareSums(ledger.sql)).toEqual([]);
});

it('the job adds all hours in one round', async () => {
  const from = thisHour() - 60 * HOUR_MS;
  await setSummedTo(from);
  for (const hours of [0, 30, 58]) await store(from + hours * HOUR_MS);
  const job = new KeyDaysJob({ databaseUrl: ledger.databaseUrl, log: QUIET });
  job.start();
  await until(async () => (await callsOfDays()) === 3);
  await job.stop();
  expect(await summedTo()).toBeGreaterThan(from + 58 * HOUR_MS);
  expect(await compareSums(ledger.sql)).toEqual([]);
});
