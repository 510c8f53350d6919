import { isInDoubt } from './judge.js';
/**
 * Whether a wallet may leave Redis, to be loaded again exactly. Without holds and events, Postgres has all of it; but it does not
 * have what the wallet has decided about a begun debit.
 */
export function mayDrop(history, { holds, streamed, hasBegunDebit }) {
    return isInDoubt(history) && holds === 0 && streamed === 0 && !hasBegunDebit;
}
//# sourceMappingURL=may-drop.js.map