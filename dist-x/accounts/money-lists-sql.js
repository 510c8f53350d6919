import { microsOf, timeOf } from './place.js';
/** Runs the query of one list. @param time the column of `m` that the list is ordered by */
async function select(sql, from, columns, time, { accountId, reference, fromMs, toMs }, before, limit) {
    const rows = await sql `
    SELECT m.account_id AS "accountId", m.amount AS "amountMicros", m.reference, ${columns} ${time} AS "createdAt",
           ${microsOf(sql, time)} AS micros, m.journal_id AS "journalId"
    FROM ${from} WHERE true
      ${accountId === null ? sql `` : sql `AND m.account_id = ${accountId}`}
      ${reference === null ? sql `` : sql `AND m.reference = ${reference}`}
      ${fromMs === null ? sql `` : sql `AND ${time} >= ${new Date(fromMs)}`}
      ${toMs === null ? sql `` : sql `AND ${time} < ${new Date(toMs)}`}
      ${before === null ? sql `` : sql `AND (${time}, m.journal_id) < (${timeOf(sql, before.micros)}, ${before.rest}::bigint)`}
    ORDER BY ${time} DESC, m.journal_id DESC LIMIT ${limit}`;
    return rows.map(({ micros, journalId, ...row }) => ({
        ...row,
        place: { micros, rest: String(journalId) },
    }));
}
export const selectCredits = (sql, filter, before, limit) => select(sql, sql `credits m`, sql `m.seq,`, sql `m.created_at`, filter, before, limit);
export const selectPayouts = (sql, filter, before, limit) => select(sql, sql `payouts m`, sql ``, sql `m.created_at`, filter, before, limit);
/** The debits that took something, by the time when they did. */
export const selectDebits = (sql, filter, before, limit) => {
    const taken = sql `(SELECT * FROM debits WHERE state = 'taken') m`;
    return select(sql, taken, sql `m.reason,`, sql `m.ended_at`, filter, before, limit);
};
//# sourceMappingURL=money-lists-sql.js.map