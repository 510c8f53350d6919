// Checks of child keys: what callers were told of budgets and rate limits, and how the stores count each budget in the end. Each
// returns in words what is wrong.

import { periodAt } from '../../src/keys/budget-period.ts';
import type { BudgetDrift } from '../../src/ledger/reconcile/identity.ts';
import { readWallet } from '../../src/ledger/reconcile/shard-view.ts';
import { readInText } from '../support/child-state.ts';
import { untilAnswered } from './answered.ts';
import type { Row } from './books.ts';
import { isSumOf } from './losses.ts';
import type { Buyer, Child } from './market.ts';
import type { Stack } from './stack.ts';

export type Budgeted = Child & { readonly budget: NonNullable<Child['budget']> };

export const hasBudget = (child: Child): child is Budgeted => child.budget !== null;

/** The key and those between it and the buyer's, by the id of the key; none for the buyer's own. */
export const chainOf = ({ children }: Buyer, keyId: string): readonly Child[] => {
  const child = children.find(({ key }) => key.key_id === keyId);
  return child === undefined ? [] : [...child.above, child];
};

/** Whether it is the key of this child, or one below it. */
export const isBelow = (buyer: Buyer, keyId: string, child: Child): boolean => chainOf(buyer, keyId).includes(child);

/** The budgets that a call with this key counts in. */
export const budgetsOf = (buyer: Buyer, keyId: string): readonly Budgeted[] => chainOf(buyer, keyId).filter(hasBudget);

/** What Redis has of the budgets of an account; null: its wallet is not loaded. */
export async function readSpent({ stores }: Stack, accountId: string) {
  const { redis, keys } = stores;
  const fields = await readInText(redis, keys.wallet(keys.shardOf(accountId), accountId));
  return readWallet(Object.entries(fields).flat())?.budgets ?? null;
}

type Evidence = {
  /** Of all accounts. */
  readonly rows: readonly Row[];
  /** Stored calls that Redis may not have known for a while, or does not know: a budget may have been exceeded by as much. */
  readonly mayBeLost: (row: Row) => boolean;
  /** What the comparison says of the account, where that is permitted. */
  readonly reported: readonly BudgetDrift[];
  /** What calls cost that only Redis may have; where the comparison says so, it may have counted them. */
  readonly gone?: readonly number[];
  /** Refunds that one of the stores may not know: the key of the call, and the amount. */
  readonly doubtfulRefunds?: readonly { readonly keyId: string; readonly micros: number }[];
  /** Redis's clock may have been ahead: then a call may count in a later period than that of its time. */
  readonly wasAhead?: boolean;
};

/**
 * In each period `budget_usage` is the sum of what the calls of the key and of those below it cost, and no more than the budget. Redis
 * counts in the last of these periods and has the same sum. Where it may have lost calls, the comparison says what it lacks.
 */
export async function checkBudgets(stack: Stack, buyer: Buyer, evidence: Evidence): Promise<string[]> {
  if (buyer.children.length === 0) return [];
  const { account_id: id } = buyer.key;
  const kept = await stack.stores.sql<{ keyId: string; period: number; spent: number }[]>`
    SELECT key_id AS "keyId", period, spent FROM budget_usage WHERE account_id = ${id}`;
  const inRedis = await untilAnswered(() => readSpent(stack, id));
  const budgets = buyer.children.filter(hasBudget);
  const others = kept.filter(({ keyId }) => budgets.every(({ key }) => key.key_id !== keyId));
  return [
    ...others.map((row) => `spent of a budget that there is not: ${JSON.stringify(row)}`),
    ...budgets.flatMap((child) => {
      const { key_id: keyId } = child.key;
      const own = kept.filter((row) => row.keyId === keyId);
      const stored = new Map(own.map(({ period, spent }) => [period, spent]));
      const rows = evidence.rows.filter((row) => budgetsOf(buyer, row.keyId).includes(child) && row.amountMicros > 0);
      const found = inRedis === null ? null : (inRedis.get(keyId) ?? NOTHING);
      const doubtfulRefunds = evidence.doubtfulRefunds?.filter((one) => budgetsOf(buyer, one.keyId).includes(child));
      return faultsOf(child, { stored, found }, { ...evidence, rows, doubtfulRefunds: doubtfulRefunds ?? [] });
    }),
  ];
}

type Spending = { readonly period: number; readonly spentMicros: number };
const NOTHING: Spending = { period: 0, spentMicros: 0 };

/** What the stores say that was spent of a budget. */
type Kept = {
  /** By period, in Postgres. */
  readonly stored: ReadonlyMap<number, number>;
  /** In Redis; null: the wallet is not loaded. */
  readonly found: Spending | null;
};

/** @param evidence  its rows are those that count in this budget */
export function faultsOf({ key, budget }: Pick<Budgeted, 'key' | 'budget'>, kept: Kept, evidence: Evidence): string[] {
  const inRedis = kept.found === null ? [] : faultsOfRedis(key.key_id, kept.found, kept.stored, evidence);
  return [...faultsOfPostgres(budget, kept.stored, evidence), ...inRedis].map(
    (what) => `budget of ${key.key_id}, ${JSON.stringify(budget)}: ${what}`,
  );
}

const sumOf = (rows: readonly Row[]): number =>
  rows.reduce((sum, { amountMicros, refundedMicros }) => sum + amountMicros - refundedMicros, 0);

function faultsOfPostgres(
  budget: Budgeted['budget'],
  stored: Kept['stored'],
  { rows, mayBeLost, wasAhead = false, doubtfulRefunds = [] }: Evidence,
): string[] {
  const faults: string[] = [];
  const periodOf = (row: Row): number => periodAt(budget.period, 0, row.admittedAtMs);
  const periods = Array.from(new Set([...stored.keys(), ...rows.map(periodOf)])).sort((a, b) => b - a);
  // From the last period on.
  let [spent, charged] = [0, 0];
  for (const period of periods) {
    const inPeriod = rows.filter((row) => periodOf(row) === period);
    const its = stored.get(period) ?? 0;
    spent += its;
    charged += sumOf(inPeriod);
    const isRight = wasAhead ? spent >= charged : spent === charged;
    if (!isRight) faults.push(`${its} in postgres of period ${period}, not ${sumOf(inPeriod)}`);
    const lost = (wasAhead ? rows : inPeriod).filter(mayBeLost);
    const absent = [...lost.map(({ amountMicros }) => amountMicros), ...doubtfulRefunds.map(({ micros }) => micros)];
    const most = absent.reduce((sum, micros) => sum + micros, budget.micros);
    if (its > most) faults.push(`${its} spent in period ${period}, of ${most}`);
  }
  return spent === charged ? faults : [...faults, `${spent} in postgres, not ${charged}`];
}

function faultsOfRedis(
  keyId: string,
  found: Spending,
  stored: Kept['stored'],
  { rows, reported, mayBeLost, gone = [], doubtfulRefunds = [] }: Evidence,
): string[] {
  const period = Math.max(found.period, ...stored.keys());
  const expected = { period, spentMicros: stored.get(period) ?? 0 };
  const words = `${text(found)} in redis, not ${text(expected)}`;
  const drift = reported.find((its) => its.keyId === keyId);
  if (drift === undefined) return isSame(found, expected) ? [] : [words];
  const isTold =
    isSame(found, drift) && drift.expectedPeriod === period && drift.expectedMicros === expected.spentMicros;
  if (!isTold) return [`${words}; the comparison says ${JSON.stringify(drift)}`];
  // A call that Redis has lost may have opened the period that it does not know.
  const lost = rows.filter(mayBeLost).map(({ amountMicros }) => amountMicros);
  const lacks = (stored.get(found.period) ?? 0) - found.spentMicros;
  // A refund that only Redis has leaves less spent there, and one that only Postgres has leaves more.
  const refunds = doubtfulRefunds.map(({ micros }) => micros);
  const isExplained = isLeftOver(lacks, [...lost, ...refunds], [...gone, ...refunds]);
  const isLost = (found.period === period || lost.length > 0) && isExplained;
  return isLost ? [] : [`${words}; calls that may be lost: ${lost.join(', ')}, and gone: ${gone.join(', ')}`];
}

/** Whether Redis lacks the sum of some of the lost calls, less the sum of some calls that only Redis has. */
function isLeftOver(lacks: number, lost: readonly number[], gone: readonly number[]): boolean {
  let sums = new Set([0]);
  for (const micros of gone) sums = new Set([...sums, ...Array.from(sums, (sum) => sum + micros)]);
  return Array.from(sums).some((sum) => isSumOf(lacks + sum, lost));
}

const isSame = (a: Spending, b: Spending): boolean => a.period === b.period && a.spentMicros === b.spentMicros;
const text = ({ period, spentMicros }: Spending): string => `${spentMicros} of period ${period}`;
