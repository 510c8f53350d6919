import { ApiError } from '../errors.ts';
import type { MoneyTransactions, MoneyTx } from '../ledger/history/fence.ts';
import { insertJournal, type MovedBalance, movedBalance, PLATFORM_ACCOUNT_ID, postEntries } from '../ledger/posting.ts';
import type { CreditToApply } from '../ledger/wallets/credit-wallets.ts';
import { formatUsd, MAX_BALANCE_MICROS, microsToUsd } from '../platform/money.ts';
import { sqlState, type Tx } from '../platform/postgres.ts';
import { type Act, type Actor, recordAct } from './audit.ts';

/** Money that came in for an account. Stored once per reference and never changed. */
export type Credit = {
  readonly accountId: string;
  /**
   * Number of the credit within its account. Credits and refunds share one sequence of numbers, and Redis applies them in this
   * order.
   */
  readonly seq: number;
  readonly amountMicros: number;
  /** The payer's own id of the payment, unique among all credits. */
  readonly reference: string;
  readonly createdAt: Date;
};

export type NewCredit = Pick<Credit, 'accountId' | 'amountMicros' | 'reference'>;

/** Adds a stored credit to the wallet in Redis. It does so only once, however often it is called, and in the order of `seq`. */
export type CreditApplier = {
  apply(credit: CreditToApply): Promise<void>;
};

const UNIQUE_VIOLATION = '23505';

/**
 * Stores a credit in one transaction: its row, its journal entries (the account's wallet up, the platform's cash down), the
 * balances and who made it. The caller must then apply it to the wallet in Redis.
 *
 * @returns the credit, and whether it is new: with `created: false` it was stored before, with the same reference, account and
 *   amount. Null when there is no such account.
 * @throws ApiError `conflict` when the reference belongs to a credit of another account or amount, when the account is closed,
 *   or when the balance would exceed the maximum of a wallet
 */
export async function storeCredit(
  money: MoneyTransactions,
  credit: NewCredit,
  by: Actor,
): Promise<{ readonly credit: Credit; readonly created: boolean } | null> {
  const store = () => money.begin([credit.accountId], (tx) => storeInTransaction(tx, credit, by));
  try {
    return await store();
  } catch (error) {
    if (sqlState(error) !== UNIQUE_VIOLATION) throw error;
    // At the same moment another account was credited with this reference. That credit is committed by now, so the second attempt
    // finds it and throws `conflict`.
    return store();
  }
}

async function storeInTransaction(tx: MoneyTx, credit: NewCredit, by: Actor) {
  // The lock on the account admits one credit at a time. So the numbers have no gaps, and one reference sent twice at once makes
  // one credit. NO KEY UPDATE does not block inserts that merely refer to the account.
  const accounts = await tx<{ seq: number; status: string }[]>`
    SELECT credit_seq + 1 AS seq, status FROM accounts WHERE id = ${credit.accountId} FOR NO KEY UPDATE`;
  if (accounts[0] === undefined) return null;
  const stored = await selectByReference(tx, credit.reference);
  if (stored === null) {
    if (accounts[0].status === 'closed') throw new ApiError('conflict', 'This account is closed.');
    await checkBalance(tx, credit);
    return { credit: await insertCredit(tx, credit, accounts[0].seq, by), created: true };
  }
  if (stored.accountId !== credit.accountId || stored.amountMicros !== credit.amountMicros) {
    throw new ApiError('conflict', 'reference: belongs to a credit of another account or amount.');
  }
  return { credit: stored, created: false };
}

function creditAct(
  { accountId, amountMicros, reference, seq }: Omit<Credit, 'createdAt'>,
  moved: MovedBalance,
  by: Actor,
): Act {
  const { before, after } = moved;
  const what = { amount: microsToUsd(amountMicros), reference, seq };
  return {
    ...by,
    action: 'account.credit',
    subjectType: 'account',
    subjectId: accountId,
    before,
    after: { ...what, ...after },
  };
}

/**
 * Refuses a credit that would lift the balance above `MAX_BALANCE_MICROS`. The balance cannot rise between this check and the
 * commit: the lock on the account keeps other credits and refunds out, and nothing else raises a wallet's balance.
 */
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

async function insertCredit(tx: MoneyTx, credit: NewCredit, seq: number, by: Actor): Promise<Credit> {
  const { accountId, amountMicros, reference } = credit;
  const journalId = await insertJournal(tx, 'credit', reference);
  // Inserted before the balances change, so that a reference that exists already fails here. Next, this transaction locks the
  // platform's balance, for which all other credits wait.
  const rows = await tx<{ createdAt: Date }[]>`
    INSERT INTO credits (account_id, seq, amount, reference, journal_id)
    VALUES (${accountId}, ${seq}, ${amountMicros}, ${reference}, ${journalId})
    RETURNING created_at AS "createdAt"`;
  await tx`UPDATE accounts SET credit_seq = ${seq} WHERE id = ${accountId}`;
  const balanceAfter = await postEntries(tx, journalId, [
    { accountId, ledger: 'wallet', amountMicros },
    { accountId: PLATFORM_ACCOUNT_ID, ledger: 'cash', amountMicros: -amountMicros },
  ]);
  const moved = movedBalance('balance', balanceAfter(accountId, 'wallet'), amountMicros);
  await recordAct(tx, creditAct({ ...credit, seq }, moved, by));
  return { accountId, seq, amountMicros, reference, createdAt: rows[0]?.createdAt as Date };
}
