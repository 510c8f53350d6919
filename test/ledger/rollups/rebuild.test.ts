import fc from 'fast-check';
import { afterEach, expect, it } from 'vitest';
import { RETENTION_LOCK } from '../../../src/ledger/locks.ts';
import { type RebuiltDay, rebuildSums } from '../../../src/ledger/rollups/rebuild.ts';
import type { UsageEvent } from '../../../src/ledger/usage-event.ts';
import { uuidv7 } from '../../../src/platform/ids.ts';
import { PostgresSession } from '../../../src/platform/postgres.ts';
import { until } from '../../support/wait.ts';
import { anyUse, newEvent } from '../support.ts';
import { ledger, useLedger } from '../use-ledger.ts';
import { compareSums } from './sums-oracle.ts';

useLedger();

const DAY_MS = 86_400_000;
const START = Date.UTC(2026, 10, 20);
const TABLES = [
  'service_hours',
  'key_hours',
  'key_days',
  'account_days',
  'account_key_days',
  'service_latencies',
  'service_amounts',
  'tag_days',
];
const [provider, buyer] = [uuidv7(), uuidv7()];
const services = [uuidv7(), uuidv7()];
const keys = ['acf_0000000000000000000001', 'acf_0000000000000000000002'];

const sessions: PostgresSession[] = [];
afterEach(() => {
  for (const session of sessions.splice(0)) session.close();
});
const open = (): PostgresSession => {
  const session = new PostgresSession({ url: ledger.databaseUrl, applicationName: 'test' });
  sessions.push(session);
  return session;
};

async function rebuild(afterReading: () => Promise<void> = async () => {}): Promise<RebuiltDay[]> {
  const session = open();
  const days: RebuiltDay[] = [];
  for await (const day of rebuildSums(session, { afterReading })) days.push(day);
  session.close();
  return days;
}

/** How many rows of each table of sums were removed and written, on all days. */
function changesOf(days: readonly RebuiltDay[]): Record<string, [number, number]> {
  const sums: Record<string, [number, number]> = {};
  for (const { table, removed, written } of days.flatMap(({ changes }) => changes)) {
    const [before, after] = sums[table] ?? [0, 0];
    sums[table] = [before + removed, after + written];
  }
  return sums;
}

async function store(...events: readonly UsageEvent[]): Promise<void> {
  await ledger.append(...events);
  const writer = ledger.startWriter();
  await ledger.drained();
  await writer.stop();
}

const eventAt = (ms: number, given: Partial<UsageEvent> = {}): UsageEvent =>
  newEvent({
    usageId: uuidv7(ms),
    admittedAtMs: ms,
    accountId: buyer,
    keyId: keys[0] as string,
    serviceId: services[0] as string,
    providerId: provider,
    ...given,
  });

const anyEvent = fc
  .record({
    ms: fc.nat(3 * DAY_MS).map((ms) => START + ms),
    // Clocks that differ, some of them by days.
    skewMs: fc.constantFrom(0, 0, -1_000, 3_000_000, -5 * DAY_MS),
    service: fc.nat(1),
    key: fc.nat(1),
    heldMicros: fc.constantFrom(0, 40, 123_456, Number.MAX_SAFE_INTEGER),
    freeTier: fc.boolean(),
    status: fc.constantFrom(200, 404, 499),
    outcome: fc.constantFrom('completed' as const, 'completed' as const, 'refunded:upstream_cut' as const),
    latencyUs: fc.constantFrom(0, 1_500, 90_000_000),
    path: fc.constantFrom('/x', '/x', '/mcp#ping'),
    use: anyUse,
    tag: fc.constantFrom(null, 'a', 'b'),
  })
  .map(({ ms, skewMs, service, key, use, ...given }) => {
    const of = {
      ...use,
      serviceId: services[service] as string,
      keyId: keys[key] as string,
    };
    return eventAt(ms, { ...given, ...of, usageId: uuidv7(ms + skewMs) });
  });

const without = (...tables: string[]): string => tables.map((table) => `DELETE FROM ${table}`).join(';');

const DAMAGES = [
  'DELETE FROM key_hours WHERE succeeded > 0',
  'UPDATE key_hours SET spent = spent + 1, last_call_at = last_call_at + interval $$1 day$$',
  'UPDATE key_hours SET first_call_at = first_call_at - interval $$1 day$$',
  'UPDATE service_hours SET first_call_at = last_call_at, last_call_at = last_call_at + interval $$1 second$$',
  'UPDATE key_days SET spent = spent + 1, calls = calls - 1',
  'DELETE FROM key_days WHERE spent > 0',
  'UPDATE account_days SET calls = calls + 1',
  'DELETE FROM account_key_days WHERE spent > 0',
  `UPDATE service_hours SET charged = charged - 1, provider_id = '${buyer}'`,
  'DELETE FROM service_amounts',
  'UPDATE service_latencies SET calls = calls + 1',
  `INSERT INTO service_latencies VALUES ('${buyer}', '2026-11-21', 7, 3), ('${buyer}', '1999-01-01', 7, 3)`,
  `INSERT INTO key_hours SELECT 'acf_spurious', hour, service_id, account_id, 1, 1, 1, 1, 1, 1, 1, 1, 1, hour, hour FROM key_hours LIMIT 1`,
  'UPDATE tag_days SET spent = spent + 1, calls = calls - 1',
  `INSERT INTO tag_days VALUES ('${buyer}', '2026-11-21', 'spurious', 1, 1, 1, 1, 1)`,
  without(...TABLES),
];

it('a rebuild makes wrong sums equal to those of the calls, and leaves right sums alone', async () => {
  const property = fc.asyncProperty(
    fc.array(anyEvent, { minLength: 1, maxLength: 25 }),
    fc.subarray(DAMAGES),
    async (events, damages) => {
      await ledger.clear();
      await ledger.sql`INSERT INTO accounts (id, owner_id, summed_from) VALUES (${buyer}, 'many keys', '2026-11-21')`;
      await store(...events);
      expect(await compareSums(ledger.sql)).toEqual([]);
      for (const damage of damages) await ledger.sql.unsafe(damage);
      const wrong = await compareSums(ledger.sql);
      const days = await rebuild();
      expect(await compareSums(ledger.sql)).toEqual([]);
      const expected = TABLES.map((table) => {
        const rows = wrong.filter((row) => row.table === table);
        return [
          table,
          [rows.filter(({ isStored }) => isStored).length, rows.filter(({ isStored }) => !isStored).length],
        ];
      });
      expect(changesOf(days)).toEqual(Object.fromEntries(expected));
      expect(days.reduce((sum, { calls }) => sum + calls, 0)).toBe(events.length);
    },
  );
  await fc.assert(property, { numRuns: 12 });
});

it('sums of days whose calls were dropped stay as they are, as do those of the first day that is kept', async () => {
  await store(eventAt(START), eventAt(START + DAY_MS), eventAt(START + 2 * DAY_MS));
  await ledger.sql`DELETE FROM calls WHERE day = '2026-11-20'`;
  await ledger.sql`INSERT INTO closed_days (day) VALUES ('2026-11-20')`;
  await ledger.sql`UPDATE key_hours SET spent = 7`;
  expect((await rebuild()).map(({ day }) => day)).toEqual(['2026-11-22']);
  expect(await ledger.sql`SELECT spent FROM key_hours ORDER BY hour`).toEqual(
    [7, 7, 1_000].map((spent) => ({ spent })),
  );
});

it.each([
  ['added to a wrong row', 'UPDATE key_hours SET spent = 7'],
  [
    'made a row that was missing',
    without('key_hours', 'key_days', 'service_hours', 'service_latencies', 'service_amounts'),
  ],
])(
  'a flush that %s since the day was read is not lost: the day is read again, with flushes locked out',
  async (_, damage) => {
    await ledger.sql`UPDATE installation SET redis_shards = ${ledger.store.keys.shards}`;
    await store(eventAt(START), eventAt(START));
    await ledger.sql.unsafe(damage);
    let readings = 0;
    const days = await rebuild(async () => {
      readings++;
      await ledger.append(eventAt(START));
      if (readings === 1) {
        await store();
        return;
      }
      // The writer has an event to store, and cannot: it goes on when the day is done.
      const writer = ledger.startWriter();
      await until(() => writer.stats().backlog === 1);
      expect(writer.stats()).toMatchObject({ storedCalls: 0, working: true });
    });
    expect(readings).toBe(2);
    expect(days).toMatchObject([{ day: '2026-11-20', calls: 3 }]);
    await ledger.drained();
    expect(await ledger.sql`SELECT calls::int, spent FROM key_hours`).toEqual([{ calls: 4, spent: 4_000 }]);
    expect(await compareSums(ledger.sql)).toEqual([]);
  },
);

it('while writers store calls, repeated rebuilds lose no call from the sums and count none twice', async () => {
  await ledger.sql`UPDATE installation SET redis_shards = ${ledger.store.keys.shards}`;
  const writers = [ledger.startWriter({ batchSize: 20 }), ledger.startWriter({ batchSize: 20 })];
  let done = false;
  const appending = (async () => {
    while (!done) {
      const now = Date.now();
      const some = Array.from({ length: 20 }, (_, i) =>
        eventAt(now - i, { accountId: uuidv7(), keyId: keys[i % 2] as string }),
      );
      await ledger.append(...some);
      await until(async () => done || (await ledger.backlog()) < 100);
    }
  })();
  await until(() => writers.every((writer) => writer.stats().storedCalls > 0));
  for (const damage of DAMAGES) {
    await ledger.sql.unsafe(damage);
    await rebuild();
    const stored = writers.map((writer) => writer.stats().storedCalls);
    await until(() => writers.every((writer, i) => writer.stats().storedCalls > (stored[i] as number)));
    expect(await compareSums(ledger.sql)).toEqual([]);
  }
  done = true;
  await appending;
  await ledger.drained();
  await ledger.readBooks();
});

it('is refused, instead of waiting, while old days are being dropped', async () => {
  await open().query('SELECT pg_advisory_lock($1::int, 0)', [RETENTION_LOCK]);
  await expect(rebuild()).rejects.toThrow('another process');
});
