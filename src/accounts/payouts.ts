import { ApiError } from '../errors.ts';
import type { MoneyTransactions, MoneyTx } from '../ledger/history/fence.ts';
import { insertJournal, movedBalance, PLATFORM_ACCOUNT_ID, postEntries } from '../ledger/posting.ts';
import { formatUsd, microsToUsd } from '../platform/money.ts';
import { sqlState, type Tx } from '../platform/postgres.ts';
import { type Actor, recordAct } from './audit.ts';

/** Money that was paid to a provider outside. Stored once per reference and never changed. */
export type Payout = {
  readonly accountId: string;
  readonly amountMicros: number;
  /** The operator's own id of the payment, unique among all payouts. */
  readonly reference: string;
  readonly createdAt: Date;
};

type NewPayout = Omit<Payout, 'createdAt'>;

const UNIQUE_VIOLATION = '23505';

/**
 * Stores a payout in one transaction: its row, its journal entries (the account's earnings down, the platform's cash up), the
 * balances and the act.
 *
 * @returns the payout, and whether it is new: with `created: false` it was stored before, with the same reference, account and
 *   amount. Null when there is no such account.
 * @throws ApiError `conflict` when the reference belongs to a payout of another account or amount, or when less is payable
 */
export async function storePayout(
  money: MoneyTransactions,
  payout: NewPayout,
  by: Actor,
): Promise<{ readonly payout: Payout; readonly created: boolean } | null> {
  const store = () => money.begin([payout.accountId], (tx) => storeInTransaction(tx, payout, by));
  try {
    return await store();
  } catch (error) {
    if (sqlState(error) !== UNIQUE_VIOLATION) throw error;
    // At the same moment another account was paid under this reference. That payout is committed by now, so the second attempt
    // finds it and throws `conflict`.
    return store();
  }
}

async function storeInTransaction(tx: MoneyTx, payout: NewPayout, by: Actor) {
  // The lock on the account admits one payout at a time. A lock is also written to the log. So when the payout is found stored,
  // this commit waits until the synchronous standby has it too, even if the first commit did not.
  const accounts = await tx<object[]>`SELECT FROM accounts WHERE id = ${payout.accountId} FOR NO KEY UPDATE`;
  if (accounts.length === 0) return null;
  const stored = await selectSame(tx, payout);
  if (stored !== null) return { payout: stored, created: false };
  return { payout: await insertPayout(tx, payout, by), created: true };
}

/** @throws ApiError `conflict` when the reference belongs to another account or amount */
async function selectSame(tx: Tx, { accountId, amountMicros, reference }: NewPayout): Promise<Payout | null> {
  const [stored] = await tx<Payout[]>`
    SELECT account_id AS "accountId", amount AS "amountMicros", reference, created_at AS "createdAt"
    FROM payouts WHERE reference = ${reference}`;
  if (stored === undefined) return null;
  if (stored.accountId === accountId && stored.amountMicros === amountMicros) return stored;
  throw new ApiError('conflict', 'reference: belongs to a payout of another account or amount.');
}

async function insertPayout(tx: MoneyTx, payout: NewPayout, by: Actor): Promise<Payout> {
  const { accountId, amountMicros, reference } = payout;
  const journalId = await insertJournal(tx, 'payout', reference);
  // Inserted before the balances change, so that a reference that exists already fails here, before anybody has to wait for the
  // platform's balance.
  const [row] = await tx<{ createdAt: Date }[]>`
    INSERT INTO payouts (journal_id, account_id, amount, reference)
    VALUES (${journalId}, ${accountId}, ${amountMicros}, ${reference}) RETURNING created_at AS "createdAt"`;
  const balanceAfter = await postEntries(tx, journalId, [
    { accountId, ledger: 'earnings', amountMicros: -amountMicros },
    { accountId: PLATFORM_ACCOUNT_ID, ledger: 'cash', amountMicros },
  ]);
  const earningsMicros = balanceAfter(accountId, 'earnings');
  checkEarnings(earningsMicros, payout);
  const { before, after } = movedBalance('payable', earningsMicros, -amountMicros);
  await recordAct(tx, {
    ...by,
    action: 'account.payout',
    subjectType: 'account',
    subjectId: accountId,
    before,
    after: { amount: microsToUsd(amountMicros), reference, ...after },
  });
  return { ...payout, createdAt: row?.createdAt as Date };
}

/**
 * Refuses a payout that has made the balance negative, and so rolls everything back. It checks after the change, because posting
 * has by then locked the balance's row in the order that all postings keep. Until the commit neither a flush nor another payout can
 * change it.
 */
function checkEarnings(earningsMicros: number, { amountMicros }: NewPayout): void {
  if (earningsMicros >= 0) return;
  const payable = Math.max(earningsMicros + amountMicros, 0);
  throw new ApiError('conflict', `amount: only ${formatUsd(payable)} USD are payable.`, {
    fields: { payable: microsToUsd(payable) },
  });
}
