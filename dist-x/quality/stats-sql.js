import { CALL_CLASSES } from '../ledger/rollups/call-class.js';
import { BUCKETS } from '../ledger/rollups/latency-buckets.js';
import { WINDOW_DAYS } from './formula.js';
/** The last 30 UTC days of a service, today included. Reads its rows of hours: 720 at most. */
export function selectStats(sql, serviceId) {
    return sql.begin(async (tx) => ({
        days: await selectDays(tx, serviceId),
        prices: await selectPrices(tx, serviceId),
        inputs: await selectInputs(tx, serviceId),
    }), 'ISOLATION LEVEL REPEATABLE READ READ ONLY');
}
const firstDay = (tx) => tx `(now() AT TIME ZONE 'UTC')::date - ${WINDOW_DAYS - 1}::int`;
async function selectDays(tx, serviceId) {
    const classes = tx.text(CALL_CLASSES.map((name) => `sum(${name})::bigint AS ${name}`).join(', '));
    const days = await tx `
    SELECT to_char((hour AT TIME ZONE 'UTC')::date, 'YYYY-MM-DD') AS day, sum(calls)::bigint AS calls, ${classes}
    FROM service_hours
    WHERE service_id = ${serviceId} AND hour >= (${firstDay(tx)})::timestamp AT TIME ZONE 'UTC'
    GROUP BY 1 ORDER BY 1 DESC`;
    const latencies = await tx `
    SELECT to_char(day, 'YYYY-MM-DD') AS day, bucket, calls FROM service_latencies
    WHERE service_id = ${serviceId} AND day >= ${firstDay(tx)}`;
    return days.map((row) => {
        const latencyHistogram = new Array(BUCKETS).fill(0);
        for (const { day, bucket, calls } of latencies)
            if (day === row.day)
                latencyHistogram[bucket] = calls;
        return { ...row, latencyHistogram };
    });
}
/** The smallest amounts that half and 95 % of the charged calls did not exceed. */
async function selectPrices(tx, serviceId) {
    return tx `
    WITH charged AS (
      SELECT day, amount, sum(calls) AS calls FROM service_amounts
      WHERE service_id = ${serviceId} AND day >= ${firstDay(tx)}
      GROUP BY GROUPING SETS ((day, amount), (amount))
    ), ranked AS (
      SELECT day, amount, sum(calls) OVER (PARTITION BY day ORDER BY amount) AS seen,
             sum(calls) OVER (PARTITION BY day) AS total
      FROM charged
    )
    SELECT to_char(day, 'YYYY-MM-DD') AS day, min(amount) FILTER (WHERE seen >= total * 0.5) AS "medianMicros",
           min(amount) FILTER (WHERE seen >= total * 0.95) AS "p95Micros"
    FROM ranked GROUP BY day`;
}
async function selectInputs(tx, serviceId) {
    const rows = await tx `
    SELECT evidence::float8 AS evidence, success_rate::float8 AS "successRate", latency_us AS "latencyUs", buyers,
           computed_at AS "computedAt"
    FROM service_quality WHERE service_id = ${serviceId}`;
    return rows[0] ?? null;
}
//# sourceMappingURL=stats-sql.js.map