import fc from 'fast-check';
import { beforeAll, expect, it } from 'vitest';
import { roundedAmount } from '../../../src/ledger/rollups/day-sums.ts';
import { sql, useDatabase } from '../../support/use-database.ts';
import { amountSumsOf } from './sums-oracle.ts';

useDatabase();
beforeAll(() => sql`CREATE TABLE amounts (service_id int, created_at timestamptz DEFAULT now(), amount bigint)`);

it.each([
  [1, 1],
  [999, 999],
  [1_234, 1_230],
  [1_234_567, 1_230_000],
  [9_999_999_999, 9_990_000_000],
])('%i is stored as %i', (amount, rounded) => {
  expect(roundedAmount(amount)).toBe(rounded);
});

it('the writer and Postgres round an amount in the same way', async () => {
  const amount = fc.oneof(
    fc.maxSafeNat(),
    fc.integer({ min: 1, max: 100_000 }),
    fc.constantFrom(1, 10, 100, 999, 1_000),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        amount.map((n) => Math.max(1, n)),
        { minLength: 1, maxLength: 200 },
      ),
      async (amounts) => {
        await sql`TRUNCATE amounts`;
        await sql.unsafe(`INSERT INTO amounts VALUES ${amounts.map((n) => `(1, DEFAULT, ${n})`).join(', ')}`);
        const rows = await sql.unsafe<{ amount: number; calls: number }>(amountSumsOf('amounts'));
        const counts = new Map<number, number>();
        for (const n of amounts) counts.set(roundedAmount(n), (counts.get(roundedAmount(n)) ?? 0) + 1);
        expect(new Map(rows.map((row) => [Number(row.amount), Number(row.calls)]))).toEqual(counts);
      },
    ),
    { numRuns: 20 },
  );
});
