import { actorOf } from '../../accounts/audit.js';
import { keyOf } from '../../keys/caller.js';
/**
 * What records a change to an admin key, or to any key of another account than the caller's: only an admin can make these. Undefined
 * for other keys of the caller's own account: that is no act of an operator.
 */
export function ifAct({ caller }, { account_id: accountId, role }, record) {
    return role !== 'admin' && keyOf(caller).accountId === accountId ? undefined : record;
}
export function keyAct({ caller, requestId }, action, { key_id: keyId, account_id: accountId }, before, after) {
    const by = actorOf(keyOf(caller), requestId);
    return { ...by, action, subjectType: 'key', subjectId: keyId, before, after: { account_id: accountId, ...after } };
}
//# sourceMappingURL=key-acts.js.map