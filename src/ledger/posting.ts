import { assert } from '../assert.ts';
import type { MoneyTx } from './history/fence.ts';

/**
 * The platform's own account: its `cash` ledger is the other side of every credit, debit, payout and correction, its `fees` ledger holds its
 * share of every charge. It has no row in `accounts` and no keys: nobody can act for it.
 */
export const PLATFORM_ACCOUNT_ID = '00000000-0000-7000-8000-000000000001';

/**
 * Moves balances by the rows of `posted` (account_id, ledger, amount). Everything that writes entries moves balances by this.
 * Every transaction locks the rows of `balances` in the order of account and ledger, so no two can deadlock. INSERT … ON CONFLICT
 * locks in the order of its SELECT, whatever the planner chooses. UPDATE … FROM does not guarantee an order, and was at most 5 %
 * cheaper.
 */
export const MOVE_BALANCES_SQL = `
  INSERT INTO balances AS b (account_id, ledger, balance)
  SELECT account_id, ledger, amount FROM posted ORDER BY account_id, ledger
  ON CONFLICT (account_id, ledger) DO UPDATE SET balance = b.balance + excluded.balance`;

const POST_SQL = `
WITH posted AS (
  INSERT INTO entries (journal_id, account_id, ledger, amount)
  SELECT $1::bigint, account_id, ledger, amount
  FROM unnest($2::uuid[], $3::text[], $4::bigint[]) AS t (account_id, ledger, amount)
  RETURNING account_id, ledger, amount
)${MOVE_BALANCES_SQL}`;

/** One side of a journal row. */
type Entry = {
  readonly accountId: string;
  readonly ledger: 'wallet' | 'earnings' | 'fees' | 'cash';
  readonly amountMicros: number;
};

/** Inserts a journal row, without entries. @returns its id */
export async function insertJournal(
  tx: MoneyTx,
  kind: 'credit' | 'payout' | 'debit' | 'correction' | 'refund',
  reference: string,
): Promise<number> {
  const rows = await tx<{ id: number }[]>`
    INSERT INTO journal (kind, reference) VALUES (${kind}, ${reference}) RETURNING id`;
  return rows[0]?.id as number;
}

/** Writes the entries of a journal row, which must sum to zero, and moves the balances by them. */
export async function postEntries(tx: MoneyTx, journalId: number, entries: readonly Entry[]): Promise<void> {
  const sum = entries.reduce((total, { amountMicros }) => total + BigInt(amountMicros), 0n);
  assert(sum === 0n, 'the entries of a journal row sum to zero');
  const column = (values: readonly (string | number)[]): string => `{${values.join(',')}}`;
  await tx.unsafe(POST_SQL, [
    String(journalId),
    column(entries.map(({ accountId }) => accountId)),
    column(entries.map(({ ledger }) => ledger)),
    column(entries.map(({ amountMicros }) => amountMicros)),
  ]);
}
