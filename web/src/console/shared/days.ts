import { hoursUpToNow } from '../../design/series.ts';

const DAY_MS = 86_400_000;

/** `2026-11-22`: the day in UTC, as the API counts days. */
export const utcDay = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

export const today = (): string => utcDay(Date.now());

/** The last days up to today in UTC, oldest first. */
export const lastDays = (days: number, nowMs = Date.now()): string[] =>
  Array.from({ length: days }, (_, i) => utcDay(nowMs - (days - 1 - i) * DAY_MS));

/** All days from the first to the last, so that a chart also shows days without calls. At most the newest 400. */
export function daysBetween(first: string, last: string): string[] {
  const days = Math.floor((Date.parse(last) - Date.parse(first)) / DAY_MS) + 1;
  return lastDays(Math.min(Math.max(days, 1), 400), Date.parse(last));
}

/** Seconds since 1970 at the beginning of the day. */
export const secondsOf = (day: string): number => Date.parse(`${day}T00:00:00Z`) / 1_000;

/** The times of a chart, and the row of each. Rows leave out times without calls: there the chart has nothing. */
export type Timed<Row> = {
  readonly unit: 'day' | 'hour';
  /** Seconds since 1970. */
  readonly times: readonly number[];
  readonly rows: readonly (Row | undefined)[];
};

/** By hour where the API knows hours, else by day. @param days  those of the chart; with hours it ends now */
export function timedRows<Day extends { readonly day: string }, Hour extends { readonly hour: string }>(
  days: readonly string[],
  byDay: readonly Day[],
  byHour: readonly Hour[] | undefined,
): Timed<Day | Hour> {
  const known = new Map<number, Day | Hour>();
  if (byHour === undefined) for (const row of byDay) known.set(secondsOf(row.day), row);
  else for (const row of byHour) known.set(Date.parse(row.hour) / 1_000, row);
  const times = byHour === undefined ? days.map(secondsOf) : hoursUpToNow(known.keys(), Date.now());
  return { unit: byHour === undefined ? 'day' : 'hour', times, rows: times.map((time) => known.get(time)) };
}

/**
 * People name the last day that they want to see; the API takes the first day that it leaves out.
 *
 * @returns the range as the API takes it. A text that is not a day is passed on, so that the API can report it
 */
export function rangeOf(query: Readonly<Record<string, string>>): { from?: string; to?: string } {
  const { from, to } = query;
  const end = to !== undefined && /^\d{4}-\d\d-\d\d$/.test(to) ? Date.parse(to) + DAY_MS : Number.NaN;
  return {
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to: Number.isNaN(end) ? to : utcDay(end) }),
  };
}

/** The two days may be given in either order. */
export function inOrder<Q extends Readonly<Record<string, string>>>(query: Q): Q {
  const { from = '', to = '' } = query;
  return from !== '' && to !== '' && from > to ? { ...query, from: to, to: from } : query;
}

/** The fields for a time range above a list. */
export const RANGE_FILTERS = [
  { name: 'from', label: 'From day (UTC)', type: 'date' },
  { name: 'to', label: 'To day (UTC)', type: 'date' },
] as const;
