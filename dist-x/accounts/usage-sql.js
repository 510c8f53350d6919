import { dayOfId, timeOfId } from '../platform/ids.js';
import { CALL_SELECT } from './call-fields.js';
import { clampTime, MAX_TIME_MS, utcDay } from './time-range.js';
/** What a list of calls may be asked for. `refunded`: for any reason, calls whose gateway died included. */
export const OUTCOMES = ['completed', 'refunded'];
/**
 * By how much the gateway's clock and Redis's clock may differ before a query misses a call. Ids carry the gateway's time, and
 * `created_at` Redis's. A time range selects by `created_at`; ids only narrow the search to partitions and a range of the index.
 */
const CLOCK_SLACK_MS = 3_600_000;
/** The lowest id of a millisecond. */
export function lowestId(ms) {
    const hex = clampTime(ms).toString(16).padStart(12, '0');
    return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}
/** Whether a call can have this id. False when its time is later than `MAX_TIME_MS`: no list reaches its day. */
export function isUsageTime(usageId) {
    return timeOfId(usageId) <= MAX_TIME_MS;
}
/** The condition on `calls c` that selects the calls of the filter, of any outcome; not null `before`: only those before this call. */
export function matches(sql, filter, before) {
    const { keyId, fromMs, toMs, serviceId } = filter;
    const from = fromMs === null ? null : fromMs - CLOCK_SLACK_MS;
    const to = toMs === null ? null : toMs + CLOCK_SLACK_MS;
    return sql `
    c.key_id = ${keyId}
    ${from === null ? sql `` : sql `AND c.day >= ${utcDay(from)} AND c.usage_id >= ${lowestId(from)}`}
    ${to === null ? sql `` : sql `AND c.day <= ${utcDay(to)} AND c.usage_id < ${lowestId(to)}`}
    ${fromMs === null ? sql `` : sql `AND c.created_at >= ${new Date(fromMs)}`}
    ${toMs === null ? sql `` : sql `AND c.created_at < ${new Date(toMs)}`}
    ${serviceId === null ? sql `` : sql `AND c.service_id = ${serviceId}`}
    ${before === null ? sql `` : sql `AND c.day <= ${dayOfId(before)} AND c.usage_id < ${before}`}`;
}
const DAY_MS = 86_400_000;
/**
 * How far back the first queries for a page of calls reach, in days, and how much further each of the next. So the calls of an active
 * key are found in the newest partitions. No query reaches more partitions than `WINDOW_DAYS`: 64 take Postgres 3 to 6 ms to plan and
 * 200 locks, and a thousand took 100 to 300 ms and 3 300 locks.
 */
const FIRST_REACHES_DAYS = [2, 16, 64];
const WINDOW_DAYS = 64;
const ofOutcome = (tx, outcome) => outcome === null
    ? tx ``
    : outcome === 'completed'
        ? tx `AND c.outcome = 'completed'`
        : tx `AND c.outcome <> 'completed'`;
/**
 * Matching calls, newest first.
 *
 * @param timed the transaction for the next query; there may be several
 * @param before the last `usageId` of the previous page, or null for the first page
 */
export async function selectCalls(timed, filter, before, limit) {
    const newestMs = Math.min(filter.toMs ?? MAX_TIME_MS, before === null ? MAX_TIME_MS : timeOfId(before), Date.now());
    const found = [];
    let end = null;
    let firstDay = null;
    for (let query = 0;; query++) {
        if (query === FIRST_REACHES_DAYS.length)
            firstDay = await selectFirstDay(await timed());
        const days = FIRST_REACHES_DAYS[query] ?? WINDOW_DAYS * (query - FIRST_REACHES_DAYS.length + 2);
        // Behind the first partition there are at most calls in the default partition.
        const isBehindAll = firstDay !== null && end !== null && end <= firstDay;
        const isLast = isBehindAll || days * DAY_MS > newestMs - (filter.fromMs ?? 0);
        const begin = isLast ? null : utcDay(newestMs - days * DAY_MS);
        const tx = await timed();
        const calls = await tx.anew `
      SELECT ${tx.text(CALL_SELECT)}
      FROM calls c LEFT JOIN services s ON s.id = c.service_id
      WHERE ${matches(tx, filter, before)} ${ofOutcome(tx, filter.outcome)}
        ${begin === null ? tx `` : tx `AND c.day >= ${begin}`} ${end === null ? tx `` : tx `AND c.day < ${end}`}
      ORDER BY c.usage_id DESC LIMIT ${limit - found.length}`;
        found.push(...calls);
        if (found.length === limit || isLast)
            return found;
        end = begin;
    }
}
/**
 * The day of the oldest partition. By its name, which an index of Postgres has: reading the bounds of a thousand takes 40 ms. A
 * partition with another name is read with what is left behind all others.
 */
async function selectFirstDay(tx) {
    const rows = await tx `
    SELECT to_char(to_date(substr(relname, 7), 'YYYYMMDD'), 'YYYY-MM-DD') AS day FROM pg_class
    WHERE relispartition AND relkind = 'r' AND relname ~ '^calls_[0-9]{8}$' ORDER BY relname LIMIT 1`;
    return rows[0]?.day ?? utcDay(MAX_TIME_MS);
}
/** One call by its id. The day in the id tells in which partition the call is. */
export async function selectCall(sql, usageId) {
    const rows = await sql.anew `
    SELECT ${sql.text(CALL_SELECT)}
    FROM calls c LEFT JOIN services s ON s.id = c.service_id
    WHERE c.day = ${dayOfId(usageId)} AND c.usage_id = ${usageId}`;
    return rows[0] ?? null;
}
//# sourceMappingURL=usage-sql.js.map