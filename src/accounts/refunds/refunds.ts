import { ApiError } from '../../errors.ts';
import type { MoneyTransactions, MoneyTx } from '../../ledger/history/fence.ts';
import { insertJournal, PLATFORM_ACCOUNT_ID, postEntries } from '../../ledger/posting.ts';
import { formatUsd, MAX_BALANCE_MICROS, microsToUsd } from '../../platform/money.ts';
import { sqlState, type Tx } from '../../platform/postgres.ts';
import { type Actor, recordAct } from '../audit.ts';
import { feeBackMicros } from './fee-back.ts';
import {
  addToSums,
  insertRefund,
  type Refund,
  type RefundedCall,
  selectByReference,
  selectRefundedCall,
  selectRefundedMicros,
  storeCarried,
} from './refund-sql.ts';

/** How long after a call its money can be given back. */
export const REFUND_DAYS = 90;
const DAY_SECONDS = 86_400;

/** Who gives a refund: the provider of the call, or an operator. */
type Giver = { readonly isOperator: boolean; readonly accountId: string };

type WantedRefund = {
  readonly usageId: string;
  /** Null: all that is left of the call's amount. */
  readonly amountMicros: number | null;
  readonly reason: string;
  readonly reference: string;
};

/** The refund, and the credit that must now be applied to the wallet. */
export type StoredRefund = {
  readonly refund: Refund;
  readonly created: boolean;
  readonly budgets: string | null;
};

const UNIQUE_VIOLATION = '23505';

/**
 * Gives some or all of a call's amount back in one transaction. It writes the row of the refund, one journal row (the buyer's
 * wallet up; the provider's earnings and the platform's fees down) and the numbered credit for the wallet, and changes the sums and
 * what the call has spent of budgets. The caller must then apply the credit to the wallet in Redis.
 *
 * @param call read before the transaction; it tells which accounts are concerned
 * @returns the refund, and whether it is new: with `created: false` it was stored before, with the same reference, call and amount. Null
 *   when the call has left the books meanwhile.
 * @throws ApiError `conflict` when the reference belongs to another refund, when nothing, or less than the amount, is left of the call,
 *   when it is too old, when an account is closed or its wallet full, or when the provider's earnings do not cover it
 */
export async function storeRefund(
  money: MoneyTransactions,
  call: RefundedCall,
  wanted: WantedRefund,
  giver: Giver,
  by: Actor,
): Promise<StoredRefund | null> {
  // The provider's earnings are in Postgres only.
  const store = () => money.begin([call.accountId], (tx) => storeInTransaction(tx, call, wanted, giver, by));
  try {
    return await store();
  } catch (error) {
    if (sqlState(error) !== UNIQUE_VIOLATION) throw error;
    // At the same moment a call between other accounts was refunded under this reference. That refund is committed by now, so the
    // second attempt finds it.
    return store();
  }
}

async function storeInTransaction(
  tx: MoneyTx,
  { accountId, providerId }: RefundedCall,
  wanted: WantedRefund,
  giver: Giver,
  by: Actor,
): Promise<StoredRefund | null> {
  // Admits one refund at a time for each buyer and each provider, and so for each call. The accounts are locked in the order of
  // their ids, so that no two refunds wait for each other.
  const accounts = await tx<{ id: string; status: string; creditSeq: number }[]>`
    SELECT id, status, credit_seq AS "creditSeq" FROM accounts WHERE id = ANY(${[accountId, providerId]}::uuid[])
    ORDER BY id FOR NO KEY UPDATE`;
  const call = await selectRefundedCall(tx, wanted.usageId);
  if (call === null) return null;
  const givenBy = giver.isOperator ? PLATFORM_ACCOUNT_ID : giver.accountId;
  const stored = await selectByReference(tx, givenBy, wanted.reference);
  if (stored !== null) return { refund: sameAs(stored, wanted), created: false, budgets: call.budgets };
  if (accounts.some(({ status }) => status === 'closed')) {
    throw new ApiError(
      'conflict',
      'The call cannot be refunded: the account of its buyer or of its provider is closed.',
    );
  }
  const totalBeforeMicros = await selectRefundedMicros(tx, call.usageId);
  const amountMicros = amountOf(call, totalBeforeMicros, wanted.amountMicros);
  await checkWallet(tx, call.accountId, amountMicros);
  const totalMicros = totalBeforeMicros + amountMicros;
  const feeBack = (micros: number): number => feeBackMicros(call.feeMicros, micros, call.amountMicros);
  const creditSeq = (accounts.find(({ id }) => id === accountId)?.creditSeq as number) + 1;
  const refund = {
    usageId: call.usageId,
    accountId,
    providerId,
    creditSeq,
    amountMicros,
    feeMicros: feeBack(totalMicros) - feeBack(totalBeforeMicros),
    totalBeforeMicros,
    isWhole: totalMicros === call.amountMicros,
    reason: wanted.reason,
    reference: wanted.reference,
    givenBy,
  };
  const journalId = await insertJournal(tx, 'refund', wanted.reference);
  const createdAt = await insertRefund(tx, journalId, refund, call);
  await post(tx, journalId, refund);
  await addToSums(tx, journalId);
  const payableMicros = await selectPayable(tx, providerId);
  // The last micro-dollar may be all fee. It takes nothing out of earnings, whatever they are.
  const takesEarnings = providerPart(refund) > 0;
  if (!giver.isOperator && takesEarnings && payableMicros < 0) throw tooLittle(refund, payableMicros);
  const carriedMicros = Math.min(providerPart(refund), Math.max(0, -payableMicros));
  if (carriedMicros > 0) await storeCarried(tx, journalId, carriedMicros);
  const stands = { ...refund, carriedMicros, createdAt };
  if (giver.isOperator) await recordRefund(tx, stands, payableMicros, by);
  return { refund: stands, created: true, budgets: call.budgets };
}

/** @throws ApiError `conflict` when the stored refund is not the one that is wanted */
function sameAs(stored: Refund, { usageId, amountMicros }: WantedRefund): Refund {
  const isSame =
    stored.usageId === usageId && (amountMicros === null ? stored.isWhole : stored.amountMicros === amountMicros);
  if (isSame) return stored;
  throw new ApiError('conflict', 'reference: belongs to a refund of another call or amount.');
}

/** @throws ApiError `conflict` when the call is too old, or has less left than is wanted */
function amountOf(call: RefundedCall, refundedMicros: number, wantedMicros: number | null): number {
  const left = call.amountMicros - refundedMicros;
  if (left === 0) throw new ApiError('conflict', nothingLeft(call), { fields: { left: 0 } });
  if (call.ageSeconds > REFUND_DAYS * DAY_SECONDS) {
    throw new ApiError('conflict', `The call is too old: a refund is possible within ${REFUND_DAYS} days.`);
  }
  if (wantedMicros !== null && wantedMicros > left) {
    throw new ApiError('conflict', `amount: only ${formatUsd(left)} USD of the call are left to refund.`, {
      fields: { left: microsToUsd(left) },
    });
  }
  return wantedMicros ?? left;
}

const nothingLeft = ({ amountMicros }: RefundedCall): string =>
  amountMicros === 0
    ? 'The call cost nothing: there is nothing to give back.'
    : 'The whole amount of the call has already been given back.';

/** Only credits and refunds raise a balance, and the lock on the account keeps others out until the commit. */
async function checkWallet(tx: Tx, accountId: string, amountMicros: number): Promise<void> {
  const rows = await tx<object[]>`
    SELECT FROM balances WHERE account_id = ${accountId} AND ledger = 'wallet'
    AND balance > ${MAX_BALANCE_MICROS - amountMicros}::bigint`;
  if (rows.length === 0) return;
  throw new ApiError('conflict', `amount: the buyer's balance would be above ${formatUsd(MAX_BALANCE_MICROS)} USD.`);
}

/** The part that comes out of the provider's earnings. */
const providerPart = ({ amountMicros, feeMicros }: Pick<Refund, 'amountMicros' | 'feeMicros'>): number =>
  amountMicros - feeMicros;

type Posted = Pick<Refund, 'accountId' | 'providerId' | 'amountMicros' | 'feeMicros'>;

async function post(tx: MoneyTx, journalId: number, refund: Posted): Promise<void> {
  const { accountId, providerId, amountMicros, feeMicros } = refund;
  const entries = [
    { accountId, ledger: 'wallet', amountMicros },
    { accountId: providerId, ledger: 'earnings', amountMicros: -providerPart(refund) },
    { accountId: PLATFORM_ACCOUNT_ID, ledger: 'fees', amountMicros: -feeMicros },
  ] as const;
  // If a part is zero, its row need not be locked.
  await postEntries(
    tx,
    journalId,
    entries.filter((entry) => entry.amountMicros !== 0),
  );
}

/** What the platform owes the provider. Read after the change, so that nothing else can change it until the commit. */
async function selectPayable(tx: Tx, providerId: string): Promise<number> {
  const rows = await tx<{ balance: number }[]>`
    SELECT balance FROM balances WHERE account_id = ${providerId} AND ledger = 'earnings'`;
  return rows[0]?.balance ?? 0;
}

function tooLittle(refund: Posted, payableMicros: number): ApiError {
  const payable = Math.max(payableMicros + providerPart(refund), 0);
  return new ApiError(
    'conflict',
    `amount: ${formatUsd(providerPart(refund))} USD of it would come out of earnings, but only ${formatUsd(payable)} USD are payable.`,
    { fields: { payable: microsToUsd(payable) } },
  );
}

async function recordRefund(tx: Tx, refund: Refund, payableMicros: number, by: Actor): Promise<void> {
  const { usageId, amountMicros, totalBeforeMicros, carriedMicros, reference, reason } = refund;
  await recordAct(tx, {
    ...by,
    action: 'call.refund',
    subjectType: 'call',
    subjectId: usageId,
    before: { refunded: microsToUsd(totalBeforeMicros), payable: microsToUsd(payableMicros + providerPart(refund)) },
    after: {
      refunded: microsToUsd(totalBeforeMicros + amountMicros),
      payable: microsToUsd(payableMicros),
      amount: microsToUsd(amountMicros),
      carried: microsToUsd(carriedMicros),
      reference,
      reason,
    },
  });
}
