import { beforeEach, expect, it } from 'vitest';
import type { UsageEvent } from '../../../src/ledger/usage-event.ts';
import { ledger, useLedger } from '../use-ledger.ts';
import { eventOf, newJob, store } from './support.ts';

useLedger();

const DAY_MS = 86_400_000;
/** What an installation keeps, as its operator reads it in docs/operating.md. */
const KEPT_DAYS = 30;
/** Each test has a year of its own, because the database refuses days before those that the tests before it have closed. */
let year = 2011;
const today = (): string => `${year}-06-30`;
beforeEach(() => void year++);
/** To a job for which this day is due, every day up to today is older than the retention. */
const ahead = (): string => `${year}-12-31`;

const daysBefore = (days: number): string => new Date(Date.parse(today()) - days * DAY_MS).toISOString().slice(0, 10);
/** The last `count` days up to today, the oldest first. */
const lastDays = (count: number): string[] => Array.from({ length: count }, (_, i) => daysBefore(count - 1 - i));

const storedDays = async (): Promise<string[]> =>
  (await ledger.sql<{ day: string }[]>`SELECT DISTINCT day::text AS day FROM calls ORDER BY 1`).map(({ day }) => day);

const jobOf = (lastDueDay: string) => newJob(lastDueDay, { keptDays: KEPT_DAYS });

/** Stores these events with a writer of its own. @returns the number that was stored and put aside */
async function storeNow(events: readonly UsageEvent[]): Promise<[stored: number, aside: number]> {
  await ledger.append(...events);
  const writer = ledger.startWriter();
  await ledger.drained();
  await writer.stop();
  const { storedCalls, rejectedEvents } = writer.stats();
  return [storedCalls, rejectedEvents];
}

it('a clock that jumps ahead closes none of the newest 30 days with calls; once it is right, calls are stored', async () => {
  const days = lastDays(35);
  // Some days have a partition, the calls of others are in the default partition, and some partitions are empty.
  const partitions = days.filter((_, i) => i % 3 !== 0);
  // Every other day has nothing but a free message for an MCP server, which is in no sum.
  const events = days.map((day, i) => eventOf(day, i % 2 === 0 ? {} : { heldMicros: 0, path: '/mcp#tools/list' }));
  await store([...partitions, daysBefore(100), daysBefore(-5)], events);
  expect(await storedDays()).toEqual(days);
  const job = await jobOf(ahead());
  expect(await job.runOnce()).toBe('done');
  expect(await storedDays()).toEqual(days.slice(-KEPT_DAYS));
  // 5 days with calls, and the empty partition before them.
  expect([job.droppedDays, job.overdueDays]).toEqual([6, 0]);

  const again = await jobOf(ahead());
  await again.runOnce();
  expect([again.droppedDays, again.overdueDays]).toEqual([0, 0]);

  const late = days.slice(-KEPT_DAYS).map((day) => eventOf(day));
  expect(await storeNow(late)).toEqual([KEPT_DAYS, 0]);
  expect(await storeNow([eventOf(daysBefore(-1))])).toEqual([1, 0]);
});

it('a day that a wrong clock made counts as one day only, and replaces one day only', async () => {
  const days = lastDays(32);
  await store(
    [],
    days.map((day) => eventOf(day)),
  );
  expect(await storeNow([eventOf(ahead()), eventOf(ahead())])).toEqual([2, 0]);
  await (await jobOf(ahead())).runOnce();
  expect(await ledger.sql`SELECT day::text AS day FROM closed_days WHERE calls > 0 ORDER BY 1`).toEqual(
    days.slice(0, 3).map((day) => ({ day })),
  );
  expect(await storedDays()).toEqual([...days.slice(-29), ahead()]);
  expect(await storeNow(days.slice(-29).map((day) => eventOf(day)))).toEqual([29, 0]);
});

it('while fewer than 30 days have calls, no day is closed, and none is overdue', async () => {
  const days = lastDays(29);
  await store(
    [daysBefore(40), daysBefore(50)],
    days.map((day) => eventOf(day)),
  );
  expect(await storedDays()).toEqual(days);
  const job = await jobOf(ahead());
  expect(await job.runOnce()).toBe('done');
  expect([job.droppedDays, job.overdueDays]).toEqual([0, 0]);
  expect(await storedDays()).toEqual(days);
  expect(await ledger.sql`SELECT day FROM closed_days`).toEqual([]);
  // A thirtieth day with calls lets the empty days before it go, and no more.
  await storeNow([eventOf(daysBefore(-1))]);
  await job.runOnce();
  expect([job.droppedDays, await storedDays()]).toEqual([2, [...days, daysBefore(-1)]]);
});

it('while the clock is right, only the retention decides which days are closed', async () => {
  const days = lastDays(40);
  await store(
    [],
    days.map((day) => eventOf(day)),
  );
  expect(await storedDays()).toEqual(days);
  await (await jobOf(daysBefore(37))).runOnce();
  expect(await storedDays()).toEqual(days.slice(-37));
});
