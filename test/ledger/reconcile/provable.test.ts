import { describe, expect, it } from 'vitest';
import type { Comparison, Hold, StoredCall } from '../../../src/ledger/reconcile/identity.ts';
import { type Evidence, explain, type RecentCall } from '../../../src/ledger/reconcile/provable.ts';

const START = 1_000_000;
const SERVICE = 'service';
const call = (secondsBefore: number, amountMicros: number): RecentCall => ({
  admittedAtMs: START - secondsBefore * 1000,
  amountMicros,
  freeServiceId: amountMicros === 0 ? SERVICE : null,
});
const CALLS = [call(2, 5), call(2.1, 0), call(2.2, 7), call(3, 11), call(90, 13)];

const comparison = (given: Partial<Comparison>): Comparison => ({
  accountId: 'a',
  walletMicros: 0,
  settledMicros: 0,
  streamedMicros: 0,
  heldMicros: 0,
  expectedMicros: 0,
  driftMicros: 0,
  lostDebitsMicros: 0,
  freeDrifts: [],
  storedHolds: [],
  damagedFields: [],
  isIncomplete: false,
  ...given,
});
const WALLET = {
  balanceMicros: 0,
  creditSeq: 4,
  freeUsed: new Map(),
  repairId: 0,
  damagedFields: [],
  debitSeq: 2,
  debitedMicros: 50,
};
const evidence = (given: Partial<Evidence> = {}): Evidence => ({
  wallet: WALLET,
  settled: {
    balanceMicros: 0,
    missingCreditsMicros: 0,
    lostCreditsMicros: 0,
    creditSeq: 5,
    freeUsed: new Map(),
    debitSeq: 2,
    debitedMicros: 50,
    begunDebitSeq: 3,
  },
  redisStartedAtMs: START,
  driftingSinceMs: null,
  agreedSinceStart: false,
  calls: CALLS,
  ...given,
});
const isProven = (given: Partial<Comparison>, other: Partial<Evidence> = {}): boolean =>
  'reason' in explain(comparison(given), evidence(other));
const storedHold = (amountMicros: number, stored: StoredCall, freeTier = false): Hold & { stored: StoredCall } => ({
  usageId: 'u',
  text: '',
  accountId: 'a',
  serviceId: SERVICE,
  amountMicros,
  freeTier,
  stored,
});

describe('a wallet that is too high', () => {
  it('is explained by the charges of consecutive last calls before Redis started', () => {
    for (const driftMicros of [5, 12, 23, 36]) expect(isProven({ driftMicros }), String(driftMicros)).toBe(true);
    // Neither a selection of these calls, nor older calls without the youngest, explain it.
    for (const driftMicros of [1, 7, 16, 18, 11, 13, 24, 37]) expect(isProven({ driftMicros })).toBe(false);
  });

  it("may be explained without calls in the second around Redis's start, which may have come after it", () => {
    const calls = [call(-0.5, 3), call(0.8, 4), ...CALLS];
    for (const driftMicros of [3, 7, 12, 19, 4, 9, 16, 5]) expect(isProven({ driftMicros }, { calls })).toBe(true);
    for (const driftMicros of [8, 11, 17]) expect(isProven({ driftMicros }, { calls })).toBe(false);
  });

  it('is not explained when the drift began before Redis started', () => {
    expect(isProven({ driftMicros: 5 }, { driftingSinceMs: START - 60_000 })).toBe(false);
    expect(isProven({ driftMicros: 5 }, { driftingSinceMs: START + 60_000 })).toBe(true);
  });

  it('is not explained in a shard with holds or events that cannot be read', () => {
    expect(isProven({ driftMicros: 5, isIncomplete: true })).toBe(false);
  });

  it('is not explained when a field of the wallet is damaged', () => {
    expect(isProven({ driftMicros: 5, damagedFields: ['free:x'] })).toBe(false);
  });

  it('is not explained when the account agreed after Redis started', () => {
    expect(isProven({ driftMicros: 5 }, { agreedSinceStart: true })).toBe(false);
  });

  it('is not explained when the wallet has credits that Postgres does not know: then Postgres is older', () => {
    expect(isProven({ driftMicros: 5 }, { wallet: { ...WALLET, creditSeq: 6 } })).toBe(false);
  });

  it('is not explained when the wallet has a debit that Postgres does not know', () => {
    expect(isProven({ driftMicros: 5 }, { wallet: { ...WALLET, debitSeq: 3 } })).toBe(true);
    expect(isProven({ driftMicros: 5 }, { wallet: { ...WALLET, debitSeq: 4 } })).toBe(false);
  });
});

describe('a wallet that is too low', () => {
  it('is not explained by calls: an event may be missing in Postgres', () => {
    for (const driftMicros of [-1, -5, -36]) expect(isProven({ driftMicros })).toBe(false);
  });

  it('is explained by the hold of a refunded call that came back with Redis', () => {
    const storedHolds = [storedHold(9, { amountMicros: 0, freeCall: false })];
    expect(isProven({ driftMicros: -9, storedHolds })).toBe(true);
    expect(isProven({ driftMicros: -9 + 12, storedHolds })).toBe(true);
    expect(isProven({ driftMicros: -10, storedHolds })).toBe(false);
  });
});

it('a hold of a charged call is explained when the balance is right', () => {
  const storedHolds = [storedHold(9, { amountMicros: 9, freeCall: false })];
  expect(isProven({ storedHolds })).toBe(true);
  expect(isProven({ driftMicros: 9, storedHolds })).toBe(false);
});

describe('free calls', () => {
  const free = (used: number, expected: number) => ({ freeDrifts: [{ serviceId: SERVICE, used, expected }] });

  it('counted too low are explained when that many were stored before Redis started', () => {
    expect(isProven(free(1, 2))).toBe(true);
    expect(isProven(free(1, 3))).toBe(false);
    expect(isProven({ ...free(1, 2), driftMicros: 1 })).toBe(false);
  });

  it('counted too high are explained only by holds of refunded calls that came back with Redis', () => {
    expect(isProven(free(2, 1))).toBe(false);
    const storedHolds = [storedHold(0, { amountMicros: 0, freeCall: false }, true)];
    expect(isProven({ ...free(2, 1), storedHolds })).toBe(true);
  });
});
