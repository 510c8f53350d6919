import { ApiError } from '../errors.ts';
import { type MoneyTransactions, type MoneyTx, refusalByFence } from '../ledger/history/fence.ts';
import type { DebitWallets } from '../ledger/wallets/debit-wallets.ts';
import { type Debit, debitColumns } from '../ledger/wallets/debits-sql.ts';
import { formatUsd, microsToUsd } from '../platform/money.ts';
import { sqlState } from '../platform/postgres.ts';
import { type Actor, recordBegin } from './audit.ts';

type NewDebit = Pick<Debit, 'accountId' | 'amountMicros' | 'reference' | 'reason'>;

/** Lets the wallet decide about a begun debit, and stores the outcome. */
export type DebitCarrier = Pick<DebitWallets, 'carryOut'>;

const UNIQUE_VIOLATION = '23505';
/**
 * How many other debits of the account, begun by other requests, one request ends before its own. More of them indicate a fault.
 */
const MAX_OTHERS = 5;

/**
 * Takes money out of a wallet: begins the debit in Postgres, lets the wallet in Redis decide, and stores the outcome. If this
 * process dies in between, or a store is away, the writer ends the debit; a repeated request ends it, too.
 *
 * @returns the debit, and whether it is new: with `created: false` it was taken before, with the same reference, account and
 *   amount. Null when there is no such account.
 * @throws ApiError `conflict` when the reference belongs to a debit of another account or amount, or when the wallet has less
 *   than the amount. In the second case nothing was taken, and the same reference may be sent again. `unavailable` when the fence refused
 *   it: nothing was begun. After any other error the debit may have begun
 */
export async function makeDebit(
  money: MoneyTransactions,
  carrier: DebitCarrier,
  wanted: NewDebit,
  by: Actor,
): Promise<{ readonly debit: Debit; readonly created: boolean } | null> {
  for (let others = 0; others <= MAX_OTHERS; others++) {
    const debit = await beginDebit(money, wanted, by);
    if (debit === null) return null;
    if (debit.state === 'taken') return { debit, created: false };
    const ended = await carrier.carryOut(debit);
    if (debit.reference !== wanted.reference) continue;
    if (ended.debit.state === 'taken') return { debit: ended.debit, created: ended.isEndedHere };
    const balance = formatUsd(ended.balanceMicros);
    throw new ApiError('conflict', `amount: the wallet has only ${balance} USD apart from its holds.`, {
      fields: { balance: microsToUsd(ended.balanceMicros) },
    });
  }
  throw new Error(`the account ${wanted.accountId} had another debit under way at each of ${MAX_OTHERS + 1} attempts`);
}

/**
 * @returns the debit of this reference, which may have been taken before; or another debit of the account that must end first; or
 *   null when there is no such account
 */
async function beginDebit(money: MoneyTransactions, wanted: NewDebit, by: Actor): Promise<Debit | null> {
  const begin = () => money.begin([wanted.accountId], (tx) => beginInTransaction(tx, wanted, by));
  try {
    return await begin();
  } catch (error) {
    // When the same error comes from carrying the debit out, it does not tell what the wallet did.
    const refusal = refusalByFence(error);
    if (refusal !== null) throw refusal;
    if (sqlState(error) !== UNIQUE_VIOLATION) throw error;
    // At the same moment a debit of another account began with this reference. That debit is committed by now, so the second
    // attempt finds it and throws `conflict`.
    return begin();
  }
}

async function beginInTransaction(tx: MoneyTx, wanted: NewDebit, by: Actor): Promise<Debit | null> {
  const { accountId, amountMicros, reference, reason } = wanted;
  // The lock on the account lets its debits begin one at a time. NO KEY UPDATE does not block inserts that merely refer to it.
  const accounts = await tx<object[]>`SELECT FROM accounts WHERE id = ${accountId} FOR NO KEY UPDATE`;
  if (accounts.length === 0) return null;
  const [stored] = await tx<Debit[]>`
    SELECT ${debitColumns(tx)} FROM debits d WHERE d.reference = ${reference} AND d.state <> 'refused'`;
  if (stored !== undefined) {
    if (stored.accountId === accountId && stored.amountMicros === amountMicros) return stored;
    throw new ApiError('conflict', 'reference: belongs to a debit of another account or amount.');
  }
  const [last] = await tx<Debit[]>`
    SELECT ${debitColumns(tx)} FROM debits d WHERE d.account_id = ${accountId} ORDER BY d.seq DESC LIMIT 1`;
  if (last?.state === 'begun') return last;
  const totalBefore = (last?.totalBeforeMicros ?? 0) + (last?.state === 'taken' ? last.amountMicros : 0);
  if (totalBefore + amountMicros > Number.MAX_SAFE_INTEGER) {
    throw new ApiError('conflict', 'amount: the debits of this account would sum to more than can be kept exactly.');
  }
  const act = { subjectType: 'account', subjectId: accountId, before: null } as const;
  const actId = await recordBegin(tx, {
    ...by,
    action: 'account.debit',
    ...act,
    after: { amount: microsToUsd(amountMicros), reference, reason },
  });
  const [begun] = await tx<Debit[]>`
    INSERT INTO debits AS d (account_id, seq, amount, total_before, reference, reason, act_id)
    VALUES (${accountId}, ${(last?.seq ?? 0) + 1}, ${amountMicros}, ${totalBefore}, ${reference}, ${reason}, ${actId})
    RETURNING ${debitColumns(tx)}`;
  return begun as Debit;
}
