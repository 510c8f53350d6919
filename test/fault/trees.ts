// The trees of child keys in a plan. They are drawn apart from the faults, so that a seed has the same faults with any trees.

import { BUDGET_PERIODS, type BudgetPeriod } from '../../src/keys/budget-period.ts';
import { MAX_LEVELS } from '../../src/keys/children/limits.ts';
import { Random } from './random.ts';

export type PlannedKey = {
  /** Which of the keys before it is above it; null: the buyer's own. */
  readonly parent: number | null;
  readonly budget: { readonly micros: number; readonly period: BudgetPeriod } | null;
  /** Requests per minute. */
  readonly rateLimit: number;
};

/** The keys below that of a buyer. */
export type PlannedTree = readonly PlannedKey[];

/** That of a buyer's own key. */
export const OWN_RATE_LIMIT = 300;
const MOST_KEYS = 6;

/** A tree for each buyer; some have none. */
export function drawTrees(seed: number, buyers: number): readonly PlannedTree[] {
  const random = new Random(seed ^ 0x7ee5);
  return Array.from({ length: buyers }, () => (random.chance(0.6) ? drawTree(random) : []));
}

function drawTree(random: Random): PlannedTree {
  const keys: PlannedKey[] = [];
  const depths: number[] = [];
  for (let left = random.int(1, MOST_KEYS); left > 0; left--) {
    // Mostly below the last one, so that many trees have all levels.
    const wanted = random.chance(0.6) ? keys.length - 1 : random.int(-1, keys.length - 1);
    const parent = wanted >= 0 && (depths[wanted] as number) < MAX_LEVELS ? wanted : null;
    depths.push(parent === null ? 2 : (depths[parent] as number) + 1);
    keys.push(drawKey(random, parent, keys));
  }
  return keys;
}

/** No limit may be above that of a parent. Many of these are reached under way. */
function drawKey(random: Random, parent: number | null, keys: PlannedTree): PlannedKey {
  let [micros, rateLimit] = [random.int(1, 12) * 1_000, random.chance(0.3) ? random.int(3, 20) : OWN_RATE_LIMIT];
  for (let above = parent; above !== null; ) {
    const key = keys[above] as PlannedKey;
    micros = Math.min(micros, key.budget?.micros ?? micros);
    rateLimit = Math.min(rateLimit, key.rateLimit);
    above = key.parent;
  }
  const period = random.pick(BUDGET_PERIODS);
  return { parent, budget: random.chance(0.75) ? { micros, period } : null, rateLimit };
}

/** Describes trees in words, for the report of a failure. */
export function describeTrees(trees: readonly PlannedTree[]): string[] {
  return trees.flatMap((tree, buyer) =>
    tree.map(({ parent, budget, rateLimit }, i) => {
      const bounds = `${budget === null ? 'no budget' : `${budget.micros} of a ${budget.period}`}, ${rateLimit} a minute`;
      return `  buyer ${buyer}, key ${i} below ${parent ?? 'its own'}: ${bounds}`;
    }),
  );
}
