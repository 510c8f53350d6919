import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { classOf } from '../../../src/ledger/rollups/call-class.ts';
import { addHour } from '../../../src/ledger/rollups/key-days.ts';
import { bucketOf } from '../../../src/ledger/rollups/latency-buckets.ts';
import type { Outcome, UsageEvent } from '../../../src/ledger/usage-event.ts';
import { uuidv7 } from '../../../src/platform/ids.ts';
import { anyUse, newEvent } from '../support.ts';
import { ledger, readAll, session, storeFast, storeWithCare, useFlush } from '../writing/flush-support.ts';
import { bucketSql, CLASS_SQL, compareSums } from './sums-oracle.ts';

useFlush();

const OUTCOMES: readonly string[] = [
  'completed',
  'abandoned',
  ...['upstream_error', 'upstream_timeout', 'upstream_busy', 'upstream_5xx', 'upstream_cut', 'upstream_denied'].map(
    refunded,
  ),
  refunded('caller_gone'),
  refunded('upstream_rate_limited'),
  ...['payload_too_large', 'invalid_request', 'body_too_slow', 'unavailable', 'of_a_newer_version'].map(refunded),
];
function refunded(reason: string): string {
  return `refunded:${reason}`;
}

const services = [uuidv7(), uuidv7()];
const provider = uuidv7();
/** The second has many keys: from the second of three days on, it has sums of its own. */
const accounts = [uuidv7(), uuidv7()];
const KEYS = {
  acf_0000000000000000000001: accounts[0],
  acf_0000000000000000000002: accounts[1],
  acf_0000000000000000000003: accounts[1],
} as Readonly<Record<string, string>>;
const DAY = Date.UTC(2026, 10, 20);
const anyEvent = fc
  .record({
    keyId: fc.constantFrom(...Object.keys(KEYS)),
    serviceId: fc.constantFrom(...services),
    heldMicros: fc.constantFrom(0, 40, 1_000),
    freeTier: fc.boolean(),
    outcome: fc.constantFrom(...(OUTCOMES as Outcome[])),
    status: fc.constantFrom(200, 302, 404, 499, 502),
    latencyUs: fc.constantFrom(0, 1_500, 40_000, 90_000_000),
    path: fc.constantFrom('/x', '/x', '/x', '/mcp#ping'),
    admittedAtMs: fc.nat(3 * 86_400_000).map((ms) => DAY + ms),
    use: anyUse,
    tag: fc.constantFrom(null, 'a', 'b', 'other'),
  })
  .map(({ use, ...given }) =>
    newEvent({
      ...given,
      ...use,
      accountId: KEYS[given.keyId] as string,
      providerId: provider,
      usageId: uuidv7(given.admittedAtMs),
    }),
  );

it('SQL and the writer use the same classes and latency buckets', async () => {
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

it('however often and by whatever path calls are stored, the hours count each counted call once', async () => {
  const act = fc.constantFrom('flush', 'careful flush', 'replay', 'add hours');
  const property = fc.asyncProperty(
    fc.nat(72),
    fc.array(fc.tuple(act, fc.array(anyEvent, { minLength: 1, maxLength: 8 })), { maxLength: 12 }),
    async (hours, acts) => {
      await ledger.clear();
      await ledger.sql`UPDATE installation SET days_summed_to = ${new Date(DAY + hours * 3_600_000)}`;
      await ledger.sql`
        INSERT INTO accounts (id, owner_id, summed_from) VALUES (${accounts[0] as string}, 'few keys', NULL),
          (${accounts[1] as string}, 'many keys', ${new Date(DAY + 86_400_000).toISOString().slice(0, 10)})`;
      for (const [how, events] of acts) await flush(how, events);
      expect(await compareSums(ledger.sql)).toEqual([]);
    },
  );
  await fc.assert(property, { numRuns: 15 });
});

async function flush(act: string, events: readonly UsageEvent[]): Promise<void> {
  if (act === 'add hours') {
    for (let i = 0; i < 24; i++) expect(await ledger.sql.begin(addHour)).toBe('one');
    return;
  }
  await ledger.store.command('flushall');
  await ledger.append(...events);
  const batch = await readAll();
  if (act !== 'careful flush') await session.transaction(() => storeFast(batch));
  if (act !== 'flush') await session.transaction(() => storeWithCare(batch));
}

it('the queries in docs/design.md find a wrong sum, and find nothing when all sums are right', async () => {
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
