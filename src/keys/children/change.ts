import { ApiError } from '../../errors.ts';
import type { Tx } from '../../platform/postgres.ts';
import type { BudgetPeriod } from '../budget-period.ts';
import { type StoredKey, selectUnknownServices } from './children-sql.ts';
import { type Budget, type Limits, limitsFault } from './limits.ts';

/** The changes to a key; everything else stays. A budget without a period changes the amount of the key's present budget. */
export type KeyChange = Partial<Omit<Limits, 'budget'>> & {
  readonly label?: string | null;
  readonly budget?: { readonly amountMicros: number; readonly period?: BudgetPeriod | undefined } | null;
};

/** The key after a change. Throws `invalid_request` or `conflict` if the change is not allowed. */
export async function changed(
  tx: Tx,
  key: StoredKey,
  { label = key.label, budget, ...limits }: KeyChange,
  above: readonly StoredKey[],
): Promise<StoredKey> {
  const given = budget === undefined ? limits : { ...limits, budget: budgetAfter(key.budget, budget) };
  await checkLimits(tx, given, above);
  return { ...key, ...given, label };
}

function budgetAfter(before: Budget | null, wanted: NonNullable<KeyChange['budget']> | null): Budget | null {
  if (wanted === null) return null;
  const { amountMicros, period = before?.period } = wanted;
  if (period === undefined) throw new ApiError('invalid_request', 'budget.period: is needed for a new budget.');
  if (before !== null && period !== before.period) {
    const message = 'The period of a budget cannot be changed. Stop this budget (null), then give another.';
    throw new ApiError('conflict', message);
  }
  return { amountMicros, period };
}

/** Throws `invalid_request` if a child key below these keys may not be given these limits. */
export async function checkLimits(tx: Tx, limits: Partial<Limits>, above: readonly StoredKey[]): Promise<void> {
  const fault = limitsFault(limits, above, new Date());
  if (fault !== null) throw new ApiError('invalid_request', `${fault}.`);
  const { services } = limits;
  const [unknown] = services?.length ? await selectUnknownServices(tx, services) : [];
  if (unknown !== undefined) throw new ApiError('invalid_request', `services: there is no service ${unknown}.`);
}
