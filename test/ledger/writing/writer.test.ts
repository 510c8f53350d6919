import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { trimStreamScript } from '../../../src/ledger/scripts.ts';
import type { Outcome, UsageEvent } from '../../../src/ledger/usage-event.ts';
import { uuidv7 } from '../../../src/platform/ids.ts';
import { QUIET } from '../../support/store.ts';
import { timed } from '../../support/timed.ts';
import { until } from '../../support/wait.ts';
import { anyBudgets, anyUse, expectedBooks, holdOf, newEvent, tailOf } from '../support.ts';
import { ledger, useLedger } from '../use-ledger.ts';

useLedger();

const DAY_MS = 86_400_000;
const accounts = [0, 1, 2].map(() => uuidv7());
const providers = [0, 1].map(() => uuidv7());
const services = [0, 1, 2].map(() => uuidv7());
// Ids come from a small pool, so that they repeat; they are of yesterday (no partition), today and tomorrow.
const ids = [-DAY_MS, 0, DAY_MS].flatMap((offset) => Array.from({ length: 12 }, () => uuidv7(Date.now() + offset)));

const outcomes: Outcome[] = ['completed', 'abandoned', 'refunded:upstream_5xx', 'refunded:caller_gone'];
const anyEvent: fc.Arbitrary<UsageEvent> = fc
  .record({
    id: fc.nat(ids.length - 1),
    service: fc.nat(2),
    heldMicros: fc.oneof(fc.constantFrom(0, 1, 39, 40, 999), fc.integer({ min: 0, max: 1_000_000_000_000_000 })),
    free: fc.boolean(),
    outcome: fc.oneof(fc.constant(outcomes[0] as Outcome), fc.constantFrom(...outcomes)),
    status: fc.integer({ min: 0, max: 999 }),
    latencyUs: fc.nat(),
    // Printable ASCII, including quotes and backslashes, and other UTF-8.
    path: fc.oneof(fc.string({ maxLength: 30 }), fc.constantFrom('/"', '/\\', '/{a,b}', 'NULL', '/ü/字', "/'")),
    keyId: fc.constantFrom('acf_a', 'acf_b"\\'),
    admittedAtMs: fc.integer({ min: 1_600_000_000_000, max: 1_900_000_000_000 }),
    use: anyUse,
    budgets: anyBudgets,
  })
  .map(({ id, service, free, heldMicros, path, use, budgets, ...rest }) =>
    newEvent({
      ...rest,
      ...use,
      ...budgets,
      usageId: ids[id] as string,
      accountId: accounts[id % 3] as string,
      serviceId: services[service] as string,
      providerId: providers[service % 2] as string,
      freeTier: free,
      heldMicros: free ? 0 : heldMicros,
      path: path.replaceAll(/[\t\0]/g, ''),
    }),
  );

it('whatever events arrive, however often, the books equal those of the model', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyEvent, { maxLength: 60 }), fc.constantFrom(1, 7, 2_000), async (events, batchSize) => {
      await ledger.clear();
      // One after the other, because the first event of an id counts, in the order of the stream.
      for (const event of events) await ledger.append(event);
      const writer = ledger.startWriter({ batchSize });
      await ledger.drained();
      await writer.stop();
      expect(await ledger.readBooks()).toEqual(expectedBooks(events));
      expect(writer.stats()).toMatchObject({ storedCalls: new Set(events.map((e) => e.usageId)).size });
      expect(await ledger.sql`SELECT * FROM rejected_events`).toEqual([]);
    }),
    { numRuns: 30 },
  );
});

describe('the writer', () => {
  it('stores a finished call in Postgres well within a second', async () => {
    const writer = ledger.startWriter();
    await until(() => writer.stats().ownedShards > 0);
    for (let i = 0; i < 3; i++) {
      const event = newEvent();
      const isStored = async (): Promise<boolean> =>
        (await ledger.sql`SELECT 1 FROM calls WHERE usage_id = ${event.usageId}`).length > 0;
      const tookMs = await timed(async () => {
        await ledger.append(event);
        await until(isStored);
      });
      expect(tookMs).toBeLessThan(1_000);
    }
  });

  it('posts nothing when there is nothing new: the flush has a journal row without entries', async () => {
    const event = newEvent();
    await ledger.append(event);
    const writer = ledger.startWriter();
    await ledger.drained();
    await ledger.append(event, event);
    await ledger.drained();
    await until(() => writer.stats().flushes >= 2);
    expect(
      await ledger.sql`SELECT j.id, count(e)::int AS entries FROM journal j LEFT JOIN entries e ON e.journal_id = j.id
                            GROUP BY 1 ORDER BY 1 LIMIT 2`,
    ).toMatchObject([{ entries: 3 }, { entries: 0 }]);
    expect(writer.stats().storedCalls).toBe(1);
  });

  it('stores all events before it stops', async () => {
    const events = Array.from({ length: 500 }, () => newEvent());
    const writer = ledger.startWriter({ batchSize: 50 });
    await until(() => writer.stats().ownedShards > 0);
    await ledger.append(...events);
    await writer.stop();
    expect(await ledger.backlog()).toBe(0);
    expect((await ledger.readBooks()).calls).toHaveLength(500);
  });

  it('makes the partitions of the days ahead, except for a day whose calls are in the default partition', async () => {
    // Not today, so that no other test uses the same partitions.
    const clock = () => Date.UTC(2031, 4, 1, 23, 59, 59);
    await ledger.append(newEvent({ usageId: uuidv7(Date.UTC(2031, 4, 3)) }));
    const early = ledger.startWriter();
    await ledger.drained();
    await early.stop();
    const warnings: object[] = [];
    const late = ledger.startWriter({ clock, log: { ...QUIET, warn: (fields) => void warnings.push(fields) } });
    await ledger.append(newEvent({ usageId: uuidv7(Date.UTC(2031, 4, 2)) }));
    await ledger.drained();
    await late.stop();
    expect(warnings).toEqual([{ day: '2031-05-03' }]);
    const rows = await ledger.sql<{ name: string }[]>`
      SELECT relname AS name FROM pg_class WHERE relname LIKE 'calls_203105%' AND relkind = 'r' ORDER BY 1`;
    const made = ['01', '02', '04', '05', '06', '07', '08'].map((day) => `calls_203105${day}`);
    expect(rows.map(({ name }) => name)).toEqual(made);
    const where = await ledger.sql`SELECT tableoid::regclass::text AS name FROM calls ORDER BY usage_id`;
    expect(where).toEqual([{ name: 'calls_20310502' }, { name: 'calls_default' }]);
  });
});

describe('a batch', () => {
  const shared = (n: number, change: (i: number) => Partial<UsageEvent> = () => ({})): UsageEvent[] =>
    Array.from({ length: n }, (_, i) =>
      newEvent({ accountId: accounts[0] as string, serviceId: services[0] as string, ...change(i) }),
    );

  it('that contains an event twice stores it once', async () => {
    const events = shared(5);
    await ledger.append(...events, ...events.slice(1, 3));
    const writer = ledger.startWriter();
    await ledger.drained();
    await until(() => writer.stats().storedCalls === 5);
    expect(await ledger.readBooks()).toEqual(expectedBooks(events));
  });

  it('with some events that Postgres already has adds the others, and the next batch is stored by COPY again', async () => {
    const [first, second, third] = [shared(5), shared(5), shared(5)];
    const writer = ledger.startWriter();
    await ledger.append(...first);
    await ledger.drained();
    await ledger.append(...second, ...first);
    await ledger.drained();
    await ledger.append(...third);
    await ledger.drained();
    await until(() => writer.stats().storedCalls === 15);
    expect(await ledger.readBooks()).toEqual(expectedBooks([...first, ...second, ...third]));
  });

  it('of one account with more events than one command reads is stored in full', async () => {
    const events = shared(2_500, (i) => ({ heldMicros: i, path: `/${i}` }));
    await ledger.append(...events);
    await ledger.appendRaw(accounts[0] as string, 'not-a-uuid', holdOf(newEvent()), tailOf(newEvent()));
    const writer = ledger.startWriter();
    await ledger.drained();
    await until(() => writer.stats().rejectedEvents === 1);
    expect(writer.stats()).toMatchObject({ storedCalls: 2_500, flushes: 1 });
    expect(await ledger.readBooks()).toEqual(expectedBooks(events));
  });

  it('whose sums exceed 2^53 is booked to the micro-dollar', async () => {
    // Odd numbers, so that a floating-point sum would differ.
    const events = shared(7, () => ({ heldMicros: 9_000_000_000_000_001 }));
    await ledger.append(...events);
    ledger.startWriter();
    await ledger.drained();
    const rows = await ledger.sql`
      SELECT balance::text, (SELECT -sum(amount) FROM calls)::text AS charged
      FROM balances WHERE account_id = ${accounts[0] as string}`;
    expect(rows).toEqual([{ balance: '-63000000000000007', charged: '-63000000000000007' }]);
    expect(await ledger.sql`SELECT journal_id FROM entries GROUP BY 1 HAVING sum(amount) <> 0`).toEqual([]);
  });
});

describe('two writers', () => {
  it('store each event once, because the writer that owns its shard stores it', async () => {
    const writers = [ledger.startWriter({ batchSize: 20 }), ledger.startWriter({ batchSize: 20 })];
    const events = Array.from({ length: 400 }, () => newEvent());
    await ledger.append(...events);
    await ledger.drained();
    await Promise.all(writers.map((writer) => writer.stop()));
    expect(await ledger.readBooks()).toEqual(expectedBooks(events));
    expect(writers.reduce((sum, writer) => sum + writer.stats().storedCalls, 0)).toBe(400);
  });

  it('share the shards, and one takes the shards of the other within seconds after it has ended', async () => {
    const first = ledger.startWriter();
    await until(() => first.stats().ownedShards === ledger.store.keys.shards);
    const second = ledger.startWriter();
    await until(() => first.stats().ownedShards === 1 && second.stats().ownedShards === 1);
    await ledger.append(newEvent());
    await ledger.drained();
    await first.stop();
    await until(() => second.stats().ownedShards === ledger.store.keys.shards);
    const before = second.stats().storedCalls;
    await ledger.append(newEvent());
    await ledger.drained();
    await until(() => second.stats().storedCalls === before + 1);
  });
});

it('a stored event is not read again while it is being deleted, and is not left behind at the end', async () => {
  const accountId = uuidv7();
  const { redis } = ledger.store;
  const deleted = new Set<string>();
  const readAgain: string[] = [];
  // The same Redis through a client that delays deletions.
  const slow = Object.create(redis) as typeof redis;
  const deleteSlowly = async (ids: readonly unknown[]) => {
    for (const id of ids) deleted.add(String(id));
    await new Promise((resolve) => setTimeout(resolve, 30));
  };
  slow.script = async (script, keyCount, args) => {
    if (script === trimStreamScript) {
      const [usage, , , , last, , first] = args as [string, string, string, string, string, string, string];
      const page = (await redis.command('xrange', [usage, first, last])) as [string, string[]][];
      await deleteSlowly(page.map(([id]) => id));
    }
    return redis.script(script, keyCount, args);
  };
  slow.command = async (name, args) => {
    const before = new Set(deleted);
    const reply = await redis.command(name, args);
    if (name === 'xread') {
      const entries = ((reply ?? []) as [string, [string, string[]][]][]).flatMap(([, its]) => its);
      readAgain.push(...entries.map(([id]) => id).filter((id) => before.has(id)));
    }
    return reply;
  };
  await ledger.append(...Array.from({ length: 3_000 }, () => newEvent({ accountId })));
  const writer = ledger.startWriter({ redis: slow, batchSize: 500 });
  await until(() => writer.stats().storedCalls >= 500);
  await writer.stop();
  expect(readAgain).toEqual([]);
  expect(writer.stats().storedCalls).toBe(3_000);
  expect(await redis.command('xlen', [ledger.store.keys.usage[ledger.store.keys.shardOf(accountId)] as string])).toBe(
    0,
  );
});
