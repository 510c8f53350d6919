// The SQL of refunds of calls. Tested by test/accounts/refunds/refunds.test.ts.
import type { MoneyTx } from '../../ledger/history/fence.ts';
import { PLATFORM_ACCOUNT_ID } from '../../ledger/posting.ts';
import { classOf } from '../../ledger/rollups/call-class.ts';
import type { Settlement } from '../../ledger/usage-event.ts';
import { dayOfId } from '../../platform/ids.ts';
import type { Sql, Tx } from '../../platform/postgres.ts';
import { microsOf, type Position, timeOf } from '../cursor.ts';
import type { Listed, MovementFilter } from '../money-lists-sql.ts';

/** Some or all of a call's amount, given back. Stored once per reference and never changed. Amounts in micro-USD. */
export type Refund = {
  readonly usageId: string;
  /** The buyer's account. */
  readonly accountId: string;
  readonly providerId: string;
  /** Number of the credit that brings it into the buyer's wallet. */
  readonly creditSeq: number;
  readonly amountMicros: number;
  /** The part that the platform gave back of its fee. */
  readonly feeMicros: number;
  /** The part that the provider's earnings did not cover. */
  readonly carriedMicros: number;
  /** What earlier refunds of the call had given back. */
  readonly totalBeforeMicros: number;
  /** Whether all of the call's amount has now been given back. */
  readonly isWhole: boolean;
  readonly reason: string;
  readonly reference: string;
  readonly givenBy: string;
  readonly createdAt: Date;
};

/** What a refund must know about its call. */
export type RefundedCall = {
  readonly usageId: string;
  readonly accountId: string;
  readonly providerId: string;
  readonly serviceId: string;
  readonly keyId: string;
  readonly amountMicros: number;
  readonly feeMicros: number;
  readonly budgets: string | null;
  readonly createdAt: Date;
  readonly ageSeconds: number;
} & Pick<Settlement, 'outcome' | 'status'>;

/** The columns of a `Refund`, of `refunds AS r`. */
const COLUMNS = `
  r.usage_id AS "usageId", r.account_id AS "accountId", r.provider_id AS "providerId", r.credit_seq AS "creditSeq",
  r.amount AS "amountMicros", r.fee AS "feeMicros", r.carried AS "carriedMicros", r.total_before AS "totalBeforeMicros",
  r.whole AS "isWhole", r.reason, r.reference, r.given_by AS "givenBy", r.created_at AS "createdAt"`;

/** The call, from the partition of its day. */
export async function selectRefundedCall(tx: Sql | Tx, usageId: string): Promise<RefundedCall | null> {
  const rows = await tx.anew<RefundedCall[]>`
    SELECT usage_id AS "usageId", account_id AS "accountId", provider_id AS "providerId", service_id AS "serviceId",
           key_id AS "keyId", amount AS "amountMicros", fee AS "feeMicros", budgets, created_at AS "createdAt", outcome, status,
           extract(epoch FROM now() - created_at)::float8 AS "ageSeconds"
    FROM calls WHERE day = ${dayOfId(usageId)} AND usage_id = ${usageId}`;
  return rows[0] ?? null;
}

export async function selectByReference(tx: Tx, givenBy: string, reference: string): Promise<Refund | null> {
  const rows = await tx<Refund[]>`
    SELECT ${tx.text(COLUMNS)} FROM refunds r WHERE r.given_by = ${givenBy} AND r.reference = ${reference}`;
  return rows[0] ?? null;
}

/** What refunds of the call have given back so far. */
export async function selectRefundedMicros(tx: Tx, usageId: string): Promise<number> {
  const rows = await tx<{ micros: number }[]>`
    SELECT coalesce(sum(amount), 0)::bigint AS micros FROM refunds WHERE usage_id = ${usageId}`;
  return rows[0]?.micros as number;
}

/** Stores the refund, and the numbered credit that brings it into the wallet. @returns when */
export async function insertRefund(
  tx: MoneyTx,
  journalId: number,
  refund: Omit<Refund, 'createdAt' | 'carriedMicros'>,
  call: RefundedCall,
): Promise<Date> {
  const { usageId, accountId, providerId, creditSeq, amountMicros, reason, reference, givenBy } = refund;
  const { serviceId, keyId, createdAt, budgets } = call;
  await tx`
    INSERT INTO credits (account_id, seq, amount, journal_id, budgets)
    VALUES (${accountId}, ${creditSeq}, ${amountMicros}, ${journalId}, ${budgets})`;
  await tx`UPDATE accounts SET credit_seq = ${creditSeq} WHERE id = ${accountId}`;
  const rows = await tx<{ createdAt: Date }[]>`
    INSERT INTO refunds (journal_id, usage_id, account_id, credit_seq, provider_id, service_id, key_id, call_at, succeeded, amount,
                         fee, total_before, whole, reason, given_by, reference)
    VALUES (${journalId}, ${usageId}, ${accountId}, ${creditSeq}, ${providerId}, ${serviceId}, ${keyId}, ${createdAt},
            ${classOf(call) === 'succeeded'}, ${amountMicros}, ${refund.feeMicros}, ${refund.totalBeforeMicros}, ${refund.isWhole},
            ${reason}, ${givenBy}, ${reference})
    RETURNING created_at AS "createdAt"`;
  return rows[0]?.createdAt as Date;
}

/**
 * Adds the refund of this journal row to the sums, then lowers what its call has spent of budgets. Call it after the balances have
 * moved, because a flush locks its rows in this order, too.
 */
export async function addToSums(tx: MoneyTx, journalId: number): Promise<void> {
  await tx.unsafe(ADD_SUMS_SQL, [journalId]);
  await tx.unsafe(LOWER_BUDGETS_SQL, [journalId]);
}

const ADD_SUMS_SQL = `
INSERT INTO refund_hours AS h (key_id, hour, service_id, account_id, provider_id, refunds, amount, fees, whole, whole_succeeded)
SELECT key_id, date_trunc('hour', call_at, 'UTC'), service_id, account_id, provider_id, 1, amount, fee, whole::int,
       (whole AND succeeded)::int
FROM refunds WHERE journal_id = $1
ON CONFLICT (key_id, hour, service_id) DO UPDATE SET
  refunds = h.refunds + excluded.refunds, amount = h.amount + excluded.amount, fees = h.fees + excluded.fees,
  whole = h.whole + excluded.whole, whole_succeeded = h.whole_succeeded + excluded.whole_succeeded`;

/** The rows exist: the flush that stored the call has added its amount to them. */
const LOWER_BUDGETS_SQL = `
INSERT INTO budget_usage AS b (account_id, key_id, period, spent)
SELECT c.account_id, split_part(part, '.', 1) AS key_id, split_part(part, '.', 2)::bigint AS period, -c.amount
FROM credits c CROSS JOIN LATERAL unnest(string_to_array(c.budgets, ',')) AS part
WHERE c.journal_id = $1 AND (c.account_id, c.seq) = (SELECT account_id, credit_seq FROM refunds WHERE journal_id = $1)
ORDER BY account_id, key_id, period
ON CONFLICT (account_id, key_id, period) DO UPDATE SET spent = b.spent + excluded.spent`;

export async function storeCarried(tx: MoneyTx, journalId: number, carriedMicros: number): Promise<void> {
  await tx`UPDATE refunds SET carried = ${carriedMicros} WHERE journal_id = ${journalId}`;
}

/** What the platform carries now. Nothing but refunds makes earnings negative. */
export async function selectCarriedMicros(tx: Sql | Tx): Promise<number> {
  const rows = await tx<{ micros: number }[]>`
    SELECT coalesce(-sum(balance), 0)::bigint AS micros FROM balances
    WHERE ledger = 'earnings' AND balance < 0 AND account_id IN (SELECT provider_id FROM refunds WHERE carried > 0)`;
  return rows[0]?.micros as number;
}

/** Who gave a refund, as the API names it. */
export const giverOf = ({ givenBy }: Pick<Refund, 'givenBy'>): 'provider' | 'operator' =>
  givenBy === PLATFORM_ACCOUNT_ID ? 'operator' : 'provider';

/** All refunds of a call, the oldest first. */
export async function selectRefundsOfCall(sql: Sql | Tx, usageId: string): Promise<readonly Refund[]> {
  return sql<Refund[]>`
    SELECT ${sql.text(COLUMNS)} FROM refunds r WHERE r.usage_id = ${usageId} ORDER BY r.total_before`;
}

type ListedRefund = Listed<Refund>;

/** Refunds of all calls, newest first. With an account in the filter: those of which it is the buyer or the provider. */
export async function selectRefunds(
  sql: Sql,
  { accountId, reference, fromMs, toMs }: MovementFilter,
  before: Position | null,
  limit: number,
): Promise<ListedRefund[]> {
  const rows = await sql<(Refund & { readonly micros: number; readonly journalId: number })[]>`
    SELECT ${sql.text(COLUMNS)}, ${microsOf(sql, sql`r.created_at`)} AS micros, r.journal_id AS "journalId"
    FROM refunds r WHERE true
      ${accountId === null ? sql`` : sql`AND (r.account_id = ${accountId} OR r.provider_id = ${accountId})`}
      ${reference === null ? sql`` : sql`AND r.reference = ${reference}`}
      ${fromMs === null ? sql`` : sql`AND r.created_at >= ${new Date(fromMs)}`}
      ${toMs === null ? sql`` : sql`AND r.created_at < ${new Date(toMs)}`}
      ${before === null ? sql`` : sql`AND (r.created_at, r.journal_id) < (${timeOf(sql, before.micros)}, ${before.rest}::bigint)`}
    ORDER BY r.created_at DESC, r.journal_id DESC LIMIT ${limit}`;
  return rows.map(({ micros, journalId, ...row }) => ({ ...row, position: { micros, rest: String(journalId) } }));
}
