/** Maximum number of accounts listed in a report; further accounts are only counted. */
const MAX_LISTED = 100;
/** Maximum number of accounts whose drift's start is remembered. For further ones each report gives its own time as the start. */
const MAX_REMEMBERED = 10_000;
/** Whether the drift is unknown. A damaged field counts as 0: the wallet would seem to lack its balance, all credits or all debits. */
const isUnknown = ({ damagedFields }) => ['balance', 'credit_seq', 'debit_seq', 'debited'].some((field) => damagedFields.includes(field));
/** Adds up the comparisons of a shard. */
export class ReportSums {
    wallets = 0;
    walletMicros = 0;
    settledMicros = 0;
    streamedMicros = 0;
    heldMicros = 0;
    add(comparison) {
        this.wallets++;
        if (isUnknown(comparison))
            return;
        this.walletMicros += comparison.walletMicros;
        this.settledMicros += comparison.settledMicros;
        this.streamedMicros += comparison.streamedMicros;
        this.heldMicros += comparison.heldMicros;
    }
}
export function newReport(about, sums, drifts) {
    const isDamaged = ({ damagedFields }) => (damagedFields.length > 0 ? 1 : 0);
    const sorted = drifts.toSorted((a, b) => isDamaged(b) - isDamaged(a) || Math.abs(b.driftMicros) - Math.abs(a.driftMicros));
    return {
        ...about,
        compared: true,
        ...sums,
        driftMicros: drifts.reduce((sum, drift) => sum + drift.driftMicros, 0),
        absoluteDriftMicros: drifts.reduce((sum, drift) => sum + Math.abs(drift.driftMicros), 0),
        driftingAccounts: drifts.length,
        drifts: sorted.slice(0, MAX_LISTED),
        driftingSince: Object.fromEntries(sorted.slice(0, MAX_REMEMBERED).map((drift) => [drift.accountId, drift.sinceMs])),
    };
}
/** The report of a shard that could not be compared this time: the findings of the last comparison stay. */
export function notCompared(shard, checkedAtMs, before) {
    const known = before ?? newReport({ shard, checkedAtMs, redisRunId: '', isHeir: false }, new ReportSums(), []);
    return { ...known, checkedAtMs, compared: false };
}
/**
 * Whether the report proves that the account did not drift: it is not in `driftingSince`, and that list is complete. If more
 * than `MAX_REMEMBERED` accounts drifted, the list is cut short, and the report proves this for no account.
 */
export function hadAgreed({ driftingSince, driftingAccounts }, accountId) {
    return driftingSince[accountId] === undefined && Object.keys(driftingSince).length === driftingAccounts;
}
export function newDrift(comparison, sinceMs, unproven) {
    const { storedHolds, isIncomplete: _, lostDebitsMicros: __, ...rest } = comparison;
    const driftMicros = isUnknown(comparison) ? 0 : comparison.driftMicros;
    return { ...rest, driftMicros, storedHolds: storedHolds.length, sinceMs, unproven };
}
//# sourceMappingURL=report.js.map