const DAY_MS = 86_400_000;

/** Today in UTC, `2026-11-22`. */
export const today = (): string => new Date().toISOString().slice(0, 10);

/** The last `count` days in UTC, oldest first. */
export function lastDays(count: number): string[] {
  const end = Date.parse(today());
  return Array.from({ length: count }, (_, at) => new Date(end - (count - 1 - at) * DAY_MS).toISOString().slice(0, 10));
}

/** All days from the first to the last, so that a chart shows those without calls, too. At most 400: the newest of them. */
export function daysBetween(first: string, last: string): string[] {
  const days = Math.floor((Date.parse(last) - Date.parse(first)) / DAY_MS) + 1;
  const count = Math.min(Math.max(days, 1), 400);
  return Array.from({ length: count }, (_, at) =>
    new Date(Date.parse(last) - (count - 1 - at) * DAY_MS).toISOString().slice(0, 10),
  );
}

export const secondsOf = (day: string): number => Date.parse(day) / 1_000;

/** One value for each day, from rows that leave out days without calls. */
export function perDay<Row extends { readonly day: string }>(
  days: readonly string[],
  rows: readonly Row[],
  pick: (row: Row) => number,
): number[] {
  const byDay = new Map(rows.map((row) => [row.day, pick(row)]));
  return days.map((day) => byDay.get(day) ?? 0);
}
