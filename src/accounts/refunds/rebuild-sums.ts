import type { PostgresSession } from '../../platform/postgres.ts';

/** How many rows of `refund_hours` were wrong and removed, and how many were written. A corrected row counts as both. */
export type RebuiltRefunds = { readonly removed: number; readonly written: number };

const COLUMNS = [
  ...['key_id', 'hour', 'service_id', 'account_id', 'provider_id'],
  ...['refunds', 'amount', 'fees', 'whole', 'whole_succeeded'],
];
const columnsOf = (alias: string): string => COLUMNS.map((name) => `${alias}.${name}`).join(', ');

/** What `refund_hours` must contain. */
const RIGHT = `
  SELECT key_id, date_trunc('hour', call_at, 'UTC') AS hour, service_id, account_id, provider_id, count(*) AS refunds,
         sum(amount)::bigint AS amount, sum(fee)::bigint AS fees, count(*) FILTER (WHERE whole) AS whole,
         count(*) FILTER (WHERE whole AND succeeded) AS whole_succeeded
  FROM refunds GROUP BY 1, 2, 3, 4, 5`;

const REMOVE_WRONG = `
WITH removed AS (
  DELETE FROM refund_hours AS h WHERE NOT EXISTS (
    SELECT FROM (${RIGHT}) AS r WHERE (${columnsOf('r')}) = (${columnsOf('h')}))
  RETURNING 1
) SELECT count(*)::int AS rows FROM removed`;

const WRITE_MISSING = `
WITH written AS (
  INSERT INTO refund_hours (${COLUMNS.join(', ')}) ${RIGHT} ON CONFLICT DO NOTHING RETURNING 1
) SELECT count(*)::int AS rows FROM written`;

/**
 * Rebuilds the sums of refunds from `refunds`, and changes the rows that are wrong. No refund is stored meanwhile: this waits for
 * transactions that have stored one, and later transactions wait for this. Tested by test/roles/rebuild-sums.test.ts.
 */
export function rebuildRefundSums(session: PostgresSession): Promise<RebuiltRefunds> {
  return session.transaction(async () => {
    await session.query('LOCK TABLE refund_hours IN SHARE ROW EXCLUSIVE MODE');
    const [removed] = await session.query<{ rows: number }>(REMOVE_WRONG);
    const [written] = await session.query<{ rows: number }>(WRITE_MISSING);
    return { removed: removed?.rows ?? 0, written: written?.rows ?? 0 };
  });
}
