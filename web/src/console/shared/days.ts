const DAY_MS = 86_400_000;

/** `2026-11-22`: the day in UTC, as the API counts days. */
export const utcDay = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** The last days up to today in UTC, the oldest first. */
export const lastDays = (days: number, nowMs: number): string[] =>
  Array.from({ length: days }, (_, i) => utcDay(nowMs - (days - 1 - i) * DAY_MS));

/** Seconds since 1970 at the beginning of the day. */
export const secondsOf = (day: string): number => Date.parse(`${day}T00:00:00Z`) / 1_000;

/**
 * People name the last day that they want to see, and the API the first that it leaves out.
 *
 * @returns the range as the API takes it. What is no day is passed on, so that the API can say so
 */
export function rangeOf(query: Readonly<Record<string, string>>): { from?: string; to?: string } {
  const { from, to } = query;
  const end = to !== undefined && /^\d{4}-\d\d-\d\d$/.test(to) ? Date.parse(to) + DAY_MS : Number.NaN;
  return {
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to: Number.isNaN(end) ? to : utcDay(end) }),
  };
}

/** The fields above a list of what happened when. */
export const RANGE_FILTERS = [
  { name: 'from', label: 'From day (UTC)', type: 'date' },
  { name: 'to', label: 'To day (UTC)', type: 'date' },
] as const;
