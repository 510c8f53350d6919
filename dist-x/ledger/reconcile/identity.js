/**
 * Compares what was read of one account with the money identity (docs/design.md, 'Redis'). Amounts in micro-USD.
 *
 *   wallet = settled balance − credits the wallet lacks + debits the wallet lacks − debits that are not stored
 *            − events in the stream that are not stored − open holds
 *
 * Each step of a call moves money between two of these terms atomically, so the identity is true at every instant, whatever is
 * under way. The free calls used of each service obey a like identity:
 *
 *   used in the wallet = used in Postgres + events in the stream that are not stored + open holds
 */
export function compare(state) {
    const { accountId, wallet, settled, holds, streamed, stored, isIncomplete } = state;
    const waiting = streamed.filter(({ usageId }) => !stored.has(usageId));
    const live = holds.filter(({ usageId }) => !stored.has(usageId));
    const settledMicros = settled.balanceMicros - settled.missingCreditsMicros + debitsApart(wallet, settled);
    const streamedMicros = waiting.reduce((sum, call) => sum + call.chargedMicros, 0);
    const heldMicros = live.reduce((sum, hold) => sum + hold.amountMicros, 0);
    const expectedMicros = settledMicros - streamedMicros - heldMicros;
    const freeExpected = new Map(settled.freeUsed);
    for (const { serviceId, freeCall } of waiting)
        if (freeCall)
            addOne(freeExpected, serviceId);
    for (const { serviceId, freeTier } of live)
        if (freeTier)
            addOne(freeExpected, serviceId);
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
        damagedFields: wallet.damagedFields,
        isIncomplete,
        storedHolds: holds.flatMap((hold) => {
            const call = stored.get(hold.usageId);
            return call === undefined ? [] : [{ ...hold, stored: call }];
        }),
    };
}
export function agrees({ driftMicros, freeDrifts, storedHolds, damagedFields }) {
    return driftMicros === 0 && freeDrifts.length === 0 && storedHolds.length === 0 && damagedFields.length === 0;
}
/** What Postgres has taken by debits beyond the wallet; negative: the wallet has taken it, and Postgres has not stored that yet. */
function debitsApart(wallet, settled) {
    return knowsItsDebits(wallet, settled) ? settled.debitedMicros - wallet.debitedMicros : 0;
}
/** Whether Postgres has every debit that the wallet has decided. If not, Postgres has lost data, and the difference is a drift. */
export function knowsItsDebits({ debitSeq }, settled) {
    return debitSeq <= settled.debitSeq || debitSeq === settled.begunDebitSeq;
}
/** The next debit that the wallet decides also takes what it lacks (take-debit.lua), so a wallet ahead of Postgres lacks nothing. */
function lostDebits(wallet, settled) {
    return wallet.debitSeq > settled.debitSeq ? 0 : settled.debitedMicros - wallet.debitedMicros;
}
function freeDrifts(used, expected) {
    return Array.from(new Set([...used.keys(), ...expected.keys()]), (serviceId) => ({
        serviceId,
        used: used.get(serviceId) ?? 0,
        expected: expected.get(serviceId) ?? 0,
    })).filter((free) => free.used !== free.expected);
}
function addOne(counts, key) {
    counts.set(key, (counts.get(key) ?? 0) + 1);
}
//# sourceMappingURL=identity.js.map