import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { isRolledUp, rollUpStep } from '../../../src/ledger/rollups/backlog.ts';
import { BacklogJob } from '../../../src/ledger/rollups/backlog-job.ts';
import { CLASS_SQL, classOf } from '../../../src/ledger/rollups/call-class.ts';
import { bucketOf, bucketSql } from '../../../src/ledger/rollups/latency-buckets.ts';
import { chargedMicros, type Outcome, type UsageEvent } from '../../../src/ledger/usage-event.ts';
import { dayName } from '../../../src/ledger/writing/flush-sql.ts';
import { uuidv7 } from '../../../src/platform/ids.ts';
import { migrate, readMigrations } from '../../../src/platform/migrate.ts';
import { openPostgres, type Sql, type Tx } from '../../../src/platform/postgres.ts';
import { QUIET } from '../../support/store.ts';
import { createDatabase } from '../../support/stores.ts';
import { until } from '../../support/wait.ts';
import { newEvent } from '../support.ts';
import { ledger, readAll, session, storeFast, storeWithCare, useFlush } from '../writing/flush-support.ts';
import { compareHours } from './compare-hours.ts';

useFlush();

const OUTCOMES: readonly string[] = [
  ...['completed', 'abandoned'],
  ...['upstream_error', 'upstream_timeout', 'upstream_busy', 'upstream_5xx', 'upstream_cut', 'caller_gone'].map(
    refunded,
  ),
  ...['payload_too_large', 'invalid_request', 'body_too_slow', 'unavailable', 'of_a_newer_version'].map(refunded),
];
function refunded(reason: string): string {
  return `refunded:${reason}`;
}

const services = [uuidv7(), uuidv7()];
const provider = uuidv7();
const DAY = Date.UTC(2026, 10, 20);
const anyEvent = fc
  .record({
    keyId: fc.constantFrom('acf_0000000000000000000001', 'acf_0000000000000000000002', 'acf_0000000000000000000003'),
    serviceId: fc.constantFrom(...services),
    heldMicros: fc.constantFrom(0, 40, 1_000),
    freeTier: fc.boolean(),
    outcome: fc.constantFrom(...(OUTCOMES as Outcome[])),
    status: fc.constantFrom(200, 302, 404, 499, 502),
    latencyUs: fc.constantFrom(0, 1_500, 40_000, 90_000_000),
    path: fc.constantFrom('/x', '/x', '/x', '/mcp#ping'),
    admittedAtMs: fc.nat(3 * 86_400_000).map((ms) => DAY + ms),
  })
  .map((given) => newEvent({ ...given, providerId: provider, usageId: uuidv7(given.admittedAtMs) }));

/** Stores calls as the version before did: it does not know `with_hours`, and keeps no sums by hour. */
async function storeAsBefore(tx: Tx, events: readonly UsageEvent[]): Promise<number> {
  const [journal] = await tx<{ id: number }[]>`INSERT INTO journal (kind) VALUES ('usage') RETURNING id`;
  const id = journal?.id as number;
  await insertCalls(tx, id, events);
  return id;
}

async function insertCalls(tx: Tx, journalId: number, events: readonly UsageEvent[]): Promise<void> {
  for (const e of events) {
    await tx`
      INSERT INTO calls (day, usage_id, account_id, key_id, provider_id, service_id, method, path, status, amount, fee,
        free_tier, outcome, latency_us, request_bytes, response_bytes, created_at, journal_id)
      VALUES (${dayName(e.usageId)}, ${e.usageId}, ${e.accountId}, ${e.keyId}, ${e.providerId}, ${e.serviceId}, ${e.method},
        ${e.path}, ${e.status}, ${chargedMicros(e)}, 0, ${e.freeTier}, ${e.outcome}, ${e.latencyUs}, 0, 0,
        ${new Date(e.admittedAtMs)}, ${journalId})`;
  }
}

async function rollUpAll(sql: Sql, size: number): Promise<number> {
  for (let added = 0; ; ) {
    const step = await sql.begin((tx) => rollUpStep(tx, size));
    added += step.added;
    if (step.state === 'done') return added;
  }
}

it('the classes and the buckets of SQL are those of the writer', async () => {
  const calls = OUTCOMES.flatMap((outcome) =>
    [0, 200, 399, 400, 498, 499, 500, 599].map((status) => ({ outcome, status })),
  );
  const classes = await ledger.sql<{ class: string }[]>`
    SELECT ${ledger.sql.text(CLASS_SQL)} AS class
    FROM unnest(${calls.map(({ outcome }) => outcome)}::text[], ${calls.map(({ status }) => status)}::int[]) AS t (outcome, status)`;
  expect(classes.map((row) => row.class)).toEqual(calls.map((call) => classOf(call as Parameters<typeof classOf>[0])));
  const around = Array.from({ length: 90 }, (_, i) => Math.round(1_000 * 1.2 ** i)).flatMap((us) => [
    us - 1,
    us,
    us + 1,
  ]);
  const latencies = [0, 1, ...around, Number.MAX_SAFE_INTEGER];
  const buckets = await ledger.sql<{ bucket: number }[]>`
    SELECT ${ledger.sql.text(bucketSql('us'))} AS bucket FROM unnest(${latencies}::bigint[]) AS t (us)`;
  expect(buckets.map((row) => row.bucket)).toEqual(latencies.map(bucketOf));
});

const anyAct = fc.oneof(
  fc.record({ act: fc.constantFrom('flush', 'careful flush', 'replay', 'flush of before') }),
  fc.record({ act: fc.constantFrom('step', 'step that dies'), size: fc.integer({ min: 1, max: 8 }) }),
);

it('whatever stores calls, and whenever the back-fill dies, the hours have each counted call once', async () => {
  const property = fc.asyncProperty(
    fc.array(anyEvent, { maxLength: 30 }),
    fc.array(fc.tuple(anyAct, fc.array(anyEvent, { minLength: 1, maxLength: 8 })), { maxLength: 12 }),
    async (before, acts) => {
      await ledger.clear();
      const { sql } = ledger;
      // What migration 0008 leaves behind when there are calls.
      await sql.begin(async (tx) => {
        await storeAsBefore(tx, before);
        await tx`UPDATE journal SET with_hours = NULL`;
        await tx`UPDATE rollup_backlog SET journal_id = 0`;
      });
      expect(await isRolledUp(sql)).toBe(false);
      for (const [{ act, ...rest }, events] of acts) {
        if (act === 'flush of before') await sql.begin((tx) => storeAsBefore(tx, events));
        else if ('size' in rest) await step(act === 'step that dies', rest.size);
        else await flush(act, events);
      }
      await rollUpAll(sql, 5);
      expect(await isRolledUp(sql)).toBe(true);
      expect(await compareHours(sql)).toEqual([]);
    },
  );
  await fc.assert(property, { numRuns: 15 });
}, 60_000);

const DIED = new Error('died');
async function step(dies: boolean, size: number): Promise<void> {
  const work = ledger.sql.begin(async (tx) => {
    await rollUpStep(tx, size);
    if (dies) throw DIED;
  });
  if (dies) await expect(work).rejects.toBe(DIED);
  else await work;
}

async function flush(act: string, events: readonly UsageEvent[]): Promise<void> {
  await ledger.store.command('flushall');
  await ledger.append(...events);
  const batch = await readAll();
  if (act !== 'careful flush') await session.transaction(() => storeFast(batch));
  if (act !== 'flush') await session.transaction(() => storeWithCare(batch));
}

it('flushes and the back-fill change the same rows at the same time without a deadlock', async () => {
  const { sql } = ledger;
  const eventsOf = (n: number) =>
    Array.from({ length: n }, (_, i) =>
      newEvent({
        keyId: `acf_${String((i * 7) % 40).padStart(22, '0')}`,
        serviceId: services[i % 2] as string,
        providerId: provider,
      }),
    );
  await sql.begin((tx) => storeAsBefore(tx, eventsOf(400)));
  const job = new BacklogJob({ sql, stepCalls: 20, betweenStepsMs: 0, log: QUIET });
  job.start();
  try {
    const writer = ledger.startWriter({ batchSize: 50 });
    await ledger.append(...eventsOf(1_000));
    await until(async () => (await isRolledUp(sql)) && (await ledger.backlog()) === 0);
    expect(writer.stats().working).toBe(true);
  } finally {
    await job.stop();
  }
  const [row] = await sql<{ calls: number }[]>`SELECT sum(calls)::bigint AS calls FROM key_hours`;
  expect(row?.calls).toBe(1_400);
  expect(await compareHours(sql)).toEqual([]);
});

it('a migration under a writer of the version before loses none of its calls: before, during and after', async () => {
  const database = await createDatabase();
  const old = openPostgres({ url: database.url, maxConnections: 4, applicationName: 'test' });
  try {
    const migrations = readMigrations('migrations');
    await migrate(old, migrations.slice(0, 7));
    const event = () => newEvent({ keyId: 'acf_0000000000000000000001', serviceId: services[0] as string });
    await old.begin((tx) => storeAsBefore(tx, [event(), event()]));
    let migrating: Promise<number[]> | null = null;
    // One flush has used the journal already, so the migration waits for it. Another has only taken its number yet.
    await old.begin(async (late) => {
      const [next] = await late<{ id: number }[]>`SELECT nextval(pg_get_serial_sequence('journal', 'id')) AS id`;
      await insertCalls(late, next?.id as number, [event()]);
      await old.begin(async (early) => {
        await storeAsBefore(early, [event()]);
        migrating = migrate(old, migrations.slice(0, 8));
        await until(async () => {
          const waiting = await old<object[]>`
            SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
            WHERE NOT granted AND d.datname = current_database()`;
          return waiting.length > 0;
        });
      });
      expect(await migrating).toEqual([8]);
      await late`INSERT INTO journal (id, kind) OVERRIDING SYSTEM VALUE VALUES (${next?.id as number}, 'usage')`;
    });
    await old.begin((tx) => storeAsBefore(tx, [event()]));
    await migrate(old, migrations);
    expect(await isRolledUp(old)).toBe(false);
    expect(await rollUpAll(old, 2)).toBe(5);
    expect(await isRolledUp(old)).toBe(true);
    expect(await compareHours(old)).toEqual([]);
  } finally {
    await old.end({ timeout: 1 });
    await database.drop();
  }
});

it('the queries in docs/design.md find a wrong sum, and nothing when all is right', async () => {
  const { sql } = ledger;
  const queries = readFileSync('docs/design.md', 'utf8').matchAll(/```sql\n([\s\S]*?)```/g);
  const [services, keys] = Array.from(queries, ([, text]) => String(text)).filter((text) => /_hours h/.test(text));
  const run = async (text: string | undefined) => (await sql.unsafe(String(text), [])) as unknown as object[];
  await ledger.append(...Array.from({ length: 20 }, () => newEvent()), newEvent({ outcome: 'refunded:upstream_cut' }));
  await session.transaction(async () => storeFast(await readAll()));
  expect([await run(services), await run(keys)]).toEqual([[], []]);
  await sql`UPDATE service_hours SET charged = charged + 1 WHERE service_id = (SELECT min(service_id::text)::uuid FROM service_hours)`;
  await sql`DELETE FROM key_hours WHERE service_id = (SELECT min(service_id::text)::uuid FROM service_hours)`;
  expect([(await run(services)).length, (await run(keys)).length]).toEqual([1, 1]);
});
