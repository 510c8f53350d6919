import { isInDoubt } from './judge.js';
/**
 * Whether the drift of an account is Redis's, and may be taken out of its wallet. Any other drift is a bug or tampering: it is
 * reported as unattributed, and an operator ends it. Holds of stored calls are removed in any case.
 *
 * @param history as it was when the account was compared
 */
export function mayRepair(history, { hasRejectedEvent, isAheadOfPostgres }) {
    return isInDoubt(history) && !hasRejectedEvent && !isAheadOfPostgres;
}
//# sourceMappingURL=may-repair.js.map