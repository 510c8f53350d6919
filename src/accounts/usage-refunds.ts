import type { Tx } from '../platform/postgres.ts';
import { divideRange } from './divided-range.ts';
import { isOfSums } from './key-scope.ts';
import { within } from './sums-sql.ts';
import type { UsageFilter } from './usage-sql.ts';

/**
 * What came back of the matching calls after they had been charged, in micro-USD by the day (YYYY-MM-DD, UTC) of the call. Null:
 * there are no such sums, as of a tag or of a part of an hour.
 */
export async function selectRefundedDays(
  timed: () => Promise<Tx>,
  filter: UsageFilter,
): Promise<ReadonlyMap<string, number> | null> {
  if (filter.tag !== null || divideRange(filter).rest.length > 0) return null;
  const { scope, serviceId } = filter;
  const tx = await timed();
  const rows = await tx<{ day: string; micros: number }[]>`
    SELECT to_char(hour AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, sum(amount)::bigint AS micros FROM refund_hours
    WHERE ${isOfSums(tx, scope)} ${within(tx, 'hour', filter)} ${serviceId === null ? tx`` : tx`AND service_id = ${serviceId}`}
    GROUP BY 1`;
  return new Map(rows.map(({ day, micros }) => [day, micros]));
}
