// The checks of a history's end, tried with ends that are wrong.

import { describe, expect, it } from 'vitest';
import { uuidv7 } from '../../../src/platform/ids.ts';
import { freeField } from '../../../src/platform/redis-keys.ts';
import type { Row } from '../books.ts';
import type { Told } from '../callers.ts';
import { Losses } from '../losses.ts';
import type { Listing } from '../market.ts';
import { checkPromises } from '../promises.ts';
import type { GivenBack } from '../refunds.ts';
import type { Stack } from '../stack.ts';
import { checkBalances } from './balances.ts';
import { GivenUp } from './given-up.ts';
import { checkMoves, isDriftOfMoves, type Move, movesOf, type Posted } from './money.ts';
import { makeClusterHistoryPlan, makeHistoryPlan, withClocks } from './plan.ts';
import { checkWallet } from './wallets.ts';

const accountId = 'account';
const credit: Move = { accountId, reference: 'credit', micros: 500, atMs: 10, endMs: 20, isDone: true };
const debit: Move = { accountId, reference: 'debit', micros: -200, atMs: 30, endMs: 40, isDone: true };
const posted = (...moves: readonly Move[]): Posted =>
  new Map(moves.map(({ reference, micros }) => [reference, { accountId, micros }]));
const NONE: ReadonlySet<string> = new Set();

describe('confirmed credits and debits', () => {
  it('must exist, unless the Postgres that had them was given up', () => {
    expect(checkMoves([credit, debit], posted(credit, debit), NONE)).toEqual([]);
    expect(checkMoves([credit, debit], posted(debit), NONE)).toEqual([expect.stringContaining('not there')]);
    expect(checkMoves([credit, debit], posted(debit), new Set(['credit']))).toEqual([]);
  });

  it('must exist as they were requested, and nothing else may exist', () => {
    expect(checkMoves([credit], posted({ ...credit, micros: 501 }), NONE)).toHaveLength(1);
    expect(checkMoves([{ ...debit, isDone: false }], posted(debit), NONE)).toEqual([
      expect.stringContaining('refused'),
    ]);
    expect(checkMoves([], posted(debit), NONE)).toEqual(['nobody asked for debit']);
  });
});

describe('a refund of a call', () => {
  const sent = (status: number, gaveMicros: number | null, more: Partial<GivenBack> = {}): GivenBack =>
    ({
      accountId,
      reference: 'refund',
      costMicros: 100,
      micros: null,
      status,
      gaveMicros,
      atMs: 50,
      endMs: 60,
      ...more,
    }) as GivenBack;

  it('moves the amount that its sender was told, once for each reference', () => {
    const [made] = movesOf([sent(200, 70, { endMs: 55 }), sent(201, 70)]);
    expect(made).toMatchObject({ micros: 70, atMs: 50, endMs: 60, isDone: true, refund: 'in the wallet' });
    expect(movesOf([sent(200, 70)])).toMatchObject([{ isDone: true, refund: 'to come' }]);
    expect(movesOf([sent(409, null), sent(404, null)])).toMatchObject([
      { micros: 100, isDone: false, refund: 'refused' },
    ]);
    // The Postgres that had the first one was given up, and in the other one less is left of the call.
    expect(movesOf([sent(201, 40, { endMs: 90 }), sent(201, 70)])).toMatchObject([{ micros: 40 }]);
  });

  it('may be missing only if the Postgres that had it is gone', () => {
    const moves = movesOf([sent(201, 70)]);
    expect(checkMoves(moves, posted(...moves), NONE)).toEqual([]);
    expect(checkMoves(moves, posted(), NONE)).toHaveLength(1);
    expect(checkMoves(moves, posted(), new Set(['refund']))).toEqual([]);
    expect(checkMoves(movesOf([sent(409, null)]), posted(...moves), NONE)).toHaveLength(1);
  });
});

describe('a call that Postgres once had', () => {
  const had = (...calls: readonly [string, number][]) => ({
    calls: new Map(calls.map(([id, micros]) => [id, { accountId, micros }])),
    moves: new Map(),
    otherDebits: NONE,
  });
  const amounts = ({ calls }: ReturnType<typeof had>) =>
    new Map(Array.from(calls, ([id, { micros }]) => [id, micros] as const));

  it('must exist in the end with the same amount', () => {
    const givenUp = new GivenUp();
    givenUp.saw(had(['a', 7], ['b', 7]));
    expect(givenUp.missing(new Map([['a', 7]]))).toEqual(['b was stored with 7, and is now gone']);
    expect(givenUp.missing(new Map(Object.entries({ a: 0, b: 7 })))).toEqual(['a was stored with 7, and is now 0']);
  });

  it('may be missing only if the Postgres that had it is gone', () => {
    const givenUp = new GivenUp();
    const [newer, older] = [had(['a', 7], ['b', 7]), had(['a', 7])];
    givenUp.replaced(newer, older);
    expect(givenUp.missing(amounts(older))).toHaveLength(1);
    givenUp.giveUp(newer, older);
    expect(givenUp.missing(amounts(older))).toEqual([]);
    expect(givenUp.missing(new Map())).toEqual(['a was stored with 7, and is now gone']);
  });

  it('must not be missing when the standby that took over had everything that was confirmed', () => {
    const givenUp = new GivenUp();
    const [primary, standby] = [had(['a', 7], ['b', 7]), had(['a', 7])];
    givenUp.saw(primary);
    givenUp.tookOver(primary, standby);
    expect(givenUp.missing(amounts(standby))).toEqual(['b was stored with 7, and is now gone']);
  });
});

describe('a drift of credits and debits that were lost with a Postgres', () => {
  const drift = { accountId, driftMicros: -7, freeDrifts: [], notRepaired: 'the wallet has … Postgres does not know' };
  const known = { calls: new Map([['a', { accountId, micros: 7 }]]), moves: new Map() };
  const nothing = { calls: new Map(), moves: new Map(), otherDebits: NONE };
  const refused: Move = { ...debit, isDone: false };

  it.each(['replaced', 'giveUp'] as const)(
    'may come from a debit that its wallet refused, or that had only begun (%s)',
    (what) => {
      const givenUp = new GivenUp();
      givenUp.saw({ ...known, otherDebits: new Set() });
      givenUp[what]({ ...known, otherDebits: new Set(['debit']) }, nothing);
      givenUp.giveUp({ ...known, otherDebits: new Set() }, nothing);
      expect(isDriftOfMoves(drift, [refused], givenUp, [])).toBe(true);
      expect(isDriftOfMoves({ ...drift, driftMicros: -6 }, [refused], givenUp, [])).toBe(false);
      expect(isDriftOfMoves(drift, [{ ...refused, reference: 'another' }], givenUp, [])).toBe(false);
    },
  );

  it('lacks no more free calls than Redis may have lost, and only while the drift is not repaired', () => {
    const givenUp = new GivenUp();
    givenUp.giveUp({ ...nothing, moves: posted(debit) }, nothing);
    const lacking = { ...drift, driftMicros: -200, freeDrifts: [{ serviceId: 'service', used: 5, expected: 7 }] };
    expect(isDriftOfMoves(lacking, [debit], givenUp, [0, 0])).toBe(true);
    expect(isDriftOfMoves(lacking, [debit], givenUp, [0])).toBe(false);
    expect(isDriftOfMoves({ ...lacking, notRepaired: '' }, [debit], givenUp, [0, 0])).toBe(false);
  });

  describe('may come from a refund that only a primary had, and that was refused after the standby had taken over', () => {
    // Of all that was left: 290 of the call had been given back before.
    const refund: Move = { ...credit, reference: 'refund', micros: 1_000, isDone: false, refund: 'refused' };
    const primary = { ...nothing, moves: posted(credit, { ...refund, micros: 710 }) };
    const standby = { ...nothing, moves: posted(credit) };
    const ahead = { ...drift, driftMicros: 710 };
    const taken = (): GivenUp => {
      const givenUp = new GivenUp();
      givenUp.tookOver(primary, standby);
      return givenUp;
    };

    it('with the amount that the primary had', () => {
      expect(isDriftOfMoves(ahead, [credit, refund], taken(), [])).toBe(true);
      expect(isDriftOfMoves({ ...ahead, driftMicros: 1_000 }, [credit, refund], taken(), [])).toBe(false);
      expect(isDriftOfMoves({ ...ahead, driftMicros: 709 }, [credit, refund], taken(), [])).toBe(false);
      expect(isDriftOfMoves(ahead, [credit, refund], new GivenUp(), [])).toBe(false);
    });

    it('and may include the charges of calls that were lost with another Postgres', () => {
      const givenUp = taken();
      givenUp.saw({ ...known, otherDebits: NONE });
      expect(isDriftOfMoves({ ...ahead, driftMicros: 703 }, [credit, refund], givenUp, [])).toBe(false);
      givenUp.giveUp({ ...known, otherDebits: NONE }, nothing);
      expect(isDriftOfMoves({ ...ahead, driftMicros: 703 }, [credit, refund], givenUp, [])).toBe(true);
    });

    it('and does not excuse the loss of a refund that was confirmed', () => {
      const confirmed = { ...refund, micros: 710, isDone: true, refund: 'in the wallet' } as const;
      expect(checkMoves([credit, confirmed], standby.moves, taken().moves)).toHaveLength(1);
    });
  });
});

describe('a call whose settlement waited for a failover, and was then lost with the end of a file', () => {
  const usageId = uuidv7(1_000_000);
  const call = {
    accountId,
    requestId: usageId,
    usageId,
    atMs: 1_000_000,
    endMs: 1_000_100,
    amountMicros: 1_000,
    balanceMicros: 5_000,
    freeTier: false,
    complete: true,
    status: 200,
  } as Told;
  const row = { usageId, accountId, outcome: 'abandoned', status: 0, amountMicros: 0, freeTier: false } as Row;
  const faultsIf = (written: readonly string[]): string[] => {
    const losses = new Losses(true);
    const shards = new Set([0]);
    losses.add({ group: 0, shards, fromMs: 1_001_000, toMs: 1_001_500, why: 'file cut' });
    losses.replaced(0);
    losses.addWrites(0, written);
    const mayBeLost = (_: string, fromMs: number, toMs: number, id: string): boolean =>
      losses.allow({ shard: 0, fromMs, toMs, usageId: id });
    const of = { told: [call], rows: [row], seen: new Set([usageId]), held: new Map(), losesGateway: false };
    return checkPromises({ ...of, mayBeLost, mayVanish: mayBeLost }).faults;
  };

  it('may be swept, and its caller served for nothing', () => {
    expect(faultsIf([usageId])).toEqual([]);
  });

  it('must be charged if nothing of it was in that end', () => {
    expect(faultsIf([uuidv7()])).toEqual([
      expect.stringContaining('a charge that was not made'),
      `swept for no reason: ${usageId}`,
    ]);
  });
});

it('a wallet may leave Redis while it is looked at, to be loaded again', async () => {
  const listing = { id: 'service', freeCalls: 5 } as Listing;
  const rows = [{ accountId, serviceId: 'service', freeTier: true, outcome: 'completed', amountMicros: 0 } as Row];
  const looks: Record<string, string>[] = [{ balance: '500', [freeField('service')]: '1' }];
  const stack = {
    stores: {
      keys: { shardOf: () => 0, wallet: () => 'wallet' },
      redis: {
        command: async (_: string, [, field]: readonly string[]) => {
          const wallet = looks.shift() ?? {};
          return field === undefined ? wallet : (wallet[field] ?? null);
        },
      },
      sql: async ([text]: readonly string[]) => [text?.includes('free_usage') ? { used: 1 } : { balance: '500' }],
    },
  } as unknown as Stack;
  const evidence = { rows, listings: [listing], movedMicros: 500, reported: null, overspentMicros: 0 };
  expect(await checkWallet(stack, accountId, { ...evidence, mayBeForgotten: () => false })).toEqual([]);
});

describe('a balance that a caller was told', () => {
  const told = (requestId: string, atMs: number, balanceMicros: number | null): Told =>
    ({
      requestId,
      atMs,
      endMs: atMs + 5,
      balanceMicros,
      keyId: 'key',
      complete: true,
      listing: { priceMicros: 100, maxMicros: null },
    }) as Told;
  const calls = [told('a', 100, null), told('b', 200, 100)];
  const rows = new Map(calls.map(({ requestId }) => [requestId as string, { amountMicros: 100 } as Row]));
  const faults = (balanceMicros: number, isForgotten = false, more: readonly Move[] = []): string[] =>
    checkBalances({
      buyer: { key: { key_id: 'key', secret: '', account_id: accountId }, children: [], creditedMicros: 500 },
      told: [calls[0] as Told, told('b', 200, balanceMicros)],
      rows,
      moves: [credit, debit, ...more],
      mayBeForgotten: () => isForgotten,
      isMoveForgotten: () => false,
    });

  it('equals what earlier credits, debits and calls leave', () => {
    expect(faults(100)).toEqual([]);
    expect(faults(99)).toHaveLength(1);
    // The call itself may not be charged in the end.
    expect(faults(200)).toEqual([]);
    expect(faults(201)).toHaveLength(1);
  });

  it('includes a refund once its sender was told that the refund is made', () => {
    const refund = { ...credit, micros: 50, endMs: 150, reference: 'refund', refund: 'in the wallet' } as const;
    const outside = (made: Move): number[] => [99, 149, 251].map((micros) => faults(micros, false, [made]).length);
    expect(outside(refund)).toEqual([1, 1, 1]);
    expect(faults(150, false, [refund])).toEqual([]);
    expect(outside({ ...refund, refund: 'to come' })).toEqual([1, 0, 1]);
    expect(faults(201, false, [{ ...refund, isDone: false, refund: 'refused' }])).toHaveLength(1);
  });

  it('may be higher while a store has forgotten a call', () => {
    expect(faults(300, true)).toEqual([]);
    expect(faults(301, true)).toHaveLength(1);
  });
});

it('a plan has at least two faults, and the same seed gives the same plan', () => {
  for (let seed = 0; seed < 300; seed++) {
    const one = makeHistoryPlan(seed);
    const many = makeClusterHistoryPlan(seed, 3);
    for (const { history } of [one, many])
      expect(history.stores.length + history.writers.length).toBeGreaterThanOrEqual(2);
    expect(makeHistoryPlan(seed)).toEqual(one);
  }
});

it('wrong clocks leave the rest of a history unchanged, and do not affect the nodes of a cluster', () => {
  for (let seed = 0; seed < 300; seed++) {
    for (const plan of [makeHistoryPlan(seed), makeClusterHistoryPlan(seed, 3)]) {
      const { history, ...rest } = withClocks(plan);
      expect({ ...rest, history: { ...history, clocks: [] } }).toEqual(plan);
      expect(history.clocks[0]?.whose.length).toBeGreaterThan(0);
      if (plan.cluster !== null) expect(history.clocks[0]?.whose).not.toContain('redis');
    }
  }
});
