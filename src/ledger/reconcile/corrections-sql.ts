// The SQL of corrections. Tested by test/ledger/reconcile/corrector.test.ts.
import type { Sql, Tx } from '../../platform/postgres.ts';
import type { MoneyTx } from '../history/fence.ts';
import { insertJournal, type MovedBalance, movedBalance, PLATFORM_ACCOUNT_ID, postEntries } from '../posting.ts';
import type { BudgetDrift, FreeDrift } from './identity.ts';

/** An operator's decision about an account whose wallet does not agree with the books. */
export type NewCorrection = {
  readonly accountId: string;
  /** The store that is right: the other one is changed. */
  readonly believe: 'postgres' | 'redis';
  readonly reason: string;
  /** The operator's own id of the decision, unique among all corrections. */
  readonly reference: string;
};

export type Correction = NewCorrection & {
  readonly madeBy: string;
  /** The amount by which the wallet exceeded the books. */
  readonly driftMicros: number;
  readonly freeDrifts: readonly FreeDrift[];
  readonly budgetDrifts: readonly BudgetDrift[];
  /** Number of holds of stored calls that were removed. */
  readonly storedHolds: number;
  readonly createdAt: Date;
};

/** What the correction changed: the books, by a journal row, or the wallet, by a repair. */
export type Change = { readonly journalId: number } | { readonly repairId: number };

const columns = (sql: Sql | Tx) => sql`
  c.account_id AS "accountId", c.believe, c.reason, c.reference, c.made_by AS "madeBy", c.drift AS "driftMicros",
  c.free_calls AS "freeDrifts", c.budgets AS "budgetDrifts", c.stored_holds AS "storedHolds", c.created_at AS "createdAt"`;
const IS_MADE = `(c.journal_id IS NOT NULL OR EXISTS (SELECT FROM repairs r WHERE r.id = c.repair_id AND r.state = 'done'))`;

/** The correction with this reference. `isMade` is false if its repair was left, or may have been. Null: there is none. */
export async function selectCorrection(
  tx: Tx,
  reference: string,
): Promise<(Correction & { readonly isMade: boolean }) | null> {
  const [row] = await tx<(Correction & { isMade: boolean })[]>`
    SELECT ${columns(tx)}, ${tx.text(IS_MADE)} AS "isMade" FROM corrections c WHERE c.reference = ${reference}`;
  return row ?? null;
}

/**
 * Locks the row until the transaction ends. A lock is written to the log. So this commit waits until the synchronous standby has
 * the correction too, even if the commit that stored it did not.
 */
export async function lockCorrection(tx: Tx, reference: string): Promise<void> {
  await tx`SELECT FROM corrections WHERE reference = ${reference} FOR NO KEY UPDATE`;
}

/**
 * Stores a correction together with what it changes. One with the same reference whose repair was left is tried again: its row is
 * replaced. Call it with the shard's flush lock.
 *
 * @returns null when the reference belongs to another correction
 */
export async function storeCorrection(
  tx: Tx,
  made: Omit<Correction, 'createdAt'>,
  change: Change,
): Promise<{ readonly createdAt: Date; readonly isNew: boolean } | null> {
  const [journalId, repairId] = 'journalId' in change ? [change.journalId, null] : [null, change.repairId];
  // A row that was updated has the number of the transaction that did it in `xmax`.
  const [row] = await tx<{ createdAt: Date; isNew: boolean }[]>`
    INSERT INTO corrections AS c (reference, account_id, believe, reason, made_by, drift, free_calls, budgets, stored_holds, journal_id, repair_id)
    VALUES (${made.reference}, ${made.accountId}, ${made.believe}, ${made.reason}, ${made.madeBy}, ${made.driftMicros},
            ${JSON.stringify(made.freeDrifts)}::text::json, ${JSON.stringify(made.budgetDrifts)}::text::json, ${made.storedHolds}, ${journalId}, ${repairId})
    ON CONFLICT (reference) DO UPDATE
      SET made_by = excluded.made_by, drift = excluded.drift, free_calls = excluded.free_calls, budgets = excluded.budgets,
          stored_holds = excluded.stored_holds, repair_id = excluded.repair_id, created_at = now()
      WHERE c.account_id = excluded.account_id AND c.believe = excluded.believe AND c.reason = excluded.reason
        AND c.repair_id IN (SELECT id FROM repairs WHERE state = 'left')
    RETURNING c.created_at AS "createdAt", c.xmax = 0 AS "isNew"`;
  return row ?? null;
}

/**
 * Makes the books follow the wallet: one journal row moves the drift from the platform's cash, and free calls and budgets are set
 * to the wallet's counts. The row has no number that wallets count, so no wallet applies it.
 *
 * @returns the journal row, and the balance in the books if money was moved
 */
export async function correctBooks(
  tx: MoneyTx,
  { accountId, reference, driftMicros, freeDrifts, budgetDrifts }: Omit<Correction, 'createdAt'>,
): Promise<{ readonly journalId: number; readonly settled: MovedBalance | null }> {
  const journalId = await insertJournal(tx, 'correction', reference);
  let settled: MovedBalance | null = null;
  if (driftMicros !== 0) {
    const balanceAfter = await postEntries(tx, journalId, [
      { accountId, ledger: 'wallet', amountMicros: driftMicros },
      { accountId: PLATFORM_ACCOUNT_ID, ledger: 'cash', amountMicros: -driftMicros },
    ]);
    settled = movedBalance('settled', balanceAfter(accountId, 'wallet'), driftMicros);
  }
  const changes = freeDrifts.map(({ used, expected }) => used - expected);
  await tx`
    INSERT INTO free_usage AS f (account_id, service_id, used)
    SELECT ${accountId}, service_id, change
    FROM unnest(${freeDrifts.map(({ serviceId }) => serviceId)}::uuid[], ${changes}::int[]) AS t (service_id, change)
    ON CONFLICT (account_id, service_id) DO UPDATE SET used = f.used + excluded.used`;
  const spent = budgetDrifts.map(({ spentMicros, expectedMicros }) => spentMicros - expectedMicros);
  await tx`
    INSERT INTO budget_usage AS b (account_id, key_id, period, spent)
    SELECT ${accountId}, key_id, period, change
    FROM unnest(${budgetDrifts.map(({ keyId }) => keyId)}::text[], ${budgetDrifts.map(({ period }) => period)}::bigint[],
                ${spent}::bigint[]) AS t (key_id, period, change)
    ON CONFLICT (account_id, key_id, period) DO UPDATE SET spent = b.spent + excluded.spent`;
  return { journalId, settled };
}

/** The corrections that were made, youngest first. */
export async function selectCorrections(sql: Sql, limit: number): Promise<readonly Correction[]> {
  return sql<Correction[]>`
    SELECT ${columns(sql)} FROM corrections c WHERE ${sql.text(IS_MADE)} ORDER BY c.created_at DESC LIMIT ${limit}`;
}
