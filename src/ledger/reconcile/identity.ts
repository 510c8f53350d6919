/**
 * Compares what was read of one account with the money identity (ARCHITECTURE.md, 'Invariants'). Amounts in micro-USD.
 *
 *   wallet = settled balance − credits the wallet lacks + debits the wallet lacks − debits that are not stored
 *            − events in the stream that are not stored − open holds
 *
 * Each step of a call moves money between two of these terms atomically, so the identity holds at every instant, whatever is under
 * way. The free calls used of each service obey a similar identity:
 *
 *   used in the wallet = used in Postgres + events in the stream that are not stored + open holds
 *
 * So does what a key has spent of its budget in the wallet's period of it, which is the latest that any of these knows.
 */

import type { BudgetPart } from '../usage-event.ts';

/** What a key has spent of its budget in a period. */
export type Spending = { readonly period: number; readonly spentMicros: number };

export type Wallet = {
  /** 0 when the balance is damaged. */
  readonly balanceMicros: number;
  readonly creditSeq: number;
  /** Number of the last debit that the wallet has decided; 0: none. */
  readonly debitSeq: number;
  /** The sum of all its debits. */
  readonly debitedMicros: number;
  /** Number of free calls used, by service. */
  readonly freeUsed: ReadonlyMap<string, number>;
  /** By key. */
  readonly budgets: ReadonlyMap<string, Spending>;
  /** Number of the last repair made in this wallet; 0: none. */
  readonly repairId: number;
  /** Names of the fields that are missing, or whose value is not an integer within 2^53. The scripts refuse such wallets, too. */
  readonly damagedFields: readonly string[];
};

/** The last credits and debits of an account that Postgres knows. */
export type Numbers = {
  readonly creditSeq: number;
  /** Number of the last debit that has ended; 0: none. */
  readonly debitSeq: number;
  /** The sum of the debits up to `debitSeq`. */
  readonly debitedMicros: number;
  /** Number of the debit that is begun; null: none. */
  readonly begunDebitSeq: number | null;
  /** The amount of the begun debit. */
  readonly begunDebitMicros: number | null;
};

/** What Postgres knows about the account. */
export type Settled = Numbers & {
  /** The balance includes exactly the debits up to `debitSeq`. */
  readonly balanceMicros: number;
  /** The part of `balanceMicros` from credits that the wallet does not have yet. */
  readonly missingCreditsMicros: number;
  /** The part of `missingCreditsMicros` that the wallet once had: these credits were marked as applied before it was read. */
  readonly lostCreditsMicros: number;
  /** Refunds among those credits: `budgets` already excludes their amounts. */
  readonly missingRefunds: readonly { readonly amountMicros: number; readonly budgets: readonly BudgetPart[] }[];
  readonly freeUsed: ReadonlyMap<string, number>;
  /** The latest period of each key. */
  readonly budgets: ReadonlyMap<string, Spending>;
};

export type Hold = {
  readonly usageId: string;
  /** The hold as written in Redis. */
  readonly text: string;
  readonly accountId: string;
  readonly serviceId: string;
  readonly amountMicros: number;
  readonly freeTier: boolean;
  readonly budgets: readonly BudgetPart[];
};

export type StreamedCall = {
  readonly usageId: string;
  readonly accountId: string;
  readonly serviceId: string;
  readonly chargedMicros: number;
  /** Whether the call used up a free call. */
  readonly freeCall: boolean;
  readonly budgets: readonly BudgetPart[];
};

/** A call that Postgres has stored. */
export type StoredCall = { readonly amountMicros: number; readonly freeCall: boolean };

export type AccountState = {
  readonly accountId: string;
  readonly wallet: Wallet;
  readonly settled: Settled;
  readonly holds: readonly Hold[];
  readonly streamed: readonly StreamedCall[];
  /** The calls of `holds` and `streamed` that Postgres has stored, by usage id. */
  readonly stored: ReadonlyMap<string, StoredCall>;
  /**
   * Whether the shard has holds or events that cannot be read (damaged, or of a newer version). They may belong to this account.
   */
  readonly isIncomplete: boolean;
};

export type FreeDrift = { readonly serviceId: string; readonly used: number; readonly expected: number };

/** A budget whose spending in the wallet is wrong, or belongs to another period. */
export type BudgetDrift = {
  readonly keyId: string;
  readonly period: number;
  readonly spentMicros: number;
  readonly expectedPeriod: number;
  readonly expectedMicros: number;
};

/**
 * An open hold of a call that has ended: Postgres has stored it, or its event waits in the stream. Its settlement had removed the hold, so
 * Redis came back with an older state, or with half of the settlement (`endsOf`).
 */
type StoredHold = Hold & { readonly stored: StoredCall };

export type Comparison = {
  readonly accountId: string;
  readonly walletMicros: number;
  /** What the settled balance would be with exactly the credits and debits that the wallet has. */
  readonly settledMicros: number;
  readonly streamedMicros: number;
  readonly heldMicros: number;
  readonly expectedMicros: number;
  /** `wallet − expected`. A positive drift is money that the account can spend but should not have. */
  readonly driftMicros: number;
  /** What Postgres has taken by debits beyond the wallet, because Redis came back without them. It is not a drift. */
  readonly lostDebitsMicros: number;
  readonly freeDrifts: readonly FreeDrift[];
  readonly budgetDrifts: readonly BudgetDrift[];
  readonly storedHolds: readonly StoredHold[];
  readonly damagedFields: readonly string[];
  readonly isIncomplete: boolean;
};

export function compare(state: AccountState): Comparison {
  const { accountId, wallet, settled, holds, streamed, stored, isIncomplete } = state;
  const ends = endsOf(streamed, stored);
  const waiting = Array.from(ends.values());
  const live = holds.filter(({ usageId }) => !stored.has(usageId) && !ends.has(usageId));
  const settledMicros = settled.balanceMicros - settled.missingCreditsMicros + debitsApart(wallet, settled);
  const streamedMicros = waiting.reduce((sum, call) => sum + call.chargedMicros, 0);
  const heldMicros = live.reduce((sum, hold) => sum + hold.amountMicros, 0);
  const expectedMicros = settledMicros - streamedMicros - heldMicros;
  const freeExpected = new Map(settled.freeUsed);
  for (const { serviceId, freeCall } of waiting) if (freeCall) addOne(freeExpected, serviceId);
  for (const { serviceId, freeTier } of live) if (freeTier) addOne(freeExpected, serviceId);
  return {
    accountId,
    walletMicros: wallet.balanceMicros,
    settledMicros,
    streamedMicros,
    heldMicros,
    expectedMicros,
    driftMicros: wallet.balanceMicros - expectedMicros,
    lostDebitsMicros: lostDebits(wallet, settled),
    freeDrifts: freeDrifts(wallet.freeUsed, freeExpected),
    budgetDrifts: budgetDrifts(wallet.budgets, expectedBudgets(wallet, settled, [...waiting.map(charged), ...live])),
    damagedFields: wallet.damagedFields,
    isIncomplete,
    storedHolds: holds.flatMap((hold) => {
      const end = ends.get(hold.usageId);
      const call = stored.get(hold.usageId) ?? (end && { amountMicros: end.chargedMicros, freeCall: end.freeCall });
      return call === undefined ? [] : [{ ...hold, stored: call }];
    }),
  };
}

/**
 * The events that Postgres will store, by usage id: the first event of each call, as in the writer. More than one event of a call,
 * or an event together with its hold, come from a Redis file that was cut within a transaction (MULTI without EXEC). Redis then
 * leaves the transaction out, but keeps its beginning in the file, so that its next start brings back half of a settlement.
 */
function endsOf(streamed: AccountState['streamed'], stored: AccountState['stored']): ReadonlyMap<string, StreamedCall> {
  const ends = new Map<string, StreamedCall>();
  for (const call of streamed) if (!stored.has(call.usageId) && !ends.has(call.usageId)) ends.set(call.usageId, call);
  return ends;
}

export function agrees({ driftMicros, freeDrifts, budgetDrifts, storedHolds, damagedFields }: Comparison): boolean {
  const wrong = [freeDrifts, budgetDrifts, storedHolds, damagedFields];
  return driftMicros === 0 && wrong.every(({ length }) => length === 0);
}

const NEVER: Spending = { period: 0, spentMicros: 0 };
const charged = ({ chargedMicros, budgets }: StreamedCall) => ({ amountMicros: chargedMicros, budgets });

/** @param underWay  what is not in Postgres yet */
function expectedBudgets(
  wallet: Wallet,
  settled: Settled,
  underWay: readonly Pick<Hold, 'amountMicros' | 'budgets'>[],
): ReadonlyMap<string, Spending> {
  const expected = new Map<string, Spending>();
  const add = (keyId: string, period: number, spentMicros: number): void => {
    const known = expected.get(keyId) ?? NEVER;
    if (period > known.period) expected.set(keyId, { period, spentMicros });
    else if (period === known.period) expected.set(keyId, { period, spentMicros: known.spentMicros + spentMicros });
  };
  for (const [keyId, { period }] of wallet.budgets) add(keyId, period, 0);
  for (const [keyId, { period, spentMicros }] of settled.budgets) add(keyId, period, spentMicros);
  for (const { amountMicros, budgets } of [...settled.missingRefunds, ...underWay]) {
    // A call that finally cost nothing does not begin a period.
    if (amountMicros > 0) for (const { keyId, period } of budgets) add(keyId, period, amountMicros);
  }
  return expected;
}

function budgetDrifts(
  found: ReadonlyMap<string, Spending>,
  expected: ReadonlyMap<string, Spending>,
): readonly BudgetDrift[] {
  const drifts = Array.from(expected, ([keyId, should]) => {
    const { period, spentMicros } = found.get(keyId) ?? NEVER;
    return { keyId, period, spentMicros, expectedPeriod: should.period, expectedMicros: should.spentMicros };
  });
  return drifts.filter((its) => its.period !== its.expectedPeriod || its.spentMicros !== its.expectedMicros);
}

/** What Postgres has taken by debits beyond the wallet; negative: the wallet has taken it, and Postgres has not stored that yet. */
function debitsApart(wallet: Wallet, settled: Settled): number {
  return knowsItsDebits(wallet, settled) ? settled.debitedMicros - wallet.debitedMicros : 0;
}

/**
 * Whether Postgres has every debit that the wallet has decided. If not, Postgres has lost data, and the difference is a drift. A
 * begun debit may have the number of a debit that another Postgres had begun before it was abandoned: the wallet has then taken a
 * different amount.
 */
export function knowsItsDebits({ debitSeq, debitedMicros }: Wallet, settled: Numbers): boolean {
  if (debitSeq !== settled.begunDebitSeq) return debitSeq <= settled.debitSeq;
  const takenMicros = debitedMicros - settled.debitedMicros;
  return takenMicros === 0 || takenMicros === settled.begunDebitMicros;
}

/** The next debit that the wallet decides also takes what it lacks (take-debit.lua), so a wallet ahead of Postgres lacks nothing. */
function lostDebits(wallet: Wallet, settled: Settled): number {
  return wallet.debitSeq > settled.debitSeq ? 0 : settled.debitedMicros - wallet.debitedMicros;
}

function freeDrifts(used: ReadonlyMap<string, number>, expected: ReadonlyMap<string, number>): FreeDrift[] {
  return Array.from(new Set([...used.keys(), ...expected.keys()]), (serviceId) => ({
    serviceId,
    used: used.get(serviceId) ?? 0,
    expected: expected.get(serviceId) ?? 0,
  })).filter((free) => free.used !== free.expected);
}

function addOne(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
