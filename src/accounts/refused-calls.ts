import type { RefusedCall } from '../keys/balance-refusals.ts';
import type { Sql } from '../platform/postgres.ts';
import { isOfSums, type KeyScope } from './key-scope.ts';
import type { TimeRange } from './time-range.ts';

/** Maximum keys whose refused calls are reported. */
const MAX_KEYS = 10;

/** A key's last call that the balance did not cover. */
export type Refused = RefusedCall & {
  readonly label: string | null;
  readonly serviceName: string;
  readonly at: Date;
  readonly calls: number;
};

/** The last refused call of each key in the scope within a time range, newest first. */
export async function selectRefused(
  sql: Sql,
  { scope, serviceId, fromMs, toMs }: TimeRange & { readonly scope: KeyScope; readonly serviceId: string | null },
): Promise<readonly Refused[]> {
  return sql<Refused[]>`
    SELECT b.key_id AS "keyId", b.account_id AS "accountId", b.service_id AS "serviceId", b.required AS "requiredMicros",
           k.label, coalesce(s.name, '') AS "serviceName", b.refused_at AS at, b.calls
    FROM (
      SELECT * FROM balance_refusals WHERE ${isOfSums(sql, scope)} ${serviceId === null ? sql`` : sql`AND service_id = ${serviceId}`}
        ${fromMs === null ? sql`` : sql`AND refused_at >= ${new Date(fromMs)}`}
        ${toMs === null ? sql`` : sql`AND refused_at < ${new Date(toMs)}`}
      ORDER BY refused_at DESC, key_id LIMIT ${MAX_KEYS}
    ) AS b JOIN api_keys k ON k.key_id = b.key_id LEFT JOIN services s ON s.id = b.service_id
    ORDER BY b.refused_at DESC, b.key_id`;
}
