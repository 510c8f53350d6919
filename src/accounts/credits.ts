import { ApiError } from '../errors.ts';
import { insertJournal, PLATFORM_ACCOUNT_ID, postEntries } from '../ledger/posting.ts';
import { formatUsd, MAX_AMOUNT_MICROS } from '../platform/money.ts';
import { type Sql, sqlState, type Tx } from '../platform/postgres.ts';

/** Money that came in for an account. Stored once per reference, and never changed. */
export type Credit = {
  readonly accountId: string;
  /** Number of the credit within its account, from 1 without gaps: the order in which Redis applies them. */
  readonly seq: number;
  readonly amountMicros: number;
  /** The payer's own id of the payment; unique among all credits. */
  readonly reference: string;
  readonly createdAt: Date;
};

export type NewCredit = Pick<Credit, 'accountId' | 'amountMicros' | 'reference'>;

/** Adds a stored credit to the live wallet, at most once and in order of `seq`, however often it is asked to. */
export type CreditApplier = {
  apply(credit: { accountId: string; seq: number; amountMicros: number }): Promise<void>;
};

const UNIQUE_VIOLATION = '23505';

/**
 * No wallet may hold more: 4 billion USD, less than half of 2^53 micro-USD. A balance beyond 2^53 could not be read back
 * exactly, and the account's wallet could never be loaded again.
 */
const MAX_BALANCE_MICROS = 4 * MAX_AMOUNT_MICROS;

/**
 * Stores a credit: its row, its journal entries (account's wallet up, platform's cash down) and the balances, in one
 * transaction. The live wallet in Redis is the caller's next step.
 *
 * @returns the credit, and whether it is new; `created: false` is the credit that has the same reference, account and
 *   amount already. Null when there is no such account.
 * @throws ApiError `conflict` when the reference belongs to a credit of another account or amount, or when the balance
 *   would be more than any wallet may hold
 */
export async function storeCredit(
  sql: Sql,
  credit: NewCredit,
): Promise<{ readonly credit: Credit; readonly created: boolean } | null> {
  try {
    return await sql.begin((tx) => storeInTransaction(tx, credit));
  } catch (error) {
    if (sqlState(error) !== UNIQUE_VIOLATION) throw error;
    // Another account was credited under this reference at the same moment. It is committed now, so the second try
    // finds it and answers `conflict`.
    return sql.begin((tx) => storeInTransaction(tx, credit));
  }
}

async function storeInTransaction(tx: Tx, credit: NewCredit) {
  // One credit of an account at a time: the numbers have no gaps, and the same reference sent twice at once is one
  // credit and one answer. NO KEY UPDATE leaves inserts that only refer to the account alone.
  const accounts = await tx<{ seq: number }[]>`
    SELECT credit_seq + 1 AS seq FROM accounts WHERE id = ${credit.accountId} FOR NO KEY UPDATE`;
  if (accounts[0] === undefined) return null;
  const stored = await selectByReference(tx, credit.reference);
  if (stored === null) {
    await checkBalance(tx, credit);
    return { credit: await insertCredit(tx, credit, accounts[0].seq), created: true };
  }
  if (stored.accountId !== credit.accountId || stored.amountMicros !== credit.amountMicros) {
    throw new ApiError('conflict', 'reference: belongs to a credit of another account or amount.');
  }
  return { credit: stored, created: false };
}

/** Under the account's lock no other credit comes between, and everything else only lowers a wallet. */
async function checkBalance(tx: Tx, { accountId, amountMicros }: NewCredit): Promise<void> {
  const rows = await tx<object[]>`
    SELECT FROM balances WHERE account_id = ${accountId} AND ledger = 'wallet'
    AND balance > ${MAX_BALANCE_MICROS - amountMicros}::bigint`;
  if (rows.length === 0) return;
  throw new ApiError('conflict', `amount: the balance would be above ${formatUsd(MAX_BALANCE_MICROS)} USD.`);
}

async function selectByReference(tx: Tx, reference: string): Promise<Credit | null> {
  const rows = await tx<Credit[]>`
    SELECT account_id AS "accountId", seq, amount AS "amountMicros", reference, created_at AS "createdAt"
    FROM credits WHERE reference = ${reference}`;
  return rows[0] ?? null;
}

async function insertCredit(tx: Tx, credit: NewCredit, seq: number): Promise<Credit> {
  const { accountId, amountMicros, reference } = credit;
  const journalId = await insertJournal(tx, 'credit', reference);
  // Before the balances: a reference that is taken must fail before it has locked what others wait for.
  const rows = await tx<{ createdAt: Date }[]>`
    INSERT INTO credits (account_id, seq, amount, reference, journal_id)
    VALUES (${accountId}, ${seq}, ${amountMicros}, ${reference}, ${journalId})
    RETURNING created_at AS "createdAt"`;
  await tx`UPDATE accounts SET credit_seq = ${seq} WHERE id = ${accountId}`;
  await postEntries(tx, journalId, [
    { accountId, ledger: 'wallet', amountMicros },
    { accountId: PLATFORM_ACCOUNT_ID, ledger: 'cash', amountMicros: -amountMicros },
  ]);
  return { accountId, seq, amountMicros, reference, createdAt: rows[0]?.createdAt as Date };
}
