import { amountSumsOf, latencySumsOf } from '../../../src/ledger/rollups/days-sql.ts';
import { KEY_COLUMNS, keySumsOf, SERVICE_COLUMNS, serviceSumsOf } from '../../../src/ledger/rollups/hours-sql.ts';
import type { Tx } from '../../../src/platform/postgres.ts';

/** A row of the hours that is not as `calls` says: missing from the table, too much in it, or with other sums. */
export type HourDifference = { readonly table: string; readonly isStored: boolean; readonly row: unknown };

const differences = (table: string, columns: string, sums: string): string => `
  SELECT '${table}' AS "table", is_stored AS "isStored", row FROM (
    (SELECT true AS is_stored, to_jsonb(s) AS row FROM (SELECT ${columns} FROM ${table}) AS s
     EXCEPT ALL SELECT true, to_jsonb(c) FROM (SELECT ${columns} FROM (${sums}) AS x) AS c)
    UNION ALL
    (SELECT false, to_jsonb(c) FROM (SELECT ${columns} FROM (${sums}) AS x) AS c
     EXCEPT ALL SELECT false, to_jsonb(s) FROM (SELECT ${columns} FROM ${table}) AS s)
  ) AS d`;

const COMPARE_SQL = `
${differences('service_hours', SERVICE_COLUMNS, serviceSumsOf('calls'))}
UNION ALL
${differences('key_hours', KEY_COLUMNS, keySumsOf('calls'))}
UNION ALL
${differences('service_latencies', 'service_id, day, bucket, calls', latencySumsOf('calls'))}
UNION ALL
${differences('service_amounts', 'service_id, day, amount, calls', amountSumsOf('calls'))}`;

/**
 * Computes the hours from `calls` again, and compares: one statement, so one snapshot. It reads every call. Empty when `isRolledUp`
 * and all is right.
 */
export async function compareHours(sql: Tx): Promise<HourDifference[]> {
  return (await sql.unsafe(COMPARE_SQL, [])) as unknown as HourDifference[];
}
