const DAY_MS = 86_400_000;
/**
 * Counts and sums over everything: reads the indexes by status, and the sums by hour of 30 days.
 *
 * @param timed sets the deadline of each statement
 */
export async function selectStats(timed) {
    const accounts = await (await timed()) `SELECT status, count(*) FROM accounts GROUP BY status`;
    const keys = await (await timed()) `SELECT status, count(*) FROM api_keys GROUP BY status`;
    const services = await (await timed()) `SELECT status, count(*) FROM services GROUP BY status`;
    const nowMs = Date.now();
    const today = await sumsSince(await timed(), nowMs - (nowMs % DAY_MS));
    const lastDay = await sumsSince(await timed(), nowMs - DAY_MS);
    const lastMonth = await sumsSince(await timed(), nowMs - 30 * DAY_MS);
    const rejected = await (await timed()) `SELECT count(*) FROM rejected_events`;
    return {
        accounts: countsOf(accounts),
        keys: countsOf(keys),
        services: countsOf(services),
        today,
        lastDay,
        lastMonth,
        rejectedEvents: rejected[0]?.count ?? 0,
    };
}
/** Sums of the hours that began at this time or later. */
async function sumsSince(tx, ms) {
    const rows = await tx `
    SELECT coalesce(sum(calls), 0)::bigint AS calls, coalesce(sum(free_calls), 0)::bigint AS "freeCalls",
           coalesce(sum(succeeded), 0)::bigint AS succeeded, coalesce(sum(charged), 0)::bigint AS "chargedMicros",
           coalesce(sum(fees), 0)::bigint AS "feesMicros"
    FROM service_hours WHERE hour >= ${new Date(ms)}`;
    return rows[0];
}
const countsOf = (rows) => Object.fromEntries(rows.map(({ status, count }) => [status, count]));
//# sourceMappingURL=stats-sql.js.map