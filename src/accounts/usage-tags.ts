import { MAX_TAGS } from '../ledger/rollups/tag-sums.ts';
import type { Tx } from '../platform/postgres.ts';
import { divideDays } from './divided-range.ts';
import { ADDED_UP, NAMED_SUMS, SUMS, type Sums, sumsOfCalls, within } from './sums-sql.ts';
import { type TimeRange, utcDay } from './time-range.ts';
import type { UsageFilter } from './usage-sql.ts';

// Sums by tag are kept by account and UTC day, but neither by key nor by service. So there are none for a request that names a key
// or a service, or that may see only a part of the account; a tag then filters records. There are none for days before the horizon
// either: they were dropped with the calls.

/** The sums of a tag; for the tag `other`, those of all tags without sums of their own. */
export type TagUsage = Sums & { readonly tag: string };

/** Whether there are sums by tag for this filter. */
export function hasTagSums(filter: UsageFilter): boolean {
  if (filter.scope.kind !== 'account' || filter.serviceId !== null) return false;
  // For a partial day, all tags would have to be added up from its calls, of which there may be millions. The calls of a single tag
  // are few among them.
  return filter.tag !== null || divideDays(filter).rest.length === 0;
}

/** The rows of an account in whole days. */
const tagDays = (tx: Tx, { scope }: UsageFilter, days: TimeRange | null, horizonMs: number | null) => tx`
  FROM tag_days WHERE ${scope.kind === 'account' ? tx`account_id = ${scope.accountId}` : tx`false`}
    ${days === null ? tx`AND false` : within(tx, 'day', days)}
    ${horizonMs === null ? tx`` : tx`AND day >= ${utcDay(horizonMs)}::date`}`;

/** In descending order of money spent. At most as many as a month may have: its tags with sums of their own, and `other`. */
export function selectTags(tx: Tx, filter: UsageFilter, horizonMs: number | null): Promise<TagUsage[]> {
  return tx<TagUsage[]>`
    SELECT tag, ${tx.text(NAMED_SUMS)} FROM (
      SELECT tag, ${tx.text(ADDED_UP)} ${tagDays(tx, filter, divideDays(filter).days, horizonMs)} GROUP BY tag
    ) AS t ORDER BY spent DESC, calls DESC, tag LIMIT ${MAX_TAGS + 1}`;
}

/** The days with calls of one tag, newest first. Partial days are added up from their calls. */
export function selectTagDays(
  tx: Tx,
  filter: UsageFilter,
  horizonMs: number | null,
): Promise<(Sums & { readonly day: string })[]> {
  const { days, rest } = divideDays(filter);
  const ask = rest.length > 0 ? tx.anew : tx;
  const parts = [
    tx`SELECT day, ${tx.text(SUMS)} ${tagDays(tx, filter, days, horizonMs)} AND tag = ${filter.tag}`,
    ...rest.map((range) => {
      const ofCalls = sumsOfCalls(tx, { ...filter, ...range });
      return tx`UNION ALL SELECT day, ${tx.text(SUMS)} FROM (${ofCalls}) AS calls_of_day`;
    }),
  ];
  return ask<(Sums & { readonly day: string })[]>`
    SELECT to_char(day, 'YYYY-MM-DD') AS day, ${tx.text(NAMED_SUMS)} FROM (
      SELECT day, ${tx.text(ADDED_UP)} FROM (${parts}) AS parts GROUP BY day
    ) AS t ORDER BY t.day DESC`;
}
