/**
 * Acts, newest first. Acts of one transaction have the same time: the id breaks the tie.
 *
 * @param before the id of the last act of the previous page (acts are never deleted, so it still exists), or null for the first
 */
export function selectActs(tx, filter, before, limit) {
    const { actor, actorIsAccount, action, subjectId, fromMs, toMs } = filter;
    const byActor = actorIsAccount ? tx `AND actor_account_id = ${actor}` : tx `AND actor = ${actor}`;
    return tx `
    SELECT id, at, actor, actor_account_id AS "actorAccountId", action, subject_type AS "subjectType",
           subject_id AS "subjectId", before, after, request_id AS "requestId"
    FROM audit
    WHERE true ${actor === null ? tx `` : byActor}
      ${action === null ? tx `` : tx `AND action = ${action}`}
      ${subjectId === null ? tx `` : tx `AND subject_id = ${subjectId}`}
      ${fromMs === null ? tx `` : tx `AND at >= ${new Date(fromMs)}`}
      ${toMs === null ? tx `` : tx `AND at < ${new Date(toMs)}`}
      ${before === null ? tx `` : tx `AND (at, id) < (SELECT at, id FROM audit WHERE id = ${before})`}
    ORDER BY at DESC, id DESC LIMIT ${limit}`;
}
export async function actExists(sql, id) {
    const rows = await sql `SELECT FROM audit WHERE id = ${id}`;
    return rows.length > 0;
}
//# sourceMappingURL=audit-sql.js.map