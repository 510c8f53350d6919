import { knowsItsDebits } from './identity.js';
/** Maximum length of a reason; the rest is cut off. A damaged wallet may have any number of damaged fields. */
const MAX_REASON = 300;
const UNTOLD = 'it cannot be told which calls are missing in a node of a cluster, or in a Redis that was a replica';
/** Redis reports its uptime in whole seconds, so its start is uncertain by one second. */
export const START_UNCERTAIN_MS = 1_000;
/**
 * Decides whether the drift can be repaired: only if it is exactly what a Redis causes that started with an older state than
 * Postgres. Such a Redis lacks the account's last calls before its start, although Postgres has stored them, and it has the holds
 * of stored calls again. Then Postgres is right, and a wallet set to what Postgres says is neither charged nor refunded twice.
 *
 * Any other drift may just as well be a fault of Postgres (an event in `rejected_events`, a database restored from a backup), so
 * it is only reported.
 *
 * @returns the reason to record with the repair, and the part of the comparison that is proven if it is not all of it; or what is
 *   not proven
 */
export function explain(comparison, evidence) {
    const { wallet, settled, driftingSinceMs, agreedSinceStart, redisStartedAtMs, calls } = evidence;
    const obstacle = obstacleOf(comparison);
    if (obstacle !== null)
        return { unproven: obstacle };
    if (wallet.creditSeq > settled.creditSeq)
        return { unproven: 'the wallet has a credit that Postgres does not know' };
    if (!knowsItsDebits(wallet, settled))
        return { unproven: 'the wallet has a debit that Postgres does not know' };
    const { storedHolds } = comparison;
    const tooMuchHeld = storedHolds.reduce((sum, hold) => sum + hold.amountMicros - hold.stored.amountMicros, 0);
    if (redisStartedAtMs === null) {
        if (storedHolds.length === 0)
            return { unproven: UNTOLD };
        // That a hold belongs to a stored call needs no dates. It goes, or the sweep would refund the call; any other drift stays.
        return {
            reason: `${storedHolds.length} holds belonged to calls that Postgres has stored`,
            part: {
                ...comparison,
                driftMicros: -tooMuchHeld,
                expectedMicros: comparison.walletMicros + tooMuchHeld,
                freeDrifts: [],
            },
        };
    }
    if (driftingSinceMs !== null && driftingSinceMs < redisStartedAtMs - START_UNCERTAIN_MS) {
        return { unproven: 'the drift began before Redis started' };
    }
    if (agreedSinceStart)
        return { unproven: 'the drift began after Redis started' };
    const lost = youngestWithSum(calls, comparison.driftMicros + tooMuchHeld, redisStartedAtMs);
    if (lost === null)
        return { unproven: 'the last calls before Redis started do not add up to this drift' };
    if (!comparison.freeDrifts.every((free) => isFreeDriftExplained(free, comparison, calls))) {
        return { unproven: 'the free calls used are not those of the last calls before Redis started' };
    }
    const parts = [
        lost > 0 ? `the wallet did not know the last ${lost} charged calls in Postgres` : '',
        storedHolds.length > 0 ? `${storedHolds.length} holds belonged to calls that Postgres has stored` : '',
        comparison.freeDrifts.length > 0 ? 'free calls used were not those in Postgres' : '',
    ];
    return {
        reason: `Redis came back with an older state than Postgres: ${parts.filter((part) => part !== '').join('; ')}`,
    };
}
/** The damage or the unreadable data that keep the account from being judged, as text for the report; null: none. */
export function obstacleOf({ damagedFields, isIncomplete }) {
    if (damagedFields.length > 0)
        return `damaged in Redis: ${damagedFields.join(', ')}`.slice(0, MAX_REASON);
    return isIncomplete ? 'its shard has holds or events that this version cannot read' : null;
}
/**
 * How many consecutive charged calls, counted back from Redis's start, add up to the sum; null: no number does. The start is known
 * to `START_UNCERTAIN_MS` only, and a wallet has the calls after the real start. So the count may begin at any call of that time.
 */
function youngestWithSum(calls, sumMicros, startedAtMs) {
    if (sumMicros === 0)
        return 0;
    if (sumMicros < 0)
        return null;
    const charged = calls.filter(({ amountMicros }) => amountMicros > 0);
    for (let first = 0; first < charged.length; first++) {
        let sum = 0;
        for (let i = first; i < charged.length && sum < sumMicros; i++) {
            sum += charged[i].amountMicros;
            if (sum === sumMicros)
                return i - first + 1;
        }
        if (charged[first].admittedAtMs < startedAtMs - START_UNCERTAIN_MS)
            return null;
    }
    return null;
}
function isFreeDriftExplained({ serviceId, used, expected }, { storedHolds }, calls) {
    // Postgres stored these free calls as refunded. Their holds are back in Redis, which therefore counts each of them as used.
    const givenBack = storedHolds.filter((hold) => hold.serviceId === serviceId && hold.freeTier && !hold.stored.freeCall);
    const lost = expected - used + givenBack.length;
    return lost >= 0 && lost <= calls.filter(({ freeServiceId }) => freeServiceId === serviceId).length;
}
//# sourceMappingURL=provable.js.map