// What operators change of child keys under way: a budget is lowered, or a key is revoked. Once that is confirmed it counts.

import { periodAt } from '../../src/keys/budget-period.ts';
import type { Row } from './books.ts';
import { hasBudget, isBelow } from './budgets.ts';
import type { Told } from './callers.ts';
import type { Buyer, Child } from './market.ts';
import { Random } from './random.ts';
import type { PlannedTree } from './trees.ts';

export type PlannedChange = {
  readonly buyer: number;
  /** Which of the buyer's keys. */
  readonly key: number;
  readonly atMs: number;
  /** Its new budget; null: it is revoked. */
  readonly micros: number | null;
};

/** At most one for each tree, so that what counts after it is certain. */
export function drawChanges(seed: number, trees: readonly PlannedTree[], loadMs: number): PlannedChange[] {
  const random = new Random(seed ^ 0xc4a6e);
  return trees.flatMap((tree, buyer) => {
    if (tree.length === 0 || random.chance(0.5)) return [];
    const key = random.int(0, tree.length - 1);
    const { budget } = tree[key] as PlannedTree[number];
    const isRevoked = budget === null || random.chance(0.4);
    const micros = isRevoked ? null : random.int(0, budget.micros - 1);
    return [{ buyer, key, atMs: random.int(0, Math.floor(loadMs / 2)), micros }];
  });
}

/** Describes a change in words, for the report of a failure. */
export const describeChange = ({ buyer, key, atMs, micros }: PlannedChange): string =>
  `  ${atMs} ms: key ${key} of buyer ${buyer} ${micros === null ? 'is revoked' : `gets a budget of ${micros}`}`;

/**
 * Calls that began after a change was confirmed, and were admitted although it forbids them. To be called only where neither store can
 * have lost the change.
 *
 * @param rows  all records of the account
 * @param told  all its calls
 */
export function checkChanges(buyer: Buyer, rows: readonly Row[], told: readonly Told[]): string[] {
  return buyer.children.flatMap((child) => {
    const { change } = child;
    if (change === null) return [];
    const own = rows.filter(({ keyId }) => isBelow(buyer, keyId, child));
    const after = own.filter(({ usageId }) =>
      told.some(({ requestId, atMs }) => requestId === usageId && atMs > change.doneMs),
    );
    const wrong = after.filter((row) => change.micros === null || isOver(child, change.micros, row, own));
    return wrong.map(
      (row) => `admitted after ${JSON.stringify(change)} of ${child.key.key_id}: ${JSON.stringify(row)}`,
    );
  });
}

/** Whether calls had cost more than this in the call's period when it was admitted. They had held at least as much. */
function isOver(child: Child, micros: number, call: Row, rows: readonly Row[]): boolean {
  if (!hasBudget(child) || call.amountMicros === 0) return false;
  const periodOf = ({ admittedAtMs }: Row): number => periodAt(child.budget.period, 0, admittedAtMs);
  const before = rows.filter((row) => periodOf(row) === periodOf(call) && row.admittedAtMs < call.admittedAtMs);
  // What was given back of them may have been back by then.
  const spent = before.reduce((sum, { amountMicros, refundedMicros }) => sum + amountMicros - refundedMicros, 0);
  return spent + call.amountMicros > micros;
}
