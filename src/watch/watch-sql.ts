import type { Sql } from '../platform/postgres.ts';
import type { Answer } from './ask.ts';
import { digestOf, failureReason, isUp, reasonOf, type Watched } from './health.ts';

/** How the last question to the health path ended. */
type FoundHealth = {
  readonly up: boolean;
  readonly status: number | null;
  readonly reason: string | undefined;
  readonly askedAt: Date;
};

/** What was found out about a listing's present endpoint and health path. */
type Found = {
  readonly reachable: boolean | null;
  /** Why the endpoint gave no answer; undefined if it did, or was not asked. */
  readonly reason: string | undefined;
  readonly checkedAt: Date | null;
  readonly health?: FoundHealth;
};

/**
 * Stores the result, unless the listing has another endpoint by now. Waits for a transaction that is about to change the endpoint
 * (FOR SHARE): closing an account erases endpoints, and this must not bring one back.
 */
export async function writeReachable(sql: Sql, id: string, endpoint: string, { failure }: Answer): Promise<void> {
  await sql`
    INSERT INTO service_watch (service_id, endpoint, reachable, failure, checked_at)
    SELECT id, endpoint, ${failure === null}::boolean, ${failure}::text, now() FROM services WHERE id = ${id} AND endpoint = ${endpoint} FOR SHARE
    ON CONFLICT (service_id) DO UPDATE
    SET endpoint = excluded.endpoint, reachable = excluded.reachable, failure = excluded.failure,
        checked_at = excluded.checked_at`;
}

/** By service id, for services that were asked. */
export async function selectFound(sql: Sql, ids: readonly string[]): Promise<ReadonlyMap<string, Found>> {
  type Row = Watched & { reachable: boolean | null; unanswered: string | null; checkedAt: Date | null } & {
    asked: string | null;
    status: number | null;
    failure: string | null;
    askedAt: Date;
  };
  const rows = await sql<Row[]>`
    SELECT s.id, s.endpoint, s.health_path AS "healthPath",
           CASE WHEN w.endpoint = s.endpoint THEN w.reachable END AS reachable, w.failure AS unanswered,
           CASE WHEN w.endpoint = s.endpoint THEN w.checked_at END AS "checkedAt",
           w.health_asked AS asked, w.health_status AS status, w.health_failure AS failure, w.health_at AS "askedAt"
    FROM services s JOIN service_watch w ON w.service_id = s.id
    WHERE s.id = ANY(${ids}::uuid[])`;
  return new Map(
    rows.map(({ reachable, unanswered, checkedAt, asked, status, failure, askedAt, ...watched }) => {
      const health = { up: isUp({ status }), status, reason: reasonOf(status, failure), askedAt };
      const reason = reachable === false ? failureReason(unanswered) : undefined;
      return [watched.id, { reachable, reason, checkedAt, ...(asked === digestOf(watched) && { health }) }];
    }),
  );
}

/** A health path that was asked, and the outcome. */
export type Check = Watched & Answer;

/** What the provider is told. @param dueMs  when the next question is due */
export async function writeFirstHealth(sql: Sql, check: Check, dueMs: number): Promise<void> {
  const { id, status, failure } = check;
  await sql`
    INSERT INTO service_watch (service_id, health_asked, health_status, health_failure, health_at, health_due_at)
    VALUES (${id}, ${digestOf(check)}, ${status}, ${failure}, now(), now() + ${dueMs} * interval '1 millisecond')
    ON CONFLICT (service_id) DO UPDATE
    SET health_asked = excluded.health_asked, health_status = excluded.health_status,
        health_failure = excluded.health_failure, health_at = excluded.health_at, health_due_at = excluded.health_due_at`;
}

/**
 * Takes services that are due, and sets their next time, so that no other process asks them. At most `perAccount` services of one
 * account are taken at the same time, so that an account with many services that hang does not delay the others.
 */
export async function takeDue(sql: Sql, intervalMs: number, limit: number, perAccount: number): Promise<Watched[]> {
  return sql<Watched[]>`
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

/**
 * Stores how each question ended, adds it to this hour, and sums up the last day and the last 30 days. The first answer of a URL is
 * only for the provider, who may have mistyped it: it counts for no uptime.
 */
export async function writeChecks(sql: Sql, checks: readonly Check[]): Promise<void> {
  const ids = checks.map(({ id }) => id);
  const column = <T>(of: (check: Check) => T): T[] => checks.map(of);
  await sql.begin(async (tx) => {
    await tx`
      WITH checked AS (
        SELECT * FROM unnest(${ids}::uuid[], ${column(digestOf)}::text[], ${column(({ status }) => status)}::int[],
                             ${column(({ failure }) => failure)}::text[], ${column((check) => Number(isUp(check)))}::int[])
          AS checked (service_id, asked, status, failure, up)
      ), before AS (
        SELECT w.service_id, c.up FROM checked c JOIN service_watch w ON w.service_id = c.service_id AND w.health_asked = c.asked
      ), told AS (
        UPDATE service_watch w
        SET health_asked = c.asked, health_status = c.status, health_failure = c.failure, health_at = now()
        FROM checked c WHERE w.service_id = c.service_id
      )
      INSERT INTO service_health_hours (service_id, hour, checks, up)
      SELECT service_id, date_trunc('hour', now(), 'UTC'), 1, up FROM before
      ON CONFLICT (service_id, hour) DO UPDATE
      SET checks = service_health_hours.checks + 1, up = service_health_hours.up + excluded.up`;
    await tx`
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

/** Deletes hours that no sum needs any more. */
export async function deleteOldHours(sql: Sql): Promise<void> {
  await sql`DELETE FROM service_health_hours WHERE hour < now() - interval '31 days'`;
}

/** Percent of checks with a good answer. */
type FoundUptime = { readonly last_24_hours?: number; readonly last_30_days: number };
export type FoundUptimes = ReadonlyMap<string, FoundUptime>;

/** By service id. */
export async function selectUptimes(sql: Sql): Promise<FoundUptimes> {
  type Row = { id: string; checksDay: number; upDay: number; checksMonth: number; upMonth: number };
  const rows = await sql<Row[]>`
    SELECT w.service_id AS id, checks_day AS "checksDay", up_day AS "upDay", checks_month AS "checksMonth",
           up_month AS "upMonth"
    FROM service_watch w JOIN services s ON s.id = w.service_id
    WHERE w.checks_month > 0 AND s.health_path IS NOT NULL AND s.status <> 'removed'`;
  return new Map(
    rows.map(({ id, checksDay, upDay, checksMonth, upMonth }) => [
      id,
      {
        ...(checksDay === 0 ? {} : { last_24_hours: percent(upDay, checksDay) }),
        last_30_days: percent(upMonth, checksMonth),
      },
    ]),
  );
}

/** Two decimals, rounded down: 100 means that no check failed. */
const percent = (up: number, checks: number): number => Math.floor((up * 10_000) / checks) / 100;
