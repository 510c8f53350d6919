import { describe, expect, it } from 'vitest';
import {
  type AccountState,
  agrees,
  compare,
  type Hold,
  type Settled,
  type StreamedCall,
  type Wallet,
} from '../../../src/ledger/reconcile/identity.ts';

const SERVICE = 'service';
const KEY = 'key';
const hold = (usageId: string, amountMicros: number, freeTier = false): Hold => ({
  usageId,
  text: `${amountMicros}\t…`,
  accountId: 'a',
  serviceId: SERVICE,
  amountMicros,
  freeTier,
  budgets: amountMicros === 0 ? [] : [{ keyId: KEY, period: 7 }],
});
const streamed = (usageId: string, chargedMicros: number, freeCall = false): StreamedCall => ({
  usageId,
  accountId: 'a',
  serviceId: SERVICE,
  chargedMicros,
  freeCall,
  budgets: [{ keyId: KEY, period: 7 }],
});
const settled = {
  balanceMicros: 2_000,
  missingCreditsMicros: 100,
  lostCreditsMicros: 0,
  missingRefunds: [],
  creditSeq: 3,
  debitSeq: 4,
  debitedMicros: 50,
  begunDebitSeq: null,
  begunDebitMicros: null,
  freeUsed: new Map([[SERVICE, 2]]),
  budgets: new Map([[KEY, { period: 7, spentMicros: 100 }]]),
};
const state: AccountState = {
  accountId: 'a',
  wallet: {
    balanceMicros: 1_000,
    creditSeq: 2,
    freeUsed: new Map([[SERVICE, 4]]),
    budgets: new Map([[KEY, { period: 7, spentMicros: 1_000 }]]),
    repairId: 0,
    damagedFields: [],
    debitSeq: 4,
    debitedMicros: 50,
  },
  settled,
  holds: [hold('h1', 300), hold('h2', 0, true)],
  streamed: [streamed('s1', 600), streamed('s2', 0, true), streamed('s3', 77)],
  // This call is committed in Postgres, and its event is not yet deleted from the stream.
  stored: new Map([['s3', { amountMicros: 77, freeCall: false }]]),
  isIncomplete: false,
};

describe('the money identity', () => {
  it('is true when wallet = balance − missing credits − stream − holds, and the free calls add up', () => {
    const comparison = compare(state);
    expect(comparison).toMatchObject({ settledMicros: 1_900, streamedMicros: 600, heldMicros: 300, driftMicros: 0 });
    expect(agrees(comparison)).toBe(true);
  });

  it.each<[string, Partial<AccountState>, number]>([
    ['the wallet has more than it should', { wallet: { ...state.wallet, balanceMicros: 1_007 } }, 7],
    ['a charge is missing in the stream', { streamed: state.streamed.slice(1) }, -600],
    ['a field of the wallet is damaged', { wallet: { ...state.wallet, damagedFields: ['free:x'] } }, 0],
    ['a hold is missing', { holds: state.holds.slice(1) }, -300],
    ['Postgres has a call that was not charged', { settled: { ...settled, balanceMicros: 1_990 } }, 10],
  ])('is false when %s', (_, change, driftMicros) => {
    const comparison = compare({ ...state, ...change });
    expect(comparison.driftMicros).toBe(driftMicros);
    expect(agrees(comparison)).toBe(false);
  });

  it.each<[string, Partial<Wallet>, Partial<Settled>, number]>([
    ['Redis came back without a debit', { debitSeq: 3, debitedMicros: 40, balanceMicros: 1_010 }, {}, 10],
    ['Redis came back and decided otherwise', { debitedMicros: 40, balanceMicros: 1_010 }, {}, 10],
    [
      'the wallet has taken a debit that is begun',
      { debitSeq: 5, debitedMicros: 57, balanceMicros: 993 },
      { begunDebitSeq: 5, begunDebitMicros: 7 },
      0,
    ],
    ['the wallet has refused a debit that is begun', { debitSeq: 5 }, { begunDebitSeq: 5, begunDebitMicros: 7 }, 0],
  ])('is true when %s', (_, wallet, change, lostDebitsMicros) => {
    const comparison = compare({
      ...state,
      wallet: { ...state.wallet, ...wallet },
      settled: { ...settled, ...change },
    });
    expect(comparison).toMatchObject({ driftMicros: 0, lostDebitsMicros });
    expect(agrees(comparison)).toBe(true);
  });

  it('is false when the wallet has taken a debit that Postgres does not know', () => {
    const wallet = { ...state.wallet, debitSeq: 5, debitedMicros: 57, balanceMicros: 993 };
    const drift = { driftMicros: -7, lostDebitsMicros: 0 };
    expect(compare({ ...state, wallet })).toMatchObject(drift);
    // One of a Postgres that was given up, whose number another one has got since.
    const begun = { ...settled, begunDebitSeq: 5, begunDebitMicros: 8 };
    expect(compare({ ...state, wallet, settled: begun })).toMatchObject(drift);
  });

  const drifts = (budgets: Wallet['budgets'], change: Partial<AccountState> = {}) =>
    compare({ ...state, wallet: { ...state.wallet, budgets }, ...change }).budgetDrifts;
  const spending = (period: number, spentMicros: number) => new Map([[KEY, { period, spentMicros }]]);

  it('is false when what was spent of a budget does not add up, or belongs to an earlier period', () => {
    expect(drifts(state.wallet.budgets)).toEqual([]);
    const drift = { keyId: KEY, expectedPeriod: 7, expectedMicros: 1_000 };
    expect(drifts(spending(7, 999))).toEqual([{ ...drift, period: 7, spentMicros: 999 }]);
    expect(drifts(spending(6, 1_000))).toEqual([{ ...drift, period: 6, spentMicros: 1_000 }]);
    expect(drifts(new Map())).toEqual([{ ...drift, period: 0, spentMicros: 0 }]);
    expect(agrees(compare({ ...state, wallet: { ...state.wallet, budgets: new Map() } }))).toBe(false);
  });

  it('is true when the wallet counts in a later period, in which only calls that are not stored yet have spent', () => {
    expect(drifts(spending(8, 0))).toEqual([]);
    const later = { ...streamed('s4', 5), budgets: [{ keyId: KEY, period: 8 }] };
    expect(drifts(spending(8, 5), { streamed: [...state.streamed, later] })).toEqual([]);
  });

  it('counts a call once if its settlement came back in part: its event beside its hold, or two events', () => {
    const ended = { ...streamed('h1', 120), budgets: [] };
    const half = compare({ ...state, streamed: [...state.streamed, ended] });
    expect(half).toMatchObject({
      driftMicros: 120 - 300,
      storedHolds: [{ usageId: 'h1', stored: { amountMicros: 120 } }],
    });
    expect(half.expectedMicros).toBe(compare(state).expectedMicros + 300 - 120);
    const twice = [...state.streamed, streamed('s1', 300)];
    expect(compare({ ...state, streamed: twice })).toEqual(compare(state));
    const free = compare({ ...state, streamed: [...state.streamed, streamed('h2', 0, true)] });
    expect(free).toMatchObject({ freeDrifts: [], storedHolds: [{ usageId: 'h2', stored: { freeCall: true } }] });
  });

  it('is false when the free calls do not add up, or when a hold belongs to a stored call', () => {
    const free = compare({ ...state, settled: { ...settled, freeUsed: new Map([[SERVICE, 3]]) } });
    expect(free.freeDrifts).toEqual([{ serviceId: SERVICE, used: 4, expected: 5 }]);
    expect(agrees(free)).toBe(false);
    const stored = new Map([...state.stored, ['h1', { amountMicros: 300, freeCall: false }]]);
    const back = compare({ ...state, settled: { ...settled, balanceMicros: 1_700 }, stored });
    expect(back.driftMicros).toBe(0);
    expect(back.storedHolds).toMatchObject([{ usageId: 'h1', stored: { amountMicros: 300 } }]);
    expect(agrees(back)).toBe(false);
  });
});
