const DAY_MS = 86_400_000;

/** While all that is known is of so many days (UTC), today included, hours say more than days. */
export const DAYS_OF_HOURS = 3;

/**
 * The first of the last days in milliseconds, if none of these days is before it. Null: hours would leave something out, or there is nothing.
 *
 * @param days  YYYY-MM-DD, UTC
 */
export function hoursSince(days: readonly { readonly day: string }[], nowMs: number): number | null {
  const firstMs = (Math.floor(nowMs / DAY_MS) - (DAYS_OF_HOURS - 1)) * DAY_MS;
  return days.length > 0 && days.every(({ day }) => Date.parse(day) >= firstMs) ? firstMs : null;
}
