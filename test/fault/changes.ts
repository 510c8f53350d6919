// What operators change of child keys under way: a budget is lowered, or a key is revoked. Once that is confirmed it counts.

import { periodAt } from '../../src/keys/budget-period.ts';
import { type KeyState, lockKeyState } from '../../src/keys/keys-sql.ts';
import { fieldsOf } from '../../src/ledger/wallets/key-terms.ts';
import { untilAnswered } from './answered.ts';
import type { Row } from './books.ts';
import { hasBudget, isBelow } from './budgets.ts';
import type { Told } from './callers.ts';
import type { Buyer, Child } from './market.ts';
import { Random } from './random.ts';
import type { Stack } from './stack.ts';
import { OWN_RATE_LIMIT, type PlannedTree } from './trees.ts';

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
 * Calls that began after a change was confirmed, and were admitted although it forbids them. Call this only where neither store can have
 * lost the change.
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

/**
 * Each change that was confirmed is in Postgres, and Redis decides the calls of each key by the terms that Postgres has. Call this when
 * nothing is under way, and only where Redis cannot have lost what it had acknowledged.
 */
export async function checkTerms({ stores }: Stack, buyer: Buyer): Promise<string[]> {
  const { redis, keys, sql } = stores;
  const { account_id: accountId, key_id: rootId } = buyer.key;
  const name = keys.key(keys.shardOf(accountId), rootId);
  const inRedis = (await untilAnswered(() => redis.command('hgetall', [name]))) as Record<string, string>;
  const faults = buyer.children.map(async (child) => {
    const state = await sql.begin((tx) => lockKeyState(tx, child.key.key_id));
    return state === null ? [`${child.key.key_id} is not in postgres`] : faultsOfTerms(child, state, inRedis);
  });
  return (await Promise.all(faults)).flat();
}

/** @param inRedis  the hash of the tree; it may lack keys that have not called since Redis lost it */
export function faultsOfTerms(
  { key, change, above }: Pick<Child, 'key' | 'change' | 'above'>,
  state: KeyState,
  inRedis: Readonly<Record<string, string>>,
): string[] {
  const faults: string[] = [];
  const isThere =
    change === null || (change.micros === null ? state.status === 'revoked' : state.budgetMicros === change.micros);
  if (!isThere) faults.push(`${JSON.stringify(change)} of ${key.key_id} is not in postgres: ${JSON.stringify(state)}`);
  // What ends a key above it is written to that key's terms alone.
  if (above.some((one) => one.change?.micros === null)) return faults;
  const [field, terms] = fieldsOf(key.key_id, state, OWN_RATE_LIMIT) as [string, string];
  const found = inRedis[field];
  if (found !== undefined && found !== terms)
    faults.push(`${key.key_id} is ${found} in redis, and ${terms} in postgres`);
  return faults;
}
