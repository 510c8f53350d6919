import type { BudgetPeriod } from '../budget-period.ts';

/** Maximum levels of a tree of keys, its root included. */
export const MAX_LEVELS = 4;
export const MAX_SERVICES = 100;

export type Budget = { readonly amountMicros: number; readonly period: BudgetPeriod };

/** The limits of a child key. Null: it has no limit of its own, so those above it decide. */
export type Limits = {
  readonly budget: Budget | null;
  /** Requests per minute. */
  readonly rateLimit: number;
  readonly maxPriceMicros: number | null;
  /** Ids of the services that it may call. */
  readonly services: readonly string[] | null;
  readonly expiresAt: Date | null;
};

/** From shortest to longest. */
const LENGTHS: readonly BudgetPeriod[] = ['day', 'week', 'month', 'total'];

/** Whether a budget could never be used up, because the one above it is smaller and its period at least as long. */
function isBeyond(budget: Budget, above: Budget): boolean {
  return budget.amountMicros > above.amountMicros && LENGTHS.indexOf(budget.period) <= LENGTHS.indexOf(above.period);
}

/**
 * Why a key may not be given these limits: no limit may exceed those of the keys above it.
 *
 * @param limits the limits that the key is given; the others do not change
 * @param above the limits of the keys above it, in any order. If these become stricter later, they bind the key too
 * @returns `<field of the API>: <what is wrong>`, or null
 *
 * Tested by test/keys/children.test.ts.
 */
export function limitsFault(limits: Partial<Limits>, above: readonly Limits[], now: Date): string | null {
  const { budget = null, rateLimit = 0, maxPriceMicros = null, services = null, expiresAt = null } = limits;
  if (expiresAt !== null && expiresAt <= now) return 'expires_at: must be in the future';
  for (const parent of above) {
    if (rateLimit > parent.rateLimit)
      return `rate_limit: must be at most ${parent.rateLimit}, the limit of the key above`;
    if (budget !== null && parent.budget !== null && isBeyond(budget, parent.budget))
      return 'budget: must not be more than that of the key above, whose period is as long or longer';
    if (maxPriceMicros !== null && parent.maxPriceMicros !== null && maxPriceMicros > parent.maxPriceMicros)
      return 'max_price: must not be more than that of the key above';
    if (expiresAt !== null && parent.expiresAt !== null && expiresAt > parent.expiresAt)
      return 'expires_at: must not be later than that of the key above';
    const { services: permitted } = parent;
    const other = permitted === null ? undefined : services?.find((id) => !permitted.includes(id));
    if (other !== undefined) return `services: the key above may not call ${other}`;
  }
  return null;
}

/** The services that are in all of these lists. Null: no list is given, so all services are allowed. */
export function servicesInAll(lists: readonly (readonly string[])[] | null): ReadonlySet<string> | null {
  const [first, ...others] = lists ?? [];
  return first === undefined ? null : new Set(first.filter((id) => others.every((list) => list.includes(id))));
}
