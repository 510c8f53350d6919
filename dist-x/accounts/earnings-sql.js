/**
 * Earnings of a provider on the days of the range. All of it is read from one snapshot, so without a range
 * `payable = gross − fees − paid out` holds to the micro-dollar.
 *
 * Tested by test/routes/earnings.test.ts.
 */
export async function selectEarnings(sql, providerId, range) {
    return sql.begin(async (tx) => ({
        ...(await selectSums(tx, providerId, range)),
        paidOutMicros: await selectPaidOut(tx, providerId, range),
        payableMicros: await selectPayable(tx, providerId),
    }), 'ISOLATION LEVEL REPEATABLE READ READ ONLY');
}
function hoursOf(tx, providerId, { fromMs, toMs }) {
    return tx `
    h.provider_id = ${providerId} AND h.completed > 0
    ${fromMs === null ? tx `` : tx `AND h.hour >= ${new Date(fromMs)}`}
    ${toMs === null ? tx `` : tx `AND h.hour < ${new Date(toMs)}`}`;
}
const sums = (tx) => tx `
  sum(h.completed)::bigint AS "calls", sum(h.free_calls)::bigint AS "freeCalls",
  sum(h.charged)::bigint AS "grossMicros", sum(h.fees)::bigint AS "feesMicros"`;
/** Both tables in one reading of the hours: a provider of 20 services has 48 000 in a hundred days. */
async function selectSums(tx, providerId, range) {
    const rows = await tx `
    WITH sums AS (
      SELECT h.service_id, (h.hour AT TIME ZONE 'UTC')::date AS day, ${sums(tx)}
      FROM service_hours h
      WHERE ${hoursOf(tx, providerId, range)}
      GROUP BY GROUPING SETS (1, 2)
    )
    SELECT t.service_id AS "serviceId", coalesce(s.name, '') AS "serviceName", to_char(t.day, 'YYYY-MM-DD') AS day,
           t.calls, t."freeCalls", t."grossMicros", t."feesMicros"
    FROM sums t LEFT JOIN services s ON s.id = t.service_id
    ORDER BY t.day DESC, t."grossMicros" DESC, t.service_id`;
    return {
        byService: rows.filter((row) => row.serviceId !== null),
        byDay: rows.filter(({ serviceId }) => serviceId === null),
    };
}
/** Reads the journal itself: a payout is an entry that takes from the earnings ledger. */
async function selectPaidOut(tx, providerId, { fromMs, toMs }) {
    const rows = await tx `
    SELECT coalesce(-sum(e.amount), 0)::bigint AS "paidOut"
    FROM journal j JOIN entries e ON e.journal_id = j.id
    WHERE j.kind = 'payout' AND e.account_id = ${providerId} AND e.ledger = 'earnings'
      ${fromMs === null ? tx `` : tx `AND j.created_at >= ${new Date(fromMs)}`}
      ${toMs === null ? tx `` : tx `AND j.created_at < ${new Date(toMs)}`}`;
    return rows[0]?.paidOut ?? 0;
}
async function selectPayable(tx, providerId) {
    const rows = await tx `
    SELECT balance FROM balances WHERE account_id = ${providerId} AND ledger = 'earnings'`;
    return rows[0]?.balance ?? 0;
}
//# sourceMappingURL=earnings-sql.js.map