import { microsToUsd } from '../../platform/money.ts';
import type { Sql, Tx } from '../../platform/postgres.ts';
import { type BudgetPeriod, nextPeriodMs, periodAt } from '../budget-period.ts';

/** A key's budget as it is stored. Micro-USD. */
export type StoredBudget = { readonly amount: number; readonly period: BudgetPeriod; readonly number: number };

/** A budget in its present period, as the API shows it. */
export type BudgetNow = {
  readonly amount: number;
  readonly period: BudgetPeriod;
  readonly spent: number;
  readonly remaining: number;
  readonly resets_at: string | null;
  readonly refused: number;
};

type Key = { readonly key_id: string; readonly account_id: string; readonly stored_budget: StoredBudget | null };

/** @returns what the budgets of these keys have left, by key. Counts calls that ended at least a second ago */
export async function selectBudgets(sql: Sql | Tx, keys: readonly Key[]): Promise<ReadonlyMap<string, BudgetNow>> {
  const nowMs = Date.now();
  const asked = keys.flatMap(({ key_id: keyId, account_id: accountId, stored_budget: budget }) =>
    budget === null ? [] : [{ keyId, accountId, budget, period: periodAt(budget.period, budget.number, nowMs) }],
  );
  if (asked.length === 0) return new Map();
  const rows = await sql<{ keyId: string; period: number; spent: number }[]>`
    SELECT DISTINCT ON (u.key_id) u.key_id AS "keyId", u.period, u.spent
    FROM unnest(${asked.map(({ accountId }) => accountId)}::uuid[], ${asked.map(({ keyId }) => keyId)}::text[],
                ${asked.map(({ period }) => period)}::bigint[]) AS k(account_id, key_id, period)
    JOIN budget_usage u ON u.account_id = k.account_id AND u.key_id = k.key_id AND u.period >= k.period
    ORDER BY u.key_id, u.period DESC`;
  const used = new Map(rows.map((row) => [row.keyId, row]));
  const refusals = await selectRefusals(
    sql,
    asked.map(({ keyId }) => keyId),
  );
  return new Map(
    asked.map(({ keyId, budget, period: present }) => {
      // Periods follow Redis's clock, which may be ahead of this one.
      const { period, spent } = used.get(keyId) ?? { period: present, spent: 0 };
      return [keyId, budgetNow(budget, period, spent, refusals.get(keyId))];
    }),
  );
}

type Refusals = { readonly resetsAt: Date | null; readonly calls: number };

/** By key, the calls that these budgets refused in the latest period in which they refused any (budget-refusals.ts). */
async function selectRefusals(sql: Sql | Tx, keyIds: readonly string[]): Promise<ReadonlyMap<string, Refusals>> {
  const rows = await sql<(Refusals & { keyId: string })[]>`
    SELECT key_id AS "keyId", CASE WHEN isfinite(resets_at) THEN resets_at END AS "resetsAt", calls
    FROM budget_refusals WHERE key_id = ANY(${keyIds}::text[])`;
  return new Map(rows.map((row) => [row.keyId, row]));
}

function budgetNow(
  { amount, period: kind }: StoredBudget,
  period: number,
  spent: number,
  refusals: Refusals | undefined,
): BudgetNow {
  const next = nextPeriodMs(kind, period);
  const isPresent = refusals !== undefined && (refusals.resetsAt?.getTime() ?? null) === next;
  return {
    amount: microsToUsd(amount),
    period: kind,
    spent: microsToUsd(spent),
    remaining: microsToUsd(Math.max(0, amount - spent)),
    resets_at: next === null ? null : new Date(next).toISOString(),
    refused: isPresent ? refusals.calls : 0,
  };
}
