import type { Comparison, Settled, Wallet } from './identity.ts';

/** A call in Postgres that a Redis which came back older may not know. */
export type RecentCall = {
  /** By Redis's clock, as everything here. */
  readonly admittedAtMs: number;
  readonly amountMicros: number;
  /** The service of which it used up a free call. */
  readonly freeServiceId: string | null;
};

export type Evidence = {
  readonly wallet: Wallet;
  readonly settled: Settled;
  readonly redisStartedAtMs: number;
  /** When a comparison first found that the account does not agree; null: this is the first. */
  readonly driftingSinceMs: number | null;
  /** A comparison with this Redis process found that the account agrees. */
  readonly agreedSinceStart: boolean;
  /** The account's stored calls from before Redis's start, youngest first. */
  readonly calls: readonly RecentCall[];
};

/** A wallet may have as many damaged fields as somebody liked. */
const MAX_REASON = 300;

/** Redis tells its start in whole seconds. */
export const START_UNCERTAIN_MS = 1_000;

/**
 * Whether the account is exactly what a Redis leaves behind that started with an older state than Postgres: it does not
 * know the account's last calls before its start, though they are stored, and has holds of stored calls again. Then
 * Postgres is right, and setting the wallet to it neither charges nor refunds anything a second time.
 *
 * Anything else may as well be a fault of Postgres (an event in `rejected_events`, a database restored from a backup):
 * it is reported, and left alone.
 *
 * @returns the reason for the record, or what is not proven
 */
export function explain(comparison: Comparison, evidence: Evidence): { reason: string } | { unproven: string } {
  const { wallet, settled, driftingSinceMs, agreedSinceStart, redisStartedAtMs, calls } = evidence;
  const obstacle = obstacleOf(comparison);
  if (obstacle !== null) return { unproven: obstacle };
  if (wallet.creditSeq > settled.creditSeq) return { unproven: 'the wallet has a credit that Postgres does not know' };
  if (driftingSinceMs !== null && driftingSinceMs < redisStartedAtMs - START_UNCERTAIN_MS) {
    return { unproven: 'it was so before Redis started' };
  }
  if (agreedSinceStart) return { unproven: 'it agreed after Redis started' };
  const { storedHolds } = comparison;
  const tooMuchHeld = storedHolds.reduce((sum, hold) => sum + hold.amountMicros - hold.stored.amountMicros, 0);
  const lost = youngestWithSum(calls, comparison.driftMicros + tooMuchHeld, redisStartedAtMs);
  if (lost === null) return { unproven: 'no run of the last calls before Redis started has this sum' };
  if (!comparison.freeDrifts.every((free) => isFreeDriftExplained(free, comparison, calls))) {
    return { unproven: 'the free calls used are not those of the last calls before Redis started' };
  }
  const parts = [
    lost > 0 ? `the wallet did not know the last ${lost} charged calls in Postgres` : '',
    storedHolds.length > 0 ? `${storedHolds.length} holds were of calls in Postgres` : '',
    comparison.freeDrifts.length > 0 ? 'free calls used were not those in Postgres' : '',
  ];
  return { reason: `Redis came back older than Postgres: ${parts.filter((part) => part !== '').join('; ')}` };
}

/** What keeps the account from being judged until somebody has removed it, for the report; null: nothing. */
export function obstacleOf({ damagedFields, isIncomplete }: Comparison): string | null {
  if (damagedFields.length > 0) return `damaged in Redis: ${damagedFields.join(', ')}`.slice(0, MAX_REASON);
  return isIncomplete ? 'its shard has holds or events that this version cannot read' : null;
}

/**
 * How many charged calls in a row, back from the start of Redis, make up the sum; null when none do. The first of them
 * may be any within the uncertainty of the start: a call after it is in the wallet.
 */
function youngestWithSum(calls: readonly RecentCall[], sumMicros: number, startedAtMs: number): number | null {
  if (sumMicros === 0) return 0;
  if (sumMicros < 0) return null;
  const charged = calls.filter(({ amountMicros }) => amountMicros > 0);
  for (let first = 0; first < charged.length; first++) {
    let sum = 0;
    for (let i = first; i < charged.length && sum < sumMicros; i++) {
      sum += (charged[i] as RecentCall).amountMicros;
      if (sum === sumMicros) return i - first + 1;
    }
    if ((charged[first] as RecentCall).admittedAtMs < startedAtMs - START_UNCERTAIN_MS) return null;
  }
  return null;
}

function isFreeDriftExplained(
  { serviceId, used, expected }: Comparison['freeDrifts'][number],
  { storedHolds }: Comparison,
  calls: readonly RecentCall[],
): boolean {
  // A free call that was refunded in Postgres, and whose hold is back, has its slot back too much.
  const givenBack = storedHolds.filter(
    (hold) => hold.serviceId === serviceId && hold.freeTier && !hold.stored.freeCall,
  );
  const lost = expected - used + givenBack.length;
  return lost >= 0 && lost <= calls.filter(({ freeServiceId }) => freeServiceId === serviceId).length;
}
