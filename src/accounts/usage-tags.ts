import { MAX_TAGS } from '../ledger/rollups/tag-sums.ts';
import type { Tx } from '../platform/postgres.ts';
import { divideDays } from './divided-range.ts';
import { ADDED_UP, NAMED_SUMS, SUMS, type Sums, sumsOfCalls, within } from './sums-sql.ts';
import { type TimeRange, utcDay } from './time-range.ts';
import type { UsageFilter } from './usage-sql.ts';

// Sums by tag are of an account and a UTC day. They know neither keys nor services, so anyone who asks for one of these, or sees a part of
// the account only, has none; a tag then filters records. Nor are there any of the days before the horizon: they were dropped with
// the calls.

/** The sums of a tag; of the tag `other` those of all tags that have none. */
export type TagUsage = Sums & { readonly tag: string };

/** Whether there are sums by tag of what is asked for. */
export function hasTagSums(filter: UsageFilter): boolean {
  if (filter.scope.kind !== 'account' || filter.serviceId !== null) return false;
  // All tags of a begun day would be added up from its calls, which may be millions. Those of one tag are few among them.
  return filter.tag !== null || divideDays(filter).rest.length === 0;
}

/** The rows of an account in whole days. */
const tagDays = (tx: Tx, { scope }: UsageFilter, days: TimeRange | null, horizonMs: number | null) => tx`
  FROM tag_days WHERE ${scope.kind === 'account' ? tx`account_id = ${scope.accountId}` : tx`false`}
    ${days === null ? tx`AND false` : within(tx, 'day', days)}
    ${horizonMs === null ? tx`` : tx`AND day >= ${utcDay(horizonMs)}::date`}`;

/** Those that spent the most first, as many as a month may have: its tags with sums of their own, and `other`. */
export function selectTags(tx: Tx, filter: UsageFilter, horizonMs: number | null): Promise<TagUsage[]> {
  return tx<TagUsage[]>`
    SELECT tag, ${tx.text(NAMED_SUMS)} FROM (
      SELECT tag, ${tx.text(ADDED_UP)} ${tagDays(tx, filter, divideDays(filter).days, horizonMs)} GROUP BY tag
    ) AS t ORDER BY spent DESC, calls DESC, tag LIMIT ${MAX_TAGS + 1}`;
}

/** The days of one tag with calls, newest first. Begun days are added up from their calls. */
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
