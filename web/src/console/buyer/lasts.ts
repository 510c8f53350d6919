/** The number of days whose spending predicts how long a balance lasts: today, and the six days before. */
const OBSERVED_DAYS = 7;
const DAY_MS = 86_400_000;
/** The first calls of a day say nothing about its pace. */
const LEAST_MS = 3_600_000;

type Day = { readonly day: string; readonly spent: number };

/**
 * How many days the balance lasts if the account goes on spending as in the last seven days, counted from the first of them with
 * spending (`observed` of them) until now. Null: it spent nothing.
 *
 * @param days    YYYY-MM-DD in UTC, oldest first, today last
 * @param byDay   of the account, in any order; days without calls may be absent
 */
export function daysLeft(
  balance: number,
  days: readonly string[],
  byDay: readonly Day[],
  nowMs: number,
): { readonly days: number; readonly observed: number } | null {
  const observed = days.slice(-OBSERVED_DAYS);
  const spent = new Map(byDay.map((day) => [day.day, Math.round(day.spent * 1e6)]));
  const begin = observed.findIndex((day) => (spent.get(day) ?? 0) > 0);
  if (begin === -1) return null;
  const since = observed.slice(begin);
  const micros = since.reduce((sum, day) => sum + (spent.get(day) ?? 0), 0);
  // Today is not over yet.
  const passedMs = Math.max(LEAST_MS, nowMs - Date.parse(observed[begin] ?? ''));
  return { days: Math.floor((Math.round(balance * 1e6) * passedMs) / DAY_MS / micros), observed: since.length };
}
