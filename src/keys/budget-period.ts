/**
 * The periods of budgets as numbers that only grow. Days, weeks (from Monday) and months are counted since 1970-01-01, in UTC. A
 * budget that is given anew begins a new period of whatever kind, from 0. batch.lua counts in the same way by Redis's
 * clock (scripts/includes/chains.lua).
 *
 * Tested by test/admission/budgets.test.ts.
 */

export const BUDGET_PERIODS = ['total', 'day', 'week', 'month'] as const;

export type BudgetPeriod = (typeof BUDGET_PERIODS)[number];

const DAY_MS = 86_400_000;
/** Exceeds the number of any day until the year 4700. */
const PERIODS_OF_A_BUDGET = 1_000_000;
/** The first Monday was the fifth day of 1970. */
const DAYS_BEFORE_MONDAY = 3;

/** @param number  how many budgets the key had been given before this one */
export function periodAt(kind: BudgetPeriod, number: number, nowMs: number): number {
  return number * PERIODS_OF_A_BUDGET + sinceEpoch(kind, nowMs);
}

function sinceEpoch(kind: BudgetPeriod, nowMs: number): number {
  const days = Math.floor(nowMs / DAY_MS);
  switch (kind) {
    case 'total':
      return 0;
    case 'day':
      return days;
    case 'week':
      return Math.floor((days + DAYS_BEFORE_MONDAY) / 7);
    case 'month': {
      const date = new Date(nowMs);
      return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth();
    }
  }
}

/** When the period after this one begins, in ms; null: never. */
export function nextPeriodMs(kind: BudgetPeriod, period: number): number | null {
  const next = (period % PERIODS_OF_A_BUDGET) + 1;
  switch (kind) {
    case 'total':
      return null;
    case 'day':
      return next * DAY_MS;
    case 'week':
      return (next * 7 - DAYS_BEFORE_MONDAY) * DAY_MS;
    case 'month':
      return Date.UTC(1970, next, 1);
  }
}
