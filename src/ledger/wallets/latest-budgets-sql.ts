/**
 * What each key of an account has spent in the latest period that Postgres knows, by key: `{key_id: [period, spent]}`, or NULL. SQL
 * of a sub-select. It looks into the primary key of `budget_usage` once for each key that has rows, however many periods have
 * passed, and once for an account without rows.
 *
 * @param accountId  SQL
 */
export const latestBudgetsSql = (accountId: string): string => `(
  WITH RECURSIVE latest AS (
    (SELECT key_id, period, spent FROM budget_usage WHERE account_id = ${accountId}
     ORDER BY key_id DESC, period DESC LIMIT 1)
    UNION ALL
    SELECT next.* FROM latest CROSS JOIN LATERAL (
      SELECT b.key_id, b.period, b.spent FROM budget_usage b WHERE b.account_id = ${accountId} AND b.key_id < latest.key_id
      ORDER BY b.key_id DESC, b.period DESC LIMIT 1) AS next
  )
  SELECT json_object_agg(key_id, json_build_array(period, spent)) FROM latest)`;

/** The result of `latestBudgetsSql`. */
export type LatestBudgets = Readonly<Record<string, readonly [period: number, spent: number]>> | null;
