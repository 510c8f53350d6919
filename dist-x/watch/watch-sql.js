/**
 * Does nothing if the listing has another endpoint by now. Waits for a transaction that is about to change it (FOR SHARE): closing an
 * account erases endpoints, and this must not bring one back.
 */
export async function writeReachable(sql, id, endpoint, reachable) {
    await sql `
    INSERT INTO service_watch (service_id, endpoint, reachable, checked_at)
    SELECT id, endpoint, ${reachable}::boolean, now() FROM services WHERE id = ${id} AND endpoint = ${endpoint} FOR SHARE
    ON CONFLICT (service_id) DO UPDATE
    SET endpoint = excluded.endpoint, reachable = excluded.reachable, checked_at = excluded.checked_at`;
}
/** By service id, for those whose present endpoint was asked. */
export async function selectFound(sql, ids) {
    const rows = await sql `
    SELECT s.id, w.reachable, w.checked_at AS "checkedAt"
    FROM services s JOIN service_watch w ON w.service_id = s.id AND w.endpoint = s.endpoint
    WHERE s.id = ANY(${ids}::uuid[])`;
    return new Map(rows.map(({ id, ...found }) => [id, found]));
}
/**
 * Takes services whose time has come, and sets their next time: the process that takes one is the only one that asks it. Of one account only
 * `perAccount` are taken at a time, so that an account with many services that hang does not keep the others waiting.
 */
export async function takeDue(sql, intervalMs, limit, perAccount) {
    return sql `
    WITH due AS (
      SELECT id, endpoint, health_path, due_at,
             row_number() OVER (PARTITION BY provider_id ORDER BY due_at NULLS FIRST, id) AS of_account
      FROM (SELECT s.id, s.provider_id, s.endpoint, s.health_path, w.health_due_at AS due_at
            FROM services s LEFT JOIN service_watch w ON w.service_id = s.id
            WHERE s.health_path IS NOT NULL AND s.status = 'active'
              AND (w.health_due_at IS NULL OR w.health_due_at <= now())) AS watched
    ), taken AS (
      INSERT INTO service_watch (service_id, health_due_at)
      SELECT id, now() + ${intervalMs} * interval '1 millisecond' FROM due
      WHERE of_account <= ${perAccount} ORDER BY due_at NULLS FIRST, id LIMIT ${limit}
      ON CONFLICT (service_id) DO UPDATE SET health_due_at = excluded.health_due_at
      WHERE service_watch.health_due_at IS NULL OR service_watch.health_due_at <= now()
      RETURNING service_id
    )
    SELECT d.id, d.endpoint, d.health_path AS "healthPath" FROM taken t JOIN due d ON d.id = t.service_id`;
}
/** Adds one check for each of the services to this hour, and sums up the last day and the last 30 days. */
export async function writeChecks(sql, ids, up) {
    await sql.begin(async (tx) => {
        await tx `
      INSERT INTO service_health_hours (service_id, hour, checks, up)
      SELECT service_id, date_trunc('hour', now(), 'UTC'), 1, up
      FROM unnest(${ids}::uuid[], ${up.map(Number)}::int[]) AS checked (service_id, up)
      ON CONFLICT (service_id, hour) DO UPDATE
      SET checks = service_health_hours.checks + 1, up = service_health_hours.up + excluded.up`;
        await tx `
      UPDATE service_watch w
      SET checks_day = s.checks_day, up_day = s.up_day, checks_month = s.checks_month, up_month = s.up_month
      FROM (SELECT service_id, sum(checks) AS checks_month, sum(up) AS up_month,
                   coalesce(sum(checks) FILTER (WHERE hour > now() - interval '24 hours'), 0) AS checks_day,
                   coalesce(sum(up) FILTER (WHERE hour > now() - interval '24 hours'), 0) AS up_day
            FROM service_health_hours
            WHERE service_id = ANY(${ids}::uuid[]) AND hour > now() - interval '30 days'
            GROUP BY service_id) AS s
      WHERE w.service_id = s.service_id`;
    });
}
/** Hours that no sum needs any more. */
export async function deleteOldHours(sql) {
    await sql `DELETE FROM service_health_hours WHERE hour < now() - interval '31 days'`;
}
export async function selectUptimes(sql) {
    const rows = await sql `
    SELECT w.service_id AS id, checks_day AS "checksDay", up_day AS "upDay", checks_month AS "checksMonth",
           up_month AS "upMonth"
    FROM service_watch w JOIN services s ON s.id = w.service_id
    WHERE w.checks_month > 0 AND s.health_path IS NOT NULL AND s.status <> 'removed'`;
    return new Map(rows.map(({ id, checksDay, upDay, checksMonth, upMonth }) => [
        id,
        {
            ...(checksDay === 0 ? {} : { last_24_hours: percent(upDay, checksDay) }),
            last_30_days: percent(upMonth, checksMonth),
        },
    ]));
}
/** Two decimals, rounded down: 100 means that no check failed. */
const percent = (up, checks) => Math.floor((up * 10_000) / checks) / 100;
//# sourceMappingURL=watch-sql.js.map