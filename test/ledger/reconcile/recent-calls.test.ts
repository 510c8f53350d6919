import { expect, it } from 'vitest';
import { selectCallsBefore } from '../../../src/ledger/reconcile/reconcile-sql.ts';
import { uuidv7 } from '../../../src/platform/ids.ts';
import type { Sql } from '../../../src/platform/postgres.ts';
import { addKeyTo } from '../../support/accounts.ts';
import { ledger, useLedger } from '../use-ledger.ts';

const CALLS = 5_000;

useLedger();

/** Stores calls of the last second, of the key and of others in turn. Postgres has no statistics about them yet. */
async function storeCalls(sql: Sql, mine: { keyId: string; accountId: string }, every: number): Promise<void> {
  const ids = Array.from({ length: CALLS }, () => uuidv7(Date.now() - 1_000));
  await sql`
    INSERT INTO calls (day, usage_id, account_id, key_id, provider_id, service_id, method, path, status, amount, fee, free_tier,
      outcome, latency_us, request_bytes, response_bytes, created_at, journal_id)
    SELECT (now() - interval '1 second')::date, id,
      CASE WHEN n % ${every} = 0 THEN ${mine.accountId}::uuid ELSE gen_random_uuid() END,
      CASE WHEN n % ${every} = 0 THEN ${mine.keyId} ELSE 'another' END,
      gen_random_uuid(), gen_random_uuid(), 'GET', '/', 200, 7, 0, false, 'completed', 1, 0, 0, now() - interval '1 second', 1
    FROM unnest(${`{${ids.join(',')}}`}::uuid[]) WITH ORDINALITY AS made (id, n)`;
}

it('the last calls of an account are found without a look at the calls of others, even before Postgres has statistics', async () => {
  const { sql } = ledger;
  const accountId = await ledger.account(1_000);
  const { keyId } = await addKeyTo(sql, accountId, 'buyer');
  await storeCalls(sql, { keyId, accountId }, 50);
  const { found, fetched } = await sql.begin(async (tx) => {
    const rows = await selectCallsBefore(tx, accountId, Date.now());
    const [read] = await tx<{ fetched: number }[]>`
      SELECT sum(idx_tup_fetch + seq_tup_read)::int AS fetched FROM pg_stat_xact_user_tables WHERE relname LIKE 'calls%'`;
    return { found: rows.length, fetched: read?.fetched };
  });
  expect(found).toBe(CALLS / 50);
  expect(fetched).toBe(found);
});
