import { ApiError } from '../errors.ts';

/** A half-open range in milliseconds since the epoch: `fromMs` is included, `toMs` is not. Null is open-ended. */
export type TimeRange = { readonly fromMs: number | null; readonly toMs: number | null };

/** Latest time used for an id or a day. The 48 bits of a UUIDv7 reach beyond the year 9999, but `utcDay` does not. */
export const MAX_TIME_MS = Date.UTC(9999, 11, 31);

export const clampTime = (ms: number): number => Math.min(Math.max(ms, 0), MAX_TIME_MS);

/** The UTC day as text. Postgres would compare a `Date` in the time zone of the session. */
export const utcDay = (ms: number): string => new Date(clampTime(ms)).toISOString().slice(0, 10);

/**
 * `records_since` in lists of calls: the first day whose calls have records. Absent until a day has been dropped.
 *
 * @param horizonMs see `readHorizonMs`
 */
export const recordsSince = (horizonMs: number | null): { readonly records_since?: string } =>
  horizonMs === null ? {} : { records_since: utcDay(horizonMs) };

/**
 * The first and last accepted instants: the years 1 to 9999 in UTC. Postgres cannot read other years as they are sent to it, such
 * as 0000 or +010000. A zone offset can lead to one: 9999-12-31T23:59:59-14:00 is in the year 10000 of UTC.
 */
export const FIRST_MS = Date.parse('0001-01-01T00:00:00Z');
export const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z');

const DAY = /^\d{4}-\d{2}-\d{2}$/;
// RFC 3339, with a required zone: without one, the same text would mean a different time on each machine.
const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/;

/**
 * Reads the query parameters `from` (included) and `to` (excluded): RFC 3339 date-times, or days, which begin at 00:00 UTC.
 *
 * Tested by test/routes/times-and-cursors.test.ts.
 *
 * @throws ApiError `invalid_request` naming the parameter
 */
export function parseTimeRange(query: { readonly from?: string; readonly to?: string }): TimeRange {
  const fromMs = parseInstant('from', query.from);
  const toMs = parseInstant('to', query.to);
  return inOrder({ fromMs, toMs });
}

/** As `parseTimeRange`, for pages that count by UTC days: accepts days only. */
export function parseDayRange(query: { readonly from?: string; readonly to?: string }): TimeRange {
  for (const name of ['from', 'to'] as const) {
    const text = query[name];
    if (text !== undefined && !DAY.test(text))
      throw new ApiError('invalid_request', `${name}: must be YYYY-MM-DD (UTC).`);
  }
  return parseTimeRange(query);
}

function inOrder(range: TimeRange): TimeRange {
  if (range.fromMs !== null && range.toMs !== null && range.fromMs >= range.toMs) {
    throw new ApiError('invalid_request', 'from: must be before to (which is not included).');
  }
  return range;
}

export function parseInstant(name: string, text: string | undefined): number | null {
  if (text === undefined) return null;
  if (DAY.test(text) || DATE_TIME.test(text)) {
    const ms = Date.parse(text);
    // Date.parse turns February 30 into March 2.
    if (!Number.isNaN(ms) && dayExists(text.slice(0, 10))) return inReach(name, ms);
  }
  throw new ApiError(
    'invalid_request',
    `${name}: must be YYYY-MM-DD or an RFC 3339 date-time such as 2026-01-31T12:00:00Z.`,
  );
}

function inReach(name: string, ms: number): number {
  if (ms >= FIRST_MS && ms <= LAST_MS) return ms;
  throw new ApiError('invalid_request', `${name}: must be in the years 0001 to 9999 (UTC).`);
}

function dayExists(day: string): boolean {
  const ms = Date.parse(`${day}T00:00:00Z`);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(day);
}
