/** The actor of a request that came with an admin's key. */
export function actorOf(key, requestId) {
    return { actor: key.keyId, actorAccountId: key.accountId, requestId };
}
/** A new account with an admin key. */
export function adminAct(by, accountId) {
    const subject = { subjectType: 'account', subjectId: accountId };
    return { ...by, action: 'account.create', ...subject, before: null, after: { role: 'admin' } };
}
/** Stores the act. Call it in the transaction that carries the act out: then neither is ever stored without the other. */
export async function recordAct(tx, act) {
    await tx `
    INSERT INTO audit (actor, actor_account_id, action, subject_type, subject_id, before, after, request_id)
    VALUES (${act.actor}, ${act.actorAccountId}, ${act.action}, ${act.subjectType}, ${act.subjectId},
            ${jsonText(act.before)}::text::json, ${jsonText(act.after)}::text::json, ${act.requestId})`;
}
const jsonText = (state) => (state === null ? null : JSON.stringify(state));
//# sourceMappingURL=audit.js.map