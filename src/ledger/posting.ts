import { assert } from '../assert.ts';
import { microsToUsd } from '../platform/money.ts';
import type { MoneyTx } from './history/fence.ts';

/**
 * The platform's own account: its `cash` ledger is the other side of every credit, debit, payout and correction, its `fees` ledger holds its
 * share of every charge. It has no row in `accounts` and no keys: nobody can act for it.
 */
export const PLATFORM_ACCOUNT_ID = '00000000-0000-7000-8000-000000000001';

/**
 * Moves balances by the rows of `posted` (account_id, ledger, amount). All code that writes entries moves balances with this. Every
 * transaction locks the rows of `balances` in the order of account and ledger, so no two can deadlock. INSERT … ON CONFLICT locks
 * in the order of its SELECT, whatever the planner chooses. UPDATE … FROM does not guarantee an order, and was at most 5 % cheaper.
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
)${MOVE_BALANCES_SQL}
RETURNING b.account_id AS "accountId", b.ledger, b.balance`;

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

/** The balance of an account that has an entry, in micro-USD, after the row. Until the commit nobody else can change it. */
type BalanceAfter = (accountId: string, ledger: Entry['ledger']) => number;

/** Writes the entries of a journal row, which must sum to zero, and moves the balances by them. */
export async function postEntries(tx: MoneyTx, journalId: number, entries: readonly Entry[]): Promise<BalanceAfter> {
  const sum = entries.reduce((total, { amountMicros }) => total + BigInt(amountMicros), 0n);
  assert(sum === 0n, 'the entries of a journal row sum to zero');
  const column = (values: readonly (string | number)[]): string => `{${values.join(',')}}`;
  const rows: readonly { accountId: string; ledger: string; balance: number }[] = await tx.unsafe(POST_SQL, [
    String(journalId),
    column(entries.map(({ accountId }) => accountId)),
    column(entries.map(({ ledger }) => ledger)),
    column(entries.map(({ amountMicros }) => amountMicros)),
  ]);
  return (accountId, ledger) => {
    const row = rows.find((balance) => balance.accountId === accountId && balance.ledger === ledger);
    assert(row !== undefined, 'the account has an entry in this ledger');
    return row.balance;
  };
}

/** For the audit: a balance before and after money was moved, in USD. */
export type MovedBalance = Readonly<Record<'before' | 'after', Readonly<Record<string, number>>>>;

/** @param name the API's name of the balance */
export const movedBalance = (name: string, afterMicros: number, movedMicros: number): MovedBalance => ({
  before: { [name]: microsToUsd(afterMicros - movedMicros) },
  after: { [name]: microsToUsd(afterMicros) },
});
