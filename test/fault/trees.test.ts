// What the schedules hold budgets, refusals and calls that cost nothing against, with ends that are wrong; and the trees that they draw.

import { describe, expect, it } from 'vitest';
import { periodAt } from '../../src/keys/budget-period.ts';
import { MAX_LEVELS } from '../../src/keys/children/limits.ts';
import type { Row } from './books.ts';
import { chainOf, faultsOf } from './budgets.ts';
import type { Told } from './callers.ts';
import { checkChanges, drawChanges, faultsOfTerms } from './changes.ts';
import { makeClusterPlan } from './cluster/plan.ts';
import { makeHistoryPlan } from './history/plan.ts';
import type { Buyer, Child } from './market.ts';
import { makePlan } from './plan.ts';
import { checkRefusals, checkTokens, leastOfBudgets } from './refusals.ts';
import { drawTrees, type PlannedTree } from './trees.ts';
import { checkUncharged } from './uncharged.ts';

const NOW = Date.UTC(2026, 10, 24, 12);
const DAY = periodAt('day', 0, NOW);
const child = (key_id: string, micros: number, rateLimit: number, ...above: Child[]): Child => {
  const budget = { micros, period: 'day' as const };
  return { key: { key_id, secret: '', account_id: 'account' }, budget, rateLimit, above, change: null };
};
const team = child('team', 1_000, 5);
const agent = child('agent', 500, 5, team);
const buyer: Buyer = {
  key: { key_id: 'own', secret: '', account_id: 'account' },
  children: [team, agent],
  creditedMicros: 0,
};

const row = (amountMicros: number, admittedAtMs = NOW, refundedMicros = 0): Row =>
  ({ amountMicros, admittedAtMs, refundedMicros }) as Row;

describe('the spent amount of a budget in the end', () => {
  const rows = [row(300), row(200), row(40, NOW - 86_400_000)];
  const stored = new Map([
    [DAY, 500],
    [DAY - 1, 40],
  ]);
  const found = { period: DAY, spentMicros: 500 };
  const evidence = { rows, mayBeLost: () => false, reported: [] };
  const faults = (kept: Partial<Parameters<typeof faultsOf>[1]>, more: Partial<Parameters<typeof faultsOf>[2]> = {}) =>
    faultsOf(agent as Parameters<typeof faultsOf>[0], { stored, found, ...kept }, { ...evidence, ...more });

  it('equals the cost of the calls in each of its periods, in both stores', () => {
    expect(faults({})).toEqual([]);
    expect(faults({ found: null })).toEqual([]);
    expect(faults({ stored: new Map([[DAY, 540]]) })).not.toEqual([]);
    expect(faults({ stored: new Map([[DAY, 500]]) })).not.toEqual([]);
    expect(faults({ found: { period: DAY, spentMicros: 499 } })).toHaveLength(1);
    expect(faults({ found: { period: DAY - 1, spentMicros: 40 } })).toHaveLength(1);
    // A call that was refunded has opened the next period.
    expect(faults({ found: { period: DAY + 1, spentMicros: 0 } })).toEqual([]);
    expect(faults({ found: { period: DAY + 1, spentMicros: 7 } })).toHaveLength(1);
  });

  it('excludes what was refunded for its calls', () => {
    const evidence = { rows: [row(300, NOW, 100), row(200), row(40, NOW - 86_400_000)] };
    expect(faults({}, evidence)).not.toEqual([]);
    const stored = new Map([
      [DAY, 400],
      [DAY - 1, 40],
    ]);
    expect(faults({ stored, found: { period: DAY, spentMicros: 400 } }, evidence)).toEqual([]);
    expect(faults({ stored }, evidence)).toHaveLength(1);
  });

  it('does not exceed the limit, except by calls that Redis may have lost', () => {
    const more = { rows: [...rows, row(1)] };
    const kept = { stored: new Map([...stored, [DAY, 501]]), found: { period: DAY, spentMicros: 501 } };
    expect(faults(kept, more)).toEqual([expect.stringContaining('of 500')]);
    expect(faults(kept, { ...more, mayBeLost: ({ amountMicros }) => amountMicros === 1 })).toEqual([]);
  });

  it('may lack in Redis what Redis may have lost, if the reconciliation says so', () => {
    const lacks = (spentMicros: number, said: number, gone: readonly number[] = []): string[] => {
      const drift = { keyId: 'agent', period: DAY, spentMicros: said, expectedPeriod: DAY, expectedMicros: 500 };
      const mayBeLost = ({ amountMicros }: Row): boolean => amountMicros === 200;
      return faults({ found: { period: DAY, spentMicros } }, { mayBeLost, reported: [drift], gone });
    };
    expect(lacks(300, 300)).toEqual([]);
    expect(lacks(300, 299)).toHaveLength(1);
    expect(lacks(200, 200)).toHaveLength(1);
    expect(lacks(507, 507)).toHaveLength(1);
    expect(lacks(507, 507, [7, 8])).toEqual([]);
    expect(lacks(307, 307, [7, 8])).toEqual([]);
  });

  it('may count in a later period while a clock was ahead', () => {
    const later = { stored: new Map([[DAY + 400, 540]]), found: { period: DAY + 400, spentMicros: 540 } };
    const bounds = { mayBeLost: () => true };
    expect(faults(later, bounds)).not.toEqual([]);
    expect(faults(later, { ...bounds, wasAhead: true })).toEqual([]);
    const earlier = { stored: new Map([[DAY - 1, 540]]), found: { period: DAY - 1, spentMicros: 540 } };
    expect(faults(earlier, { ...bounds, wasAhead: true })).not.toEqual([]);
  });
});

describe('the check of what a caller was told', () => {
  const told = (keyId: string, more: Partial<Told> = {}): Told =>
    ({
      keyId,
      atMs: 100,
      endMs: 105,
      status: 200,
      usageId: 'id',
      complete: true,
      balanceMicros: null,
      path: '/fast',
      listing: { priceMicros: 100, maxMicros: null },
      ...more,
    }) as Told;
  const refused = (status: number, code: string, more: Partial<Told> = {}): Told =>
    told('agent', { status, code, usageId: null, atMs: 200, endMs: 205, ...more });
  const exceeded = (remainingMicros: number, limitKey = 'agent'): Told =>
    refused(402, 'budget_exceeded', { limitKey, remainingMicros });
  const faults = (call: Told, ...before: Told[]): number => checkRefusals(buyer, [...before, call]).length;
  const four = [told('agent'), told('agent'), told('agent'), told('agent')];

  it('accepts budget_exceeded only for a key above it with less left than the call costs, and enough calls to explain that', () => {
    expect(faults(exceeded(99), ...four, told('agent'))).toBe(0);
    expect(faults(exceeded(100), ...four, told('agent'))).toBe(1);
    expect(faults(exceeded(99), ...four)).toBe(1);
    expect(faults(exceeded(0, 'own'), ...four)).toBe(1);
    expect(faults(exceeded(99, 'team'), ...four, told('team'))).toBe(1);
    expect(faults(exceeded(99, 'team'), ...four, ...four, told('team'), told('team'))).toBe(0);
  });

  it('accepts rate_limited only after as many calls as the bucket has tokens', () => {
    // Two tokens made the keys.
    expect(faults(refused(429, 'rate_limited'), told('agent'))).toBe(1);
    expect(faults(refused(429, 'rate_limited'), told('agent'), told('agent'))).toBe(0);
    expect(faults(refused(429, 'rate_limited'), told('own'), told('own'), told('own'))).toBe(1);
  });

  it('accepts no other refusal that the contract does not have', () => {
    expect(faults(refused(403, 'forbidden'))).toBe(1);
    expect(faults(refused(402, 'insufficient_balance'))).toBe(0);
    expect(faults(refused(503, 'unavailable'))).toBe(0);
    expect(faults(told('agent', { balanceMicros: 501 }))).toBe(1);
    expect(faults(told('team', { balanceMicros: 501 }))).toBe(0);
  });

  it('accepts no more calls than there were tokens, including refilled ones', () => {
    const [last] = [told('team', { atMs: 12_000, endMs: 12_200 })];
    expect(checkTokens(buyer, [...four, told('team')])).toEqual([]);
    expect(checkTokens(buyer, [...four, told('team'), told('team')])).toHaveLength(1);
    expect(checkTokens(buyer, [...four, told('team'), last])).toEqual([]);
  });

  it('expects a balance of at least what the budgets leave', () => {
    expect(leastOfBudgets(told('agent'), buyer, [...four])).toBe(100);
    expect(leastOfBudgets(told('own'), buyer, [...four])).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('after a change was confirmed', () => {
  const faults = (micros: number | null, ...after: [keyId: string, amountMicros: number, atMs: number][]): number => {
    const changed: Child = { ...agent, change: { micros, sentMs: 100, doneMs: 200 } };
    const calls = [['agent', 300, 50] as const, ...after].map(([keyId, amountMicros, atMs], i) => ({
      told: { keyId, requestId: `${i}`, atMs } as Told,
      row: { keyId, usageId: `${i}`, amountMicros, refundedMicros: 0, admittedAtMs: NOW + atMs } as Row,
    }));
    const all = [calls.map(({ row }) => row), calls.map(({ told }) => told)] as const;
    return checkChanges({ ...buyer, children: [team, changed] }, ...all).length;
  };

  it('no call is admitted with a revoked key, or with a key below it', () => {
    expect(faults(null, ['agent', 1, 200], ['team', 1, 201])).toBe(0);
    expect(faults(null, ['agent', 0, 201])).toBe(1);
  });

  it('no call is admitted that a lowered budget does not cover', () => {
    expect(faults(400, ['agent', 100, 201], ['agent', 0, 202], ['team', 9, 203])).toBe(0);
    expect(faults(399, ['agent', 100, 201])).toBe(1);
    expect(faults(299, ['agent', 0, 201])).toBe(0);
    expect(faults(300, ['agent', 100, 199])).toBe(0);
  });
});

it('a confirmed change is in both stores', () => {
  const state = { ...{ keyId: 'agent', accountId: 'account', limit: 5, status: 'active' as const }, expiresAt: null };
  const budget = { ancestors: ['own', 'team'], budgetMicros: 400, budgetPeriod: 'day', budgetNumber: 0 };
  const faults = (micros: number | null, inRedis: string, changed: object = {}, above = agent.above) => {
    const changedAgent = { ...agent, above, change: { micros, sentMs: 100, doneMs: 200 } };
    return faultsOfTerms(changedAgent, { ...state, ...budget, ...changed }, { agent: inRedis }).length;
  };
  expect(faults(400, '5 active 0 400 day 0')).toBe(0);
  expect(faults(400, '5 active 0 500 day 0')).toBe(1);
  expect(faults(400, '5 active 0 500 day 0', { budgetMicros: 500 })).toBe(1);
  expect(faults(null, '5 active 0 400 day 0', { status: 'revoked' })).toBe(1);
  expect(faults(null, '5 revoked 0 400 day 0', { status: 'revoked' })).toBe(0);
  const ended = [{ ...team, change: { micros: null, sentMs: 100, doneMs: 200 } }];
  expect(faults(null, '5 active 0 400 day 0', { status: 'revoked' }, ended)).toBe(0);
});

describe('the key trees of a plan', () => {
  it('have up to four levels, no limit above that of a parent, and budgets of each period', () => {
    const [levels, periods] = [new Set<number>(), new Set<string>()];
    for (let seed = 0; seed < 40; seed++) {
      const trees = drawTrees(seed, 3);
      expect(drawTrees(seed, 3)).toEqual(trees);
      for (const tree of trees) for (const i of tree.keys()) levels.add(checkKey(tree, i, periods));
    }
    expect([...levels].sort()).toEqual([2, 3, MAX_LEVELS]);
    expect([...periods].sort()).toEqual(['day', 'month', 'total', 'week']);
  });

  function checkKey(tree: PlannedTree, i: number, periods: Set<string>): number {
    const { parent, budget, rateLimit } = tree[i] as PlannedTree[number];
    if (budget !== null) periods.add(budget.period);
    let level = 2;
    for (let above = parent; above !== null; above = (tree[above] as PlannedTree[number]).parent) {
      const its = tree[above] as PlannedTree[number];
      expect(above).toBeLessThan(i);
      expect(rateLimit).toBeLessThanOrEqual(its.rateLimit);
      if (budget !== null && its.budget !== null) expect(budget.micros).toBeLessThanOrEqual(its.budget.micros);
      level++;
    }
    return level;
  }

  it('are changed in some plans: a budget is lowered, or a key revoked', () => {
    const plans = Array.from({ length: 30 }, (_, seed) => makePlan(seed));
    const changes = plans.flatMap((plan) => {
      expect(drawChanges(plan.seed, plan.trees, plan.loadMs)).toEqual(plan.changes);
      return plan.changes.map((change) => ({ ...change, planned: plan.trees[change.buyer]?.[change.key] }));
    });
    for (const { micros, planned } of changes) expect(micros ?? -1).toBeLessThan(planned?.budget?.micros ?? 0);
    expect(new Set(changes.map(({ micros }) => micros === null))).toEqual(new Set([true, false]));
  });

  it('exist in every kind of plan, and the chain of a key ends with that key', () => {
    for (const make of [makePlan, makeClusterPlan, makeHistoryPlan])
      expect(Array.from({ length: 20 }, (_, seed) => make(seed)).some(({ trees }) => trees.flat().length > 0)).toBe(
        true,
      );
    expect(chainOf(buyer, 'agent')).toEqual([team, agent]);
    expect(chainOf(buyer, 'own')).toEqual([]);
  });
});

describe('the check of uncharged calls', () => {
  const plain = { id: 'plain', priceMicros: 100, freeCalls: 0, maxMicros: null, hasCredentials: false, isMcp: false };
  const [free, own, mcp] = [
    { ...plain, id: 'free', freeCalls: 2 },
    { ...plain, id: 'own', hasCredentials: true },
    { ...plain, id: 'mcp', isMcp: true },
  ] as const;
  const listings = [plain, free, own, mcp];
  const told = (listing: typeof plain, path: string, more: Partial<Told> = {}): Told => {
    const call = { listing, path, accountId: 'account', requestId: 'id', usageId: 'id', status: 200, code: null };
    return { ...call, amountMicros: 100, freeTier: false, freeLeft: null, atMs: 100, endMs: 105, ...more } as Told;
  };
  const kept = ({ id }: typeof plain, path: string, more: Partial<Row> = {}): Row =>
    ({
      serviceId: id,
      path,
      usageId: 'id',
      outcome: 'completed',
      status: 200,
      amountMicros: 100,
      freeTier: false,
      ...more,
    }) as Row;
  const ofRow = (row: Row): number =>
    checkUncharged({ told: [], rows: [row], listings, mayBeForgotten: () => false }).length;
  const ofTold = (calls: readonly Told[], rows: readonly Row[] = [], isForgotten = false): number =>
    checkUncharged({ told: calls, rows, listings, mayBeForgotten: () => isForgotten }).length;

  it('expects a refused call to have no record', () => {
    const refused = [
      [mcp, '/fast/unaccepted'],
      [plain, '/fast/free-only'],
      [plain, '/api/v1/proxy/plain/fast'],
    ] as const;
    for (const [listing, path] of refused) {
      expect([ofRow(kept(listing, path)), ofRow(kept(listing, path, { amountMicros: 0 }))]).toEqual([1, 1]);
      expect(ofTold([told(listing, path, { amountMicros: 0 })])).toBe(1);
      expect(ofTold([told(listing, path, { usageId: null, status: 406 })])).toBe(0);
    }
    expect(ofRow(kept(mcp, '/fast'))).toBe(0);
  });

  it('expects a refund when the service refuses credentials that only the listing has sent, and otherwise none', () => {
    const back = { outcome: 'refunded:upstream_denied', amountMicros: 0, status: 401 };
    expect(ofRow(kept(own, '/denied/401', back))).toBe(0);
    expect(ofRow(kept(own, '/denied/401', { status: 401 }))).toBe(1);
    expect(ofRow(kept(own, '/denied/401', { status: 499 }))).toBe(0);
    for (const path of ['/denied/401/own', '/denied/403']) expect(ofRow(kept(own, path, back))).toBe(1);
    expect(ofRow(kept(plain, '/denied/401', back))).toBe(1);
    expect(ofRow(kept(mcp, '/redirect', { status: 307 }))).toBe(1);
    expect(ofTold([told(own, '/denied/429', { status: 429 })])).toBe(1);
    expect(ofTold([told(own, '/denied/429', { status: 429, amountMicros: 0 })])).toBe(0);
  });

  it('expects a free call if the caller asked for free calls only', () => {
    expect(ofRow(kept(free, '/fast/free-only'))).toBe(1);
    expect(ofRow(kept(free, '/fast/free-only', { amountMicros: 0 }))).toBe(1);
    expect(ofRow(kept(free, '/fast/free-only', { amountMicros: 0, freeTier: true }))).toBe(0);
    expect(ofTold([told(free, '/fast/free-only', { freeLeft: 2 })])).toBe(1);
  });

  it('accepts a refusal for lack of free calls only if other calls may have used them', () => {
    const refused = told(free, '/fast/free-only', {
      usageId: null,
      status: 402,
      code: 'free_calls_used',
      atMs: 200,
      endMs: 205,
    });
    const taking = told(free, '/fast', { freeTier: true, freeLeft: 1, amountMicros: 0 });
    const last = { ...taking, freeLeft: 0 };
    expect(ofTold([refused, taking])).toBe(1);
    expect(ofTold([refused, taking, last])).toBe(0);
    expect(ofTold([refused, taking, { ...last, accountId: 'another' }])).toBe(2);
  });

  it('expects callers of free calls to be told how many are left', () => {
    const taking = told(free, '/fast', { freeTier: true, amountMicros: 0 });
    const rows = [kept(free, '/fast', { freeTier: true, amountMicros: 0 })];
    const left = (freeLeft: number | null, isForgotten = false): number =>
      ofTold([{ ...taking, freeLeft }], rows, isForgotten);
    expect([null, 0, 1, 2].map((freeLeft) => left(freeLeft))).toEqual([1, 1, 0, 1]);
    expect(left(2, true)).toBe(0);
    expect(ofTold([told(plain, '/fast', { freeLeft: 0 })])).toBe(1);
  });
});
