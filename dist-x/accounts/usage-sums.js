import { readHorizonMs } from '../ledger/retention/horizon.js';
import { COUNTED_SQL } from '../ledger/usage-event.js';
import { readWithDeadline } from './lists/deadline.js';
import { matches, selectCalls } from './usage-sql.js';
import { divideByHours, refusePartsOfDropped } from './whole-hours.js';
/** As `sql.begin` takes it: all queries of the transaction see the same calls and sums. */
const ONE_SNAPSHOT = 'ISOLATION LEVEL REPEATABLE READ READ ONLY';
/** The sums of begun hours, from their calls, in the form of `storedSums`. */
const sumsOfCalls = (tx, filter) => tx `
  SELECT service_id, date_trunc('hour', created_at, 'UTC') AS hour, count(*) AS calls,
         count(*) FILTER (WHERE outcome = 'completed' AND free_tier) AS free_calls, sum(amount) AS spent,
         sum(latency_us) AS latency_sum_us, count(*) FILTER (WHERE latency_us > 0) AS latency_count
  FROM calls c WHERE ${matches(tx, filter, null)} AND ${tx.text(COUNTED_SQL)}
  GROUP BY 1, 2`;
/** The sums of whole hours. */
function storedSums(tx, { keyId, serviceId, fromMs, toMs }) {
    return tx `
    SELECT service_id, hour, calls, free_calls, spent, latency_sum_us, latency_count
    FROM key_hours
    WHERE key_id = ${keyId}
      ${fromMs === null ? tx `` : tx `AND hour >= ${new Date(fromMs)}`}
      ${toMs === null ? tx `` : tx `AND hour < ${new Date(toMs)}`}
      ${serviceId === null ? tx `` : tx `AND service_id = ${serviceId}`}`;
}
/**
 * Sums of the matching calls that count, by service and by day, from one reading of the hours. A key with a million calls has as few
 * rows of hours as one that called once in each of those hours.
 */
async function selectSums(tx, filter) {
    const horizonMs = await readHorizonMs(tx);
    refusePartsOfDropped(filter, horizonMs);
    const { hours, rest } = divideByHours(filter);
    const parts = rest.map((range) => sumsOfCalls(tx, { ...filter, ...range }));
    if (hours !== null)
        parts.push(storedSums(tx, { ...filter, ...hours }));
    const ask = rest.length > 0 ? tx.anew : tx;
    const rows = await ask `
    WITH sums AS (${parts.map((part, i) => (i === 0 ? part : tx `UNION ALL ${part}`))}
    ), totals AS (
      SELECT service_id, day, sum(calls)::bigint AS calls, sum(free_calls)::bigint AS free_calls,
             sum(spent)::bigint AS spent, sum(latency_sum_us)::bigint AS latency_sum,
             sum(latency_count)::bigint AS latency_count
      FROM (SELECT *, (hour AT TIME ZONE 'UTC')::date AS day FROM sums) AS dated
      GROUP BY GROUPING SETS ((service_id), (day))
    )
    SELECT t.service_id AS "serviceId", coalesce(s.name, '') AS "serviceName", to_char(t.day, 'YYYY-MM-DD') AS day,
           t.calls, t.free_calls AS "freeCalls", t.spent AS "spentMicros", t.latency_sum AS "latencySumUs",
           t.latency_count AS "latencyCount"
    FROM totals t LEFT JOIN services s ON s.id = t.service_id
    ORDER BY t.day DESC, t.spent DESC, t.calls DESC, t.service_id`;
    return {
        byService: rows.filter((row) => row.serviceId !== null),
        byDay: rows.filter(({ serviceId }) => serviceId === null),
        horizonMs,
    };
}
/** Sums and one page of calls, both from one snapshot unless the calls are those of one outcome. */
export async function selectUsage(sql, filter, before, limit) {
    if (filter.outcome !== null) {
        const sums = await sql.begin((tx) => selectSums(tx, filter), ONE_SNAPSHOT);
        return { ...sums, calls: await selectCallPage(sql, filter, before, limit) };
    }
    return sql.begin(async (tx) => ({
        ...(await selectSums(tx, filter)),
        calls: await selectCalls(async () => tx, filter, before, limit),
    }), ONE_SNAPSHOT);
}
/**
 * One page of calls without sums. No index knows outcomes: where few of very many calls are of the one that is asked for, it ends at
 * a deadline.
 */
export function selectCallPage(sql, filter, before, limit) {
    const read = (timed) => selectCalls(timed, filter, before, limit);
    return filter.outcome === null ? sql.begin((tx) => read(async () => tx), ONE_SNAPSHOT) : readWithDeadline(sql, read);
}
/** When the last call of the key began that the sums know: its record may have been dropped. */
async function selectLastCounted(tx, keyId) {
    const rows = await tx `
    SELECT last_call_at AS "lastCallAt" FROM key_hours WHERE key_id = ${keyId} ORDER BY hour DESC, last_call_at DESC LIMIT 1`;
    return rows[0]?.lastCallAt ?? null;
}
/** When the key was last used, and what it has spent in all. */
export function selectKeyActivity(sql, keyId) {
    const filter = { keyId, serviceId: null, fromMs: null, toMs: null, outcome: null };
    return sql.begin(async (tx) => {
        const { byService } = await selectSums(tx, filter);
        const [last] = await selectCalls(async () => tx, filter, null, 1);
        const totalSpentMicros = byService.reduce((sum, { spentMicros }) => sum + spentMicros, 0);
        return { lastUsedAt: last?.created_at ?? (await selectLastCounted(tx, keyId)), totalSpentMicros };
    }, ONE_SNAPSHOT);
}
//# sourceMappingURL=usage-sums.js.map