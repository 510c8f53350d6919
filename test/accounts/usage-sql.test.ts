import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { onlyKey } from '../../src/accounts/key-scope.ts';
import { parseTimeRange } from '../../src/accounts/time-range.ts';
import { selectCall, selectCalls } from '../../src/accounts/usage-sql.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import type { Sql, Tx } from '../../src/platform/postgres.ts';
import { type Run, templateTag } from '../../src/platform/postgres-query.ts';
import { openTestDatabase } from '../support/accounts.ts';

let database: Sql;
let close: () => Promise<void>;

beforeAll(async () => {
  ({ sql: database, close } = await openTestDatabase());
  for (const day of ['2026-01-13', '2026-01-14', '2026-01-15', '2026-01-16', '2026-01-17']) {
    await database.unsafe(
      `CREATE TABLE "calls_${day}" PARTITION OF calls FOR VALUES FROM ('${day}') TO ('${day}'::date + 1)`,
    );
  }
});
afterAll(() => close());

/** The days whose partitions the plan of the query touches. */
async function daysRead(query: (sql: Sql) => Promise<unknown>): Promise<string[]> {
  const plans: unknown[] = [];
  const explain = async (...args: Parameters<Run>) => {
    plans.push(await database.unsafe(`EXPLAIN ${args[0]}`, args[1]));
    return [];
  };
  await query(templateTag(explain as unknown as Run) as Sql);
  const days = JSON.stringify(plans).matchAll(/calls_(\d{4}-\d\d-\d\d)/g);
  return [...new Set([...days].map(([, day]) => day as string))].sort();
}

describe('usage queries read only the partitions they need', () => {
  const filter = (query: { from?: string; to?: string }) => ({
    ...parseTimeRange(query),
    scope: onlyKey('acf_0000000000000000000000'),
    serviceId: null,
    outcome: null,
    tag: null,
  });

  it.each([
    [{ from: '2026-01-15T02:00:00Z', to: '2026-01-15T22:00:00Z' }, ['2026-01-15']],
    // An hour of slack for clocks: a whole day touches its neighbours.
    [{ from: '2026-01-15', to: '2026-01-16' }, ['2026-01-14', '2026-01-15', '2026-01-16']],
    [{ from: '2026-01-16T12:00:00Z' }, ['2026-01-16', '2026-01-17']],
    [{ to: '2026-01-14T12:00:00Z' }, ['2026-01-13', '2026-01-14']],
  ])('for %j: %j', async (query, days) => {
    expect(await daysRead((sql) => selectCalls(async () => sql as unknown as Tx, filter(query), null, 10))).toEqual(
      days,
    );
  });

  it('after a cursor: no day later than the cursor', async () => {
    const cursor = uuidv7(Date.parse('2026-01-14T12:00:00Z'));
    expect(await daysRead((sql) => selectCalls(async () => sql as unknown as Tx, filter({}), cursor, 10))).toEqual([
      '2026-01-13',
      '2026-01-14',
    ]);
  });

  it('for one call: only its day', async () => {
    const id = uuidv7(Date.parse('2026-01-14T12:00:00Z'));
    expect(await daysRead((sql) => selectCall(sql, id))).toEqual(['2026-01-14']);
  });
});
