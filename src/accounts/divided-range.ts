import { ApiError } from '../errors.ts';
import { LAST_MS, type TimeRange } from './time-range.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/**
 * Refuses a range that begins or ends within an hour whose calls may have been dropped: the sum of the whole hour is known, but not
 * that of a part. This includes the first hour that is kept, since some of its calls may have an id of the day before.
 *
 * @param horizonMs the first day that is kept (`readHorizonMs`)
 * @throws ApiError `invalid_request` naming the parameter
 */
export function refusePartsOfDropped(range: TimeRange, horizonMs: number | null): void {
  if (horizonMs === null) return;
  const firstMs = horizonMs + HOUR_MS;
  for (const [name, ms] of [['from', range.fromMs] as const, ['to', range.toMs] as const]) {
    if (ms === null || ms >= firstMs || ms % HOUR_MS === 0) continue;
    const message = `${name}: must be a whole hour (UTC) if it is before ${new Date(firstMs).toISOString()}, because older calls are kept only as sums by hour.`;
    throw new ApiError('invalid_request', message);
  }
}

/** A time range in parts: whole days and whole hours, whose sums are stored, and the rest, whose calls must be read one by one. */
export type DividedRange = {
  readonly days: TimeRange | null;
  /** Before the first whole day, and after the last one. */
  readonly hours: readonly TimeRange[];
  /** At most the partial hour at each end. At the highest rate limit, a key makes 18 000 calls in an hour. */
  readonly rest: readonly TimeRange[];
};

/** Tested by test/accounts/usage-sums.test.ts. */
export function divideRange(range: TimeRange): DividedRange {
  const { whole: days, ends } = divide(range, DAY_MS);
  const divided = ends.map((end) => divide(end, HOUR_MS));
  return { days, hours: divided.flatMap(({ whole }) => whole ?? []), rest: divided.flatMap(({ ends: rest }) => rest) };
}

/** As `divideRange`, but in whole days only. */
export const divideDays = (range: TimeRange): { days: TimeRange | null; rest: readonly TimeRange[] } => {
  const { whole, ends } = divide(range, DAY_MS);
  return { days: whole, rest: ends };
};

/** The whole units within the range, if any, and what is left at its ends. */
function divide(range: TimeRange, unitMs: number): { whole: TimeRange | null; ends: readonly TimeRange[] } {
  const fromMs = range.fromMs === null ? null : Math.ceil(range.fromMs / unitMs) * unitMs;
  const toMs = range.toMs === null ? null : Math.floor(range.toMs / unitMs) * unitMs;
  // Postgres takes no time after `LAST_MS`.
  if (fromMs !== null && fromMs >= (toMs ?? LAST_MS)) return { whole: null, ends: [range] };
  const ends = [
    { fromMs: range.fromMs, toMs: fromMs },
    { fromMs: toMs, toMs: range.toMs },
  ];
  return { whole: { fromMs, toMs }, ends: ends.filter((end) => end.fromMs !== end.toMs) };
}
