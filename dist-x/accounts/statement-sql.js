import { microsOf, timeOf } from './place.js';
/**
 * One page of a statement, newest first.
 *
 * The balance is counted backwards: the present balance, less all that is newer than the page. Balance, page and sum come from one
 * snapshot, so each page is right by itself, also when a call that ended late has changed an hour since the page before. A balance
 * that is kept in the cursor would be wrong then.
 *
 * Tested by test/routes/statement.test.ts.
 */
export async function selectStatement(sql, request) {
    return sql.begin(async (tx) => {
        const sources = sourcesOf(tx, request);
        const balanceMicros = (await selectBalance(tx, request)) - (await sumNewer(tx, sources, request));
        const movements = [];
        let left = balanceMicros;
        for (const { micros, rest, ...row } of await selectRows(tx, sources, request)) {
            movements.push({ ...row, place: { micros, rest }, balanceMicros: left });
            left -= row.amountMicros;
        }
        return { movements, balanceMicros };
    }, 'ISOLATION LEVEL REPEATABLE READ READ ONLY');
}
function sourcesOf(tx, { accountId, ledger }) {
    if (ledger === 'earnings') {
        const payouts = tx `payouts m WHERE m.account_id = ${accountId}`;
        return [earnings(tx, accountId), moved(tx, payouts, tx `m.created_at`, 'payout')];
    }
    const credits = tx `credits m WHERE m.account_id = ${accountId}`;
    const debits = tx `debits m WHERE m.account_id = ${accountId} AND m.state = 'taken'`;
    return [
        charges(tx, accountId),
        moved(tx, credits, tx `m.created_at`, 'credit'),
        moved(tx, debits, tx `m.ended_at`, 'debit'),
    ];
}
/** What an operator moved: rows of `credits`, `debits` or `payouts`. */
function moved(tx, from, at, kind) {
    // A journal number as text of one length, so that texts compare as the numbers do.
    const rest = tx `lpad(m.journal_id::text, 16, '0')`;
    const reason = kind === 'debit' ? tx `m.reason` : tx `NULL::text`;
    return {
        from,
        at,
        rest,
        indexed: at,
        lagHours: 0,
        group: null,
        amount: kind === 'credit' ? tx `m.amount` : tx `-m.amount`,
        columns: tx `${kind}::text AS kind, NULL::timestamptz AS hour, NULL::uuid AS service_id, m.reference, ${reason} AS reason`,
        order: tx `${at} DESC, m.journal_id DESC`,
    };
}
const hourEnd = (tx) => tx `(m.hour + interval '3599.999999 seconds')`;
function charges(tx, accountId) {
    return {
        from: tx `key_hours m WHERE m.account_id = ${accountId} AND m.spent > 0`,
        at: hourEnd(tx),
        rest: tx `m.service_id::text`,
        indexed: tx `m.hour`,
        lagHours: 1,
        amount: tx `-m.spent`,
        columns: tx `'charge' AS kind, m.hour, m.service_id, NULL::text AS reference, NULL::text AS reason`,
        // Of several keys of the account.
        group: tx `GROUP BY m.hour, m.service_id`,
        order: tx `m.hour DESC, m.service_id DESC`,
    };
}
/** Two movements for each hour and service: what buyers paid, and then the platform's share of it. */
function earnings(tx, accountId) {
    const parts = tx `(VALUES ('earning', m.charged, ''), ('fee', -m.fees, '-fee')) AS part (kind, amount, suffix)`;
    return {
        from: tx `service_hours m CROSS JOIN LATERAL ${parts} WHERE m.provider_id = ${accountId} AND part.amount <> 0`,
        at: tx `m.hour`,
        rest: tx `m.service_id::text || part.suffix`,
        indexed: tx `m.hour`,
        lagHours: 0,
        amount: tx `part.amount`,
        columns: tx `part.kind, m.hour, m.service_id, NULL::text AS reference, NULL::text AS reason`,
        group: null,
        order: tx `m.hour DESC, m.service_id DESC, part.suffix DESC`,
    };
}
async function selectBalance(tx, { accountId, ledger }) {
    const rows = await tx `
    SELECT balance FROM balances WHERE account_id = ${accountId} AND ledger = ${ledger}`;
    return rows[0]?.balance ?? 0;
}
/** The place that all movements of the page are before. An empty text sorts before any other. Null: there is no such bound. */
function upperPlace({ before, toMs }) {
    return before ?? (toMs === null ? null : { micros: toMs * 1000, rest: '' });
}
/** The sum of all movements at or after the page's upper place. */
async function sumNewer(tx, sources, request) {
    const upper = upperPlace(request);
    if (upper === null)
        return 0;
    const time = timeOf(tx, upper.micros);
    let sum = 0;
    for (const { from, amount, at, rest, indexed, lagHours } of sources) {
        // The second line follows from the third, but only it can use the index. The first part of the third line spares most rows the
        // comparison of texts.
        const rows = await tx `
      SELECT coalesce(sum(${amount}), 0)::bigint AS sum FROM ${from}
        AND ${indexed} >= ${time} - make_interval(hours => ${lagHours})
        AND (${indexed} > ${time} OR (${at}, ${rest} COLLATE "C") >= (${time}, ${upper.rest}::text))`;
        sum += rows[0]?.sum;
    }
    return sum;
}
async function selectRows(tx, sources, request) {
    const newest = sources.map((source, i) => tx `${i === 0 ? tx `` : tx `UNION ALL`} (${newestOf(tx, source, request)})`);
    return tx `
    SELECT ${microsOf(tx, tx `m.at`)} AS micros, m.rest, m.kind, m.amount AS "amountMicros", m.hour,
           m.service_id AS "serviceId", s.name AS "serviceName", m.reference, m.reason
    FROM (SELECT * FROM (${newest}) AS kinds ORDER BY at DESC, rest COLLATE "C" DESC LIMIT ${request.limit}) AS m
    LEFT JOIN services s ON s.id = m.service_id
    ORDER BY m.at DESC, m.rest COLLATE "C" DESC`;
}
/** The newest movements of one kind before the page's upper place and not before `fromMs`. */
function newestOf(tx, source, request) {
    const { from, amount, at, rest, indexed, lagHours, columns, group, order } = source;
    const upper = upperPlace(request);
    const until = timeOf(tx, upper?.micros ?? 0);
    const since = request.fromMs === null ? null : new Date(request.fromMs);
    return tx `
    SELECT ${at} AS at, ${rest} AS rest, ${group === null ? amount : tx `sum(${amount})::bigint`} AS amount, ${columns}
    FROM ${from}
      ${upper ? tx `AND ${indexed} <= ${until} AND (${at}, ${rest} COLLATE "C") < (${until}, ${upper.rest}::text)` : tx ``}
      ${since ? tx `AND ${indexed} >= ${since}::timestamptz - make_interval(hours => ${lagHours}) AND ${at} >= ${since}` : tx ``}
    ${group ?? tx ``} ORDER BY ${order} LIMIT ${request.limit}`;
}
//# sourceMappingURL=statement-sql.js.map