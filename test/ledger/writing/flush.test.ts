import fc from 'fast-check';
import { expect, it } from 'vitest';
import { feeMicros, type Outcome, type UsageEvent } from '../../../src/ledger/usage-event.ts';
import { isExact } from '../../../src/ledger/writing/call-sums.ts';
import { uuidv7 } from '../../../src/platform/ids.ts';
import { anyBudgets, anyUse, FEE_BASIS_POINTS, newEvent } from '../support.ts';
import { ledger, readAll, session, storeFast, storeWithCare, useFlush } from './flush-support.ts';

useFlush();

const ROLLED_BACK = new Error('rolled back');
const TABLES = [
  'calls',
  'journal',
  'entries',
  'balances',
  'free_usage',
  'budget_usage',
  'service_hours',
  'key_hours',
  'key_days',
  'account_days',
  'account_key_days',
  'service_latencies',
  'service_amounts',
  'tag_days',
  'tag_months',
  'rejected_events',
];

/** The rows of every table after `store`, without journal ids, tokens and times. `store` is rolled back. */
async function tablesAfter(store: () => Promise<unknown>): Promise<Record<string, string[]>> {
  const tables: Record<string, string[]> = {};
  const work = session.transaction(async () => {
    await store();
    for (const table of TABLES) {
      const row = `to_jsonb(t) - 'journal_id' ${table === 'journal' ? "- 'id' - 'token' - 'created_at'" : ''}`;
      const rows = await session.query<{ row: string }>(`SELECT (${row})::text AS row FROM ${table} t ORDER BY 1`);
      tables[table] = rows.map(({ row }) => row);
    }
    throw ROLLED_BACK;
  });
  await expect(work).rejects.toBe(ROLLED_BACK);
  return tables;
}

async function bothWays(events: readonly UsageEvent[]) {
  await ledger.append(...events);
  const batch = await readAll();
  const fast = await tablesAfter(() => storeFast(batch));
  const careful = await tablesAfter(() => storeWithCare(batch));
  return { fast, careful, batch };
}

const accounts = Array.from({ length: 6 }, () => uuidv7());
const services = Array.from({ length: 3 }, () => uuidv7());
const keys = ['acf_0000000000000000000001', 'acf_0000000000000000000002'];
const outcomes: Outcome[] = ['completed', 'completed', 'abandoned', 'refunded:caller_gone', 'refunded:upstream_cut'];

const anyEvent = fc
  .record({
    buyer: fc.nat(5),
    // Accounts may sell to each other and to themselves.
    provider: fc.nat(5),
    service: fc.nat(2),
    heldMicros: fc.oneof(fc.constantFrom(0, 1, 39, 40), fc.nat(1_000_000_000)),
    freeTier: fc.boolean(),
    path: fc.constantFrom('/x', '/x', '/mcp#ping'),
    outcome: fc.constantFrom(...outcomes),
    status: fc.constantFrom(200, 404, 499, 502),
    keyId: fc.constantFrom(...keys),
    latencyUs: fc.oneof(fc.constantFrom(0, 999, 1_000), fc.nat(10_000_000)),
    // Two hours, at their very beginnings and ends.
    admittedAtMs: fc.constantFrom(0, 1, 3_599_999, 3_600_000).map((ms) => Date.UTC(2026, 10, 22) + ms),
    use: anyUse,
    budgets: anyBudgets,
    tag: fc.constantFrom(null, null, 'a', 'b'),
  })
  .map(({ buyer, provider, service, freeTier, heldMicros, use, budgets, ...rest }) =>
    newEvent({
      accountId: accounts[buyer] as string,
      providerId: accounts[provider] as string,
      serviceId: services[service] as string,
      heldMicros: freeTier ? 0 : heldMicros,
      freeTier,
      ...rest,
      ...use,
      ...budgets,
    }),
  );

it('new calls lead to the same tables whether COPY or INSERT stores them, and whether or not balances exist', async () => {
  const property = fc.asyncProperty(
    fc.array(anyEvent, { maxLength: 40 }),
    fc.array(anyEvent, { minLength: 1, maxLength: 40 }),
    async (before, events) => {
      await ledger.clear();
      await ledger.append(...before);
      const writer = ledger.startWriter();
      await ledger.drained();
      await writer.stop();
      const { fast, careful } = await bothWays(events);
      expect(fast.journal).toHaveLength(before.length > 0 ? 2 : 1);
      expect(fast).toEqual(careful);
    },
  );
  await fc.assert(property, { numRuns: 25 });
});

it('an account whose calls fill several pages of a batch gets one entry', async () => {
  const [accountId, providerId, serviceId] = [uuidv7(), uuidv7(), uuidv7()];
  const events = Array.from({ length: 2_500 }, () => newEvent({ accountId, providerId, serviceId, heldMicros: 40 }));
  const { fast, careful, batch } = await bothWays(events);
  expect(batch.pages).toHaveLength(3);
  expect(fast.entries).toHaveLength(3);
  expect(fast.entries?.filter((row) => row.includes(accountId))).toEqual([expect.stringContaining('-100000')]);
  expect(fast).toEqual(careful);
});

it('more entries than fit in one chunk of a COPY are all stored', async () => {
  const events = Array.from({ length: 3_000 }, () => newEvent());
  const { fast, careful } = await bothWays(events);
  expect(fast.entries).toHaveLength(6_001);
  expect(fast).toEqual(careful);
});

it('calls that cost nothing get a journal row and no entries', async () => {
  const { fast, careful } = await bothWays([newEvent({ heldMicros: 0 }), newEvent({ outcome: 'abandoned' })]);
  expect(fast).toMatchObject({ entries: [], balances: [], journal: [expect.stringContaining('usage')] });
  expect(fast).toEqual(careful);
});

it("free messages and a provider's calls of its own listing are stored, but are in no sum unless charged", async () => {
  const [serviceId, providerId] = [uuidv7(), uuidv7()];
  const event = (given: Partial<UsageEvent>) => newEvent({ serviceId, providerId, heldMicros: 0, ...given });
  const own = { accountId: providerId };
  const uncounted = [
    event({ path: '#initialize' }),
    event({ path: '/mcp#stream' }),
    event(own),
    event({ ...own, freeTier: true }),
    event({ ...own, heldMicros: 40, outcome: 'refunded:upstream_error' }),
  ];
  const { fast, careful } = await bothWays(uncounted);
  expect(fast).toMatchObject({ service_hours: [], key_hours: [], free_usage: [expect.stringContaining(providerId)] });
  expect(fast.calls).toHaveLength(uncounted.length);
  expect(fast).toEqual(careful);
  const counted = await bothWays([event({}), event({ ...own, heldMicros: 40 })]);
  expect(counted.fast.service_hours).toEqual([expect.stringMatching(/"calls": 2\b/)]);
  expect(counted.fast).toEqual(counted.careful);
});

it('sums beyond 2^53 are exact, even if each page stays below it', async () => {
  const providerId = uuidv7();
  const heldMicros = Number.MAX_SAFE_INTEGER;
  // The events are of different shards, so each makes its own page.
  const buyers = new Map(Array.from({ length: 200 }, uuidv7).map((id) => [ledger.store.keys.shardOf(id), id]));
  const two = Array.from(buyers.values()).slice(0, 2);
  await ledger.append(...two.map((accountId) => newEvent({ accountId, providerId, heldMicros })));
  const { pages } = await readAll();
  expect(pages.map((page) => isExact([page]))).toEqual([true, true]);
  expect(isExact(pages)).toBe(false);
  ledger.startWriter();
  await ledger.drained();
  const rows = await ledger.sql`SELECT balance::text FROM balances WHERE account_id = ${providerId}`;
  const earned = BigInt(heldMicros) - BigInt(feeMicros(heldMicros, FEE_BASIS_POINTS));
  expect(rows).toEqual([{ balance: String(2n * earned) }]);
});
