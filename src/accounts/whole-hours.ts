import { LAST_MS, type TimeRange } from './time-range.ts';

const HOUR_MS = 3_600_000;

/** A time range in two kinds of parts: whole hours, whose sums are stored, and the rest, whose calls have to be read. */
export type HoursAndRest = { readonly hours: TimeRange | null; readonly rest: readonly TimeRange[] };

/**
 * Divides a range. The rest is at most the begun hour at each end: with the highest rate limit, 18 000 calls of a key in each.
 *
 * Tested by test/accounts/usage-sums.test.ts.
 *
 * @param isRolledUp whether the sums by hour have all calls (`isRolledUp` of the ledger). While they do not, everything is rest
 */
export function divideByHours(range: TimeRange, isRolledUp: boolean): HoursAndRest {
  if (!isRolledUp) return { hours: null, rest: [range] };
  const fromMs = range.fromMs === null ? null : Math.ceil(range.fromMs / HOUR_MS) * HOUR_MS;
  const toMs = range.toMs === null ? null : Math.floor(range.toMs / HOUR_MS) * HOUR_MS;
  // The hour after `LAST_MS` cannot be sent to Postgres.
  if (fromMs !== null && fromMs >= (toMs ?? LAST_MS)) return { hours: null, rest: [range] };
  const ends = [
    { fromMs: range.fromMs, toMs: fromMs },
    { fromMs: toMs, toMs: range.toMs },
  ];
  return { hours: { fromMs, toMs }, rest: ends.filter((end) => end.fromMs !== end.toMs) };
}
