import { beforeEach, expect, it } from 'vitest';
import { selectStored } from '../../../src/ledger/reconcile/reconcile-sql.ts';
import { uuidv7 } from '../../../src/platform/ids.ts';
import type { Tx } from '../../../src/platform/postgres.ts';
import { addKeyTo } from '../../support/accounts.ts';
import { ledger, useLedger } from '../use-ledger.ts';

const CALLS = 5_000;
const EVERY = 50;

useLedger();

let accountId: string;
let ids: readonly string[];

/** Calls of the last second, every fiftieth of them of the account. Postgres has no statistics about them yet. */
beforeEach(async () => {
  const { sql } = ledger;
  accountId = await ledger.account(1_000);
  const { keyId } = await addKeyTo(sql, accountId, 'buyer');
  const now = Date.now() - 1_000;
  ids = Array.from({ length: CALLS }, () => uuidv7(now));
  await sql`
    INSERT INTO calls (day, usage_id, account_id, key_id, provider_id, service_id, method, path, status, amount, fee, free_tier,
      outcome, latency_us, request_bytes, response_bytes, created_at, journal_id)
    SELECT (${new Date(now)}::timestamptz AT TIME ZONE 'UTC')::date, id,
      CASE WHEN n % ${EVERY} = 1 THEN ${accountId}::uuid ELSE gen_random_uuid() END,
      CASE WHEN n % ${EVERY} = 1 THEN ${keyId} ELSE 'another' END,
      gen_random_uuid(), gen_random_uuid(), 'GET', '/', 200, n, 0, false, 'completed', 1, 0, 0, ${new Date(now)}, 1
    FROM unnest(${`{${ids.join(',')}}`}::uuid[]) WITH ORDINALITY AS made (id, n)`;
});

/** How many rows of `calls` this session has read. Postgres counts them with a delay, so only a difference tells something. */
async function rowsRead(tx: Tx): Promise<number> {
  const [stats] = await tx<{ rows: number }[]>`
    SELECT sum(idx_tup_fetch + seq_tup_read)::int AS rows FROM pg_stat_xact_user_tables WHERE relname LIKE 'calls%'`;
  return stats?.rows ?? 0;
}

/** @returns what `read` found, and how many rows of `calls` Postgres read for it */
async function counted<T>(read: (tx: Tx) => Promise<T>): Promise<{ readonly found: T; readonly rows: number }> {
  return ledger.sql.begin(async (tx) => {
    const before = await rowsRead(tx);
    const found = await read(tx);
    return { found, rows: (await rowsRead(tx)) - before };
  });
}

it('a query for the calls of holds reads no other calls, even before Postgres has statistics', async () => {
  const asked = ids.filter((_, i) => i % EVERY === 0);
  const missing = uuidv7(Date.now());
  const { found, rows } = await counted((tx) => selectStored(tx, [...asked, missing, 'no id']));
  expect(new Set(found.keys())).toEqual(new Set(asked));
  expect(found.get(asked[1] as string)).toMatchObject({ amountMicros: EVERY + 1, freeCall: false });
  expect(rows).toBe(asked.length);
});
