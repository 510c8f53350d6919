import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { chargedMicros, feeMicros } from '../../../src/ledger/usage-event.ts';
import { DAY_DROPPED } from '../../../src/ledger/writing/rejected-events.ts';
import { uuidv7 } from '../../../src/platform/ids.ts';
import { readBooksQueries } from '../../support/books-queries.ts';
import { until } from '../../support/wait.ts';
import { FEE_BASIS_POINTS, newEvent } from '../support.ts';
import { ledger, useLedger } from '../use-ledger.ts';
import { dayTables, eventOf, eventsOf, newExportDir, newJob, store } from './support.ts';

useLedger();

const SUMS = [
  'balances',
  'free_usage',
  'service_hours',
  'key_hours',
  'key_days',
  'account_days',
  'account_key_days',
  'service_latencies',
  'service_amounts',
  'journal',
  'entries',
];

/** A flush that stored nothing new has a journal row without entries, which names its mark. */
const WITH_ENTRIES = 'WHERE id IN (SELECT journal_id FROM entries)';

/** Everything that must not change when calls are dropped, row by row. */
async function readSums(): Promise<unknown> {
  const tables = await Promise.all(
    SUMS.map((table) =>
      ledger.sql.unsafe(
        `SELECT to_jsonb(t)::text AS row FROM ${table} t ${table === 'journal' ? WITH_ENTRIES : ''} ORDER BY 1`,
      ),
    ),
  );
  return tables.map((rows) => Array.from(rows));
}

const storedDays = async (): Promise<string[]> =>
  (await ledger.sql<{ day: string }[]>`SELECT DISTINCT day::text AS day FROM calls ORDER BY 1`).map(({ day }) => day);

it('drops only the days before the retention, and changes no sum, balance or journal row', async () => {
  const accountId = await ledger.account(1_000_000);
  const days = ['2010-03-01', '2010-03-02', '2010-03-03'];
  await store(
    days,
    days.flatMap((day) => eventsOf(day, { accountId })),
  );
  const before = await readSums();
  const job = await newJob('2010-03-02');
  expect(await job.runOnce()).toBe('done');
  expect(await storedDays()).toEqual(['2010-03-03']);
  expect(await dayTables()).toEqual(['calls_20100303']);
  expect([job.droppedDays, job.overdueDays]).toEqual([2, 0]);
  expect(await readSums()).toEqual(before);
  await ledger.append(...eventsOf('2010-03-03', { accountId }));
  ledger.startWriter();
  await ledger.drained();
  const books = readBooksQueries();
  const wrong = (name: keyof typeof books) => ledger.sql.unsafe(books[name]);
  expect([await wrong('charges'), await wrong('balances'), await wrong('journal')]).toEqual([[], [], []]);
  await ledger.sql`UPDATE calls SET amount = amount + 1 WHERE journal_id = (SELECT max(journal_id) FROM calls)`;
  expect(await wrong('charges')).toHaveLength(1);
  expect(
    await ledger.sql`SELECT day::text AS day, calls, dropped_at IS NOT NULL AS dropped FROM closed_days ORDER BY 1`,
  ).toEqual([
    { day: '2010-03-01', calls: 9, dropped: true },
    { day: '2010-03-02', calls: 9, dropped: true },
  ]);
  await (await newJob('2010-03-03')).runOnce();
});

it('exports a day before it drops it: each call with all columns, and a manifest that agrees with the books', async () => {
  const exportDir = newExportDir();
  const events = eventsOf('2010-04-01');
  await store(['2010-04-01'], events);
  const rows = await ledger.sql<{ row: string }[]>`SELECT row_to_json(c)::text AS row FROM calls c ORDER BY usage_id`;
  await (await newJob('2010-04-01', { exportDir })).runOnce();
  expect(readdirSync(exportDir).sort()).toEqual(['calls-2010-04-01.json', 'calls-2010-04-01.ndjson.gz']);
  const lines = gunzipSync(readFileSync(path.join(exportDir, 'calls-2010-04-01.ndjson.gz')))
    .toString()
    .trimEnd()
    .split('\n');
  const withoutZone = (text: string) => ({ ...JSON.parse(text), created_at: Date.parse(JSON.parse(text).created_at) });
  expect(lines.map(withoutZone)).toEqual(rows.map(({ row }) => withoutZone(row)));
  const amount = events.reduce((sum, event) => sum + chargedMicros(event), 0);
  const fees = events.reduce((sum, event) => sum + feeMicros(chargedMicros(event), FEE_BASIS_POINTS), 0);
  const manifest = JSON.parse(readFileSync(path.join(exportDir, 'calls-2010-04-01.json'), 'utf8'));
  const [stored] = await ledger.sql`SELECT calls, amount, fees, file_sha256 AS sha256 FROM closed_days`;
  expect({ ...stored, format: 1, file: 'calls-2010-04-01.ndjson.gz' }).toMatchObject({ calls: 9, amount, fees });
  expect(manifest).toMatchObject({ ...stored, day: '2010-04-01' });
  expect(await dayTables()).toEqual([]);
});

it('a writer does not store an event of a dropped day: it puts the whole event aside and continues', async () => {
  const accountId = await ledger.account(1_000_000);
  const events = eventsOf('2010-05-01', { accountId });
  await store(['2010-05-01'], events);
  await (await newJob('2010-05-01')).runOnce();
  const before = await readSums();
  // Those that were stored come again, as from a Redis that was restored, among one that waited all the time.
  const waited = eventOf('2010-05-01', { accountId });
  await ledger.append(...events, waited);
  const writer = ledger.startWriter();
  await ledger.drained();
  expect(writer.stats()).toMatchObject({ working: true, storedCalls: 0, rejectedEvents: 10 });
  expect(await readSums()).toEqual(before);
  expect(await storedDays()).toEqual([]);
  const aside = await ledger.sql<{ fields: string[]; error: string }[]>`SELECT fields, error FROM rejected_events`;
  expect(aside.map(({ fields }) => fields[1]?.split('\t')[0]).sort()).toEqual(
    [...events, waited].map(({ usageId }) => usageId).sort(),
  );
  expect(new Set(aside.map(({ error }) => error))).toEqual(new Set([DAY_DROPPED]));
  // Calls of today in the same batch are stored.
  const today = newEvent({ accountId });
  await ledger.append(events[1] as typeof today, today);
  await ledger.drained();
  expect(await ledger.sql`SELECT usage_id AS id FROM calls`).toEqual([{ id: today.usageId }]);
});

it('each event that comes late while its day is closed is either stored or put aside, and none is both', async () => {
  const accountId = await ledger.account(1_000_000);
  const late = Array.from({ length: 400 }, (_, i) => eventOf('2010-05-15', { accountId, heldMicros: 100 }, i));
  await store(['2010-05-15'], []);
  const writer = ledger.startWriter({ batchSize: 10 });
  const job = await newJob('2010-05-15');
  let end = '';
  const appending = (async () => {
    for (const [i, event] of late.entries()) {
      await ledger.append(event);
      if (i === 100) await until(() => writer.stats().storedCalls > 50);
    }
  })();
  await until(() => writer.stats().storedCalls > 50);
  while (end !== 'done') end = await job.runOnce();
  await appending;
  await ledger.drained();
  const [row] = await ledger.sql<{ dropped: number; aside: number; amount: number }[]>`
    SELECT calls AS dropped, amount, (SELECT count(*)::int FROM rejected_events) AS aside FROM closed_days`;
  const { dropped = 0, aside = 0, amount = 0 } = row ?? {};
  expect([dropped + aside, amount, await storedDays()]).toEqual([400, dropped * 100, []]);
  expect(await ledger.balance(accountId)).toBe(1_000_000 - amount);
  expect(writer.stats()).toMatchObject({ working: true, storedCalls: dropped });
});

it('a database whose day was dropped refuses calls of that day, whatever the writer knows', async () => {
  await store(['2010-06-01'], eventsOf('2010-06-01'));
  await (await newJob('2010-06-01')).runOnce();
  const insert = (usageId: string, day: string) => ledger.sql`
    INSERT INTO calls (day, usage_id, account_id, key_id, provider_id, service_id, method, path, status, amount, fee, free_tier,
      outcome, latency_us, request_bytes, response_bytes, created_at, journal_id)
    VALUES (${day}, ${usageId}, ${usageId}, 'k', ${usageId}, ${usageId}, 'GET', '/', 200, 0, 0, false, 'completed', 1, 1, 1, now(), 1)`;
  await expect(insert(uuidv7(Date.parse('2010-06-01')), '2010-06-01')).rejects.toThrow(/calls_default_kept/);
  await expect(insert(uuidv7(Date.parse('1999-01-01')), '1999-01-01')).rejects.toThrow(/calls_default_kept/);
  expect((await insert(uuidv7(Date.parse('2010-06-02')), '2010-06-02')).count).toBe(1);
});

it('the reconciliation does not count events of dropped days as money that Postgres will take', async () => {
  const accountId = await ledger.account(1_000_000);
  const { redis, keys } = ledger.store;
  const event = eventOf('2010-07-01', { accountId });
  await store(['2010-07-01'], [event]);
  await ledger.setWallet(accountId, 999_000);
  await (await newJob('2010-07-01')).runOnce();
  await ledger.append(event);
  const { reports } = await ledger.reconciler().run('test');
  expect(reports.flatMap(({ drifts }) => drifts)).toEqual([]);
  expect((await redis.command('xlen', [keys.usage[keys.shardOf(accountId)] as string])) as number).toBe(1);
});

it('calls of an old day in the default partition are dropped too, but not those of other days', async () => {
  await store([], [...eventsOf('2010-08-01'), eventOf('2010-08-05')]);
  const exportDir = newExportDir();
  expect(await (await newJob('2010-08-02', { exportDir })).runOnce()).toBe('done');
  expect(await storedDays()).toEqual(['2010-08-05']);
  expect(readdirSync(exportDir)).toHaveLength(2);
  expect(await dayTables()).toEqual([]);
});

it('while another session reads calls, the job gives up at once, and waiting queries continue', async () => {
  await store(['2010-10-01'], eventsOf('2010-10-01'));
  const job = await newJob('2010-10-01');
  await ledger.sql.begin(async (tx) => {
    await tx`SELECT count(*) FROM calls`;
    expect(await job.runOnce()).toBe('locked');
    await ledger.append(newEvent());
    ledger.startWriter();
    await ledger.drained();
  });
  expect(await storedDays()).toHaveLength(2);
  expect(await job.runOnce()).toBe('done');
  expect(await storedDays()).toHaveLength(1);
});

it('only one of several writers drops a day', async () => {
  await store(['2010-11-01'], eventsOf('2010-11-01'));
  let others: string[] = [];
  const other = await newJob('2010-11-01');
  const afterStep = async () => {
    others = [await other.runOnce()];
  };
  const job = await newJob('2010-11-01', { afterStep });
  expect(await job.runOnce()).toBe('done');
  expect(others).toEqual(['elsewhere']);
  expect([job.droppedDays, other.droppedDays]).toEqual([1, 0]);
});

it('if the export folder cannot be written to, no day is dropped', async () => {
  await store(['2010-12-01'], eventsOf('2010-12-01'));
  const job = await newJob('2010-12-01', { exportDir: path.join(newExportDir(), 'absent') });
  await expect(job.runOnce()).rejects.toThrow(/ENOENT/);
  expect(await storedDays()).toEqual(['2010-12-01']);
  await (await newJob('2010-12-01')).runOnce();
});

it('sums by tag are deleted with the calls, and none of their tags is left', async () => {
  const accountId = await ledger.account(1_000_000);
  const days = ['2010-08-31', '2010-09-01', '2010-09-02'];
  await store(
    days,
    days.map((day) => eventOf(day, { accountId, tag: `on-${day}` })),
  );
  const tags = async (of: 'tag_days' | 'tag_months') =>
    (await ledger.sql.unsafe<{ tag: string }>(`SELECT tag FROM ${of} ORDER BY 1`)).map(({ tag }) => tag);
  await (await newJob('2010-08-31')).runOnce();
  // A clock that was behind may have given ids of the day to calls of the next: its sums stay as long as these.
  expect(await tags('tag_days')).toEqual(days.map((day) => `on-${day}`));
  await (await newJob('2010-09-01')).runOnce();
  expect([await tags('tag_days'), await tags('tag_months')]).toEqual([
    ['on-2010-09-01', 'on-2010-09-02'],
    ['on-2010-09-01', 'on-2010-09-02'],
  ]);
  await (await newJob('2010-09-02')).runOnce();
});

it('replay counts are deleted with the calls, together with late counts of earlier days', async () => {
  const days = ['2009-03-01', '2009-03-02', '2009-03-03'];
  await store(
    days,
    days.map((day) => eventOf(day)),
  );
  await ledger.sql`
    INSERT INTO call_replays SELECT day, usage_id, 2 FROM calls
    UNION ALL SELECT '2009-02-27', '01200000-0000-7000-8000-000000000000', 1`;
  await (await newJob('2009-03-02')).runOnce();
  const left = await ledger.sql`SELECT to_char(day, 'YYYY-MM-DD') AS day, replays FROM call_replays`;
  expect(left).toEqual([{ day: '2009-03-03', replays: 2 }]);
  await (await newJob('2009-03-03')).runOnce();
});
