/**
 * The money identity (DESIGN.md, 'Redis') of one account, on what was read of it. Amounts in micro-USD.
 *
 *   wallet = settled balance − credits the wallet lacks − events in the stream that are not stored − open holds
 *
 * and for the free calls of each service the same with counts. A call moves money between two of these at one instant, so
 * it holds at any instant, whatever is under way.
 */

export type Wallet = {
  /** 0 when it is damaged. */
  readonly balanceMicros: number;
  readonly creditSeq: number;
  /** Free calls used, by service. */
  readonly freeUsed: ReadonlyMap<string, number>;
  /** The last repair that was made; 0: none. */
  readonly repairId: number;
  /** Fields that hold no whole number within 2^53: the scripts refuse those, too. */
  readonly damagedFields: readonly string[];
};

/** What Postgres says. */
export type Settled = {
  readonly balanceMicros: number;
  /** Of which the wallet does not have these credits yet. */
  readonly missingCreditsMicros: number;
  /** Of which it had these before: they were marked as applied before the wallet was read. */
  readonly lostCreditsMicros: number;
  readonly creditSeq: number;
  readonly freeUsed: ReadonlyMap<string, number>;
};

export type Hold = {
  readonly usageId: string;
  /** As it stands in Redis. */
  readonly text: string;
  readonly accountId: string;
  readonly serviceId: string;
  readonly amountMicros: number;
  readonly freeTier: boolean;
};

export type StreamedCall = {
  readonly streamId: string;
  readonly usageId: string;
  readonly accountId: string;
  readonly serviceId: string;
  readonly chargedMicros: number;
  /** It used up a free call. */
  readonly freeCall: boolean;
};

/** A call in Postgres. */
export type StoredCall = { readonly amountMicros: number; readonly freeCall: boolean };

export type AccountState = {
  readonly accountId: string;
  readonly wallet: Wallet;
  readonly settled: Settled;
  readonly holds: readonly Hold[];
  readonly streamed: readonly StreamedCall[];
  /** Those of `holds` and `streamed` that are in Postgres, by usage id. */
  readonly stored: ReadonlyMap<string, StoredCall>;
  /** Its shard has holds or events that cannot be read: damaged, or of a newer version. They may be of this account. */
  readonly isIncomplete: boolean;
};

export type FreeDrift = { readonly serviceId: string; readonly used: number; readonly expected: number };

/** A hold of a call that is in Postgres: settling removes the hold first, so Redis came back from before that. */
export type StoredHold = Hold & { readonly stored: StoredCall };

export type Comparison = {
  readonly accountId: string;
  readonly walletMicros: number;
  /** Without the credits that the wallet lacks. */
  readonly settledMicros: number;
  readonly streamedMicros: number;
  readonly heldMicros: number;
  readonly expectedMicros: number;
  /** `wallet − expected`: positive is money the account can spend and should not have. */
  readonly driftMicros: number;
  readonly freeDrifts: readonly FreeDrift[];
  readonly storedHolds: readonly StoredHold[];
  readonly damagedFields: readonly string[];
  readonly isIncomplete: boolean;
};

export function compare(state: AccountState): Comparison {
  const { accountId, wallet, settled, holds, streamed, stored, isIncomplete } = state;
  const waiting = streamed.filter(({ usageId }) => !stored.has(usageId));
  const live = holds.filter(({ usageId }) => !stored.has(usageId));
  const settledMicros = settled.balanceMicros - settled.missingCreditsMicros;
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
    freeDrifts: freeDrifts(wallet.freeUsed, freeExpected),
    damagedFields: wallet.damagedFields,
    isIncomplete,
    storedHolds: holds.flatMap((hold) => {
      const call = stored.get(hold.usageId);
      return call === undefined ? [] : [{ ...hold, stored: call }];
    }),
  };
}

export function agrees({ driftMicros, freeDrifts, storedHolds, damagedFields }: Comparison): boolean {
  return driftMicros === 0 && freeDrifts.length === 0 && storedHolds.length === 0 && damagedFields.length === 0;
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
