import { hoursSince } from '../ledger/rollups/recent-hours.ts';
import type { Tx } from '../platform/postgres.ts';
import { divideRange } from './divided-range.ts';
import { isOfSums } from './key-scope.ts';
import { type ListedSums, MAX_KEYS_OF_DAY } from './listed-sums.ts';
import { ADDED_UP, NAMED_SUMS, SUMS, type Sums, within } from './sums-sql.ts';
import type { UsageFilter } from './usage-sql.ts';
import { hasTagSums } from './usage-tags.ts';

/** Maximum pairs of a key and a service whose hours are read: 36 000 rows of three days, about 50 ms. An account may have a million. */
const MAX_PAIRS = 500;

/** The sums of one hour. */
export type HourUsage = Sums & {
  readonly hour: Date;
  /** As `DayUsage` has them. */
  readonly byKey: readonly (Sums & { readonly keyId: string })[];
};

/**
 * The hours with calls, newest first, while all calls that match are of the last days. Null: they are not, or there are no such sums, as of a
 * tag or of a part of an hour, or too many to read.
 */
export async function selectHours(
  timed: () => Promise<Tx>,
  filter: UsageFilter,
  { byDay, byKey, byService }: ListedSums,
  nowMs = Date.now(),
): Promise<readonly HourUsage[] | null> {
  const firstMs = hoursSince(byDay, nowMs);
  const isOfTag = filter.tag !== null && hasTagSums(filter);
  if (firstMs === null || isOfTag || divideRange(filter).rest.length > 0) return null;
  if (byKey.length * byService.length > MAX_PAIRS) return null;
  const { scope, serviceId, toMs } = filter;
  const range = { fromMs: Math.max(firstMs, filter.fromMs ?? firstMs), toMs };
  const tx = await timed();
  const most = byKey.slice(0, MAX_KEYS_OF_DAY).map(({ keyId }) => keyId);
  const rows = await tx<(Sums & { readonly hour: Date; readonly keyId: string | null })[]>`
    WITH of_keys AS MATERIALIZED (
      SELECT hour, key_id, ${tx.text(ADDED_UP)} FROM key_hours
      WHERE ${isOfSums(tx, scope)} ${within(tx, 'hour', range)} ${serviceId === null ? tx`` : tx`AND service_id = ${serviceId}`}
      GROUP BY hour, key_id
    )
    SELECT hour, key_id AS "keyId", ${tx.text(NAMED_SUMS)} FROM (
      SELECT hour, NULL AS key_id, ${tx.text(ADDED_UP)} FROM of_keys GROUP BY hour
      UNION ALL SELECT hour, key_id, ${tx.text(SUMS)} FROM of_keys WHERE key_id = ANY(${most}::text[])
    ) AS t
    ORDER BY hour DESC, key_id IS NOT NULL, spent DESC, calls DESC, key_id`;
  const hours: (HourUsage & { byKey: (Sums & { readonly keyId: string })[] })[] = [];
  for (const { keyId, ...sums } of rows) {
    if (keyId === null) hours.push({ ...sums, byKey: [] });
    else hours.at(-1)?.byKey.push({ ...sums, keyId });
  }
  return hours;
}
