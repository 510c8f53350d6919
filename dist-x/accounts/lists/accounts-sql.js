/**
 * Accounts, newest first: their ids begin with the time.
 *
 * @param before the last account of the previous page, or null for the first
 */
export function selectAccounts(tx, { status, text, role, accountId, keyId }, before, limit) {
    return tx `
    WITH page AS (
      SELECT id, owner_id, status, created_at, closed_at FROM accounts a
      WHERE true ${status === null ? tx `` : tx `AND status = ${status}`}
        ${text === null
        ? tx ``
        : tx `AND (strpos(lower(owner_id), lower(${text})) > 0 OR strpos(id::text, lower(${text})) > 0
               OR id = (SELECT account_id FROM api_keys WHERE key_id = ${text}))`}
        ${role === null ? tx `` : tx `AND id IN (SELECT account_id FROM api_keys WHERE role = ${role} AND status = 'active')`}
        ${accountId === null ? tx `` : tx `AND id = ${accountId}`}
        ${keyId === null ? tx `` : tx `AND id = (SELECT account_id FROM api_keys WHERE key_id = ${keyId})`}
        ${before === null ? tx `` : tx `AND id < ${before}`}
      ORDER BY id DESC LIMIT ${limit})
    ${moneyOfPage(tx)}`;
}
/** One account, or null. */
export async function selectAccount(tx, accountId) {
    const rows = await tx `
    WITH page AS (SELECT id, owner_id, status, created_at, closed_at FROM accounts WHERE id = ${accountId})
    ${moneyOfPage(tx)}`;
    return rows[0] ?? null;
}
const moneyOfPage = (tx) => tx `
    SELECT p.id AS "accountId", p.owner_id AS "ownerId", p.status, p.created_at AS "createdAt", p.closed_at AS "closedAt",
           coalesce(w.balance, 0) AS "balanceMicros", coalesce(e.balance, 0) AS "payableMicros",
           (SELECT count(*) FROM api_keys k WHERE k.account_id = p.id AND k.status = 'active') AS "activeKeys"
    FROM page p
    LEFT JOIN balances w ON w.account_id = p.id AND w.ledger = 'wallet'
    LEFT JOIN balances e ON e.account_id = p.id AND e.ledger = 'earnings'
    ORDER BY p.id DESC`;
//# sourceMappingURL=accounts-sql.js.map