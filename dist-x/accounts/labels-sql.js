/** The labels of the accounts that a page of a list names: one look-up by primary key for each. Ids without an account have none. */
export async function selectLabels(sql, accountIds) {
    const ids = [...new Set(accountIds)];
    if (ids.length === 0)
        return new Map();
    const rows = await sql `
    SELECT id, owner_id AS label FROM accounts WHERE id = ANY(${ids}::uuid[])`;
    return new Map(rows.map(({ id, label }) => [id, label]));
}
//# sourceMappingURL=labels-sql.js.map