import type { Sql } from '../platform/postgres.ts';
import { BUYER_WEIGHT, type Evidence, HALF_LIFE_DAYS, WINDOW_DAYS } from './formula.ts';

export type ServiceEvidence = Evidence & {
  readonly serviceId: string;
  readonly category: string;
  readonly buyers: number;
  /** How many rows of `key_hours` were read: what the judgement cost. */
  readonly rows: number;
};

export type JudgedService = ServiceEvidence & { readonly quality: number };

/** A place in the order of changes. `changedAt` is text, because a `Date` has no microseconds. */
export type ChangeCursor = { readonly serviceId: string; readonly changedAt: string };

export type ChangedQuality = ChangeCursor & {
  readonly quality: number;
  /** Whether no earlier change can still become visible. */
  readonly isSettled: boolean;
};

/**
 * A row's time is taken before its transaction commits, so a row may become visible after rows with a later time. Statements end
 * after 15 s, so no row is later than this.
 */
const SETTLED_AFTER_SECONDS = 30;

/** A service, how many of its calls count since one hour, and since another. */
export type RecentCalls = { readonly id: string; readonly calls: number; readonly later: number };

/** The services with calls in the hours from `since` on. @param laterSince  not before `since` */
export async function selectRecentCalls(sql: Sql, since: Date, laterSince: Date): Promise<RecentCalls[]> {
  return sql<RecentCalls[]>`
    SELECT service_id AS id, sum(calls)::bigint AS calls,
           coalesce(sum(calls) FILTER (WHERE hour >= ${laterSince}), 0)::bigint AS later
    FROM service_hours WHERE hour >= ${since} GROUP BY service_id`;
}

/**
 * Ids of services after `afterId` that have a quality or were called within the window, in order. Removed ones are left out: nobody
 * calls them again.
 *
 * The conditions are scalar queries, because Postgres would hash all of `service_quality` for an EXISTS within an OR: 70 ms per page
 * with 100 000 services, instead of 0.3.
 */
export async function selectJudgedServices(sql: Sql, afterId: string | null, limit: number): Promise<string[]> {
  const after = afterId ?? '00000000-0000-0000-0000-000000000000';
  const rows = await sql<{ id: string }[]>`
    SELECT id FROM services s
    WHERE id > ${after} AND status <> 'removed' AND (
      (SELECT true FROM service_quality q WHERE q.service_id = s.id)
      OR (SELECT true FROM service_hours h
          WHERE h.service_id = s.id AND hour > now() - ${WINDOW_DAYS} * interval '1 day' LIMIT 1))
    ORDER BY id LIMIT ${limit}`;
  return rows.map(({ id }) => id);
}

/**
 * Maximum rows of `key_hours` that a service is judged by, the newest first. Postgres takes 0.3 s for so many. A service that has
 * more within the window has hundreds of buyers, and what is left out is old.
 */
export const MAX_ROWS = 100_000;

/**
 * What is known of these services: each call ages by its hour, each buyer's calls weigh less the more there are, and what is left is
 * summed. Calls of the provider's own account are left out, and so is what is no fault of the service and no merit: the errors of
 * callers, callers who left, and calls that the gateway could not serve are in neither `succeeded` nor `failed`. Latencies are those
 * of succeeded calls.
 *
 * LIMIT makes Postgres compute a weight once per row, and float8 takes a hundredth of the time of numeric: with 1 500 000 rows of a
 * service, 5 s instead of 150. Without the settings it would read and sort all of these rows, to keep the newest.
 */
export function selectEvidence(
  sql: Sql,
  serviceIds: readonly string[],
  maxRows = MAX_ROWS,
): Promise<ServiceEvidence[]> {
  return sql.begin(async (tx) => {
    await tx`
      SELECT set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true),
             set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)`;
    return tx<ServiceEvidence[]>`
    WITH aged AS (
      SELECT s.id AS service_id, k.*
      FROM services s CROSS JOIN LATERAL (
        SELECT account_id, succeeded, failed, succeeded_us,
               power(0.5::float8, greatest(0, date_part('epoch', now() - hour)) / (${HALF_LIFE_DAYS} * 86400.0::float8)) AS weight
        FROM key_hours
        WHERE service_id = s.id AND hour > now() - ${WINDOW_DAYS} * interval '1 day' AND account_id <> s.provider_id
          AND succeeded + failed > 0
        ORDER BY hour DESC LIMIT ${maxRows}
      ) AS k
      WHERE s.id = ANY(${serviceIds}::uuid[])
    ), buyers AS (
      SELECT service_id, account_id, count(*) AS rows, sum(succeeded * weight) AS succeeded,
             sum((succeeded + failed) * weight) AS calls,
             sum(succeeded_us * weight) / nullif(sum(succeeded * weight) FILTER (WHERE succeeded_us > 0), 0) AS latency_us
      FROM aged GROUP BY service_id, account_id
    ), weighed AS (
      SELECT *, calls * ${BUYER_WEIGHT} / (calls + ${BUYER_WEIGHT}) AS weight FROM buyers
    ), sums AS (
      SELECT service_id, sum(rows)::int AS rows, sum(weight) AS weight, sum(weight * succeeded / calls) AS succeeded,
             count(*)::int AS buyers,
             exp(sum(weight * ln(latency_us)) FILTER (WHERE latency_us > 0)
                 / nullif(sum(weight) FILTER (WHERE latency_us > 0), 0)) AS latency_us
      FROM weighed GROUP BY service_id
    )
    SELECT s.id AS "serviceId", s.category, coalesce(t.weight, 0)::float8 AS weight, coalesce(t.rows, 0) AS rows,
           coalesce(t.succeeded, 0)::float8 AS succeeded, coalesce(t.buyers, 0) AS buyers, t.latency_us::float8 AS "latencyUs"
    FROM services s LEFT JOIN sums t ON t.service_id = s.id
    WHERE s.id = ANY(${serviceIds}::uuid[])
    ORDER BY s.id`;
  }, 'READ ONLY');
}

/** Fewer services than these make no typical latency: two would only be compared with each other. */
const MIN_SERVICES = 3;
/** A service with less evidence does not count for its category: otherwise one account could list many slow ones. */
const MIN_EVIDENCE = 5;

/** The median of the typical latencies of each category, in microseconds. */
export async function selectTypicalLatencies(sql: Sql): Promise<Map<string, number>> {
  const rows = await sql<{ category: string; latencyUs: number }[]>`
    SELECT s.category, percentile_cont(0.5) WITHIN GROUP (ORDER BY q.latency_us)::float8 AS "latencyUs"
    FROM service_quality q JOIN services s ON s.id = q.service_id
    WHERE s.status <> 'removed' AND q.latency_us > 0 AND q.evidence >= ${MIN_EVIDENCE}
    GROUP BY s.category HAVING count(*) >= ${MIN_SERVICES}`;
  return new Map(rows.map(({ category, latencyUs }) => [category, latencyUs]));
}

const newRow = ({ serviceId, quality, weight, succeeded, latencyUs, buyers }: JudgedService) => ({
  id: serviceId,
  quality,
  evidence: weight,
  // A float error must not make the rate 1.0000000000000002.
  rate: weight === 0 ? 0 : Math.min(1, succeeded / weight),
  latency: latencyUs === null ? null : Math.round(latencyUs),
  buyers,
});

/** Stores what was found. `changed_at` changes only with the quality, so that gateways read what is new. */
export async function storeQualities(sql: Sql, services: readonly JudgedService[]): Promise<void> {
  await sql`
    INSERT INTO service_quality AS q
      (service_id, quality, evidence, success_rate, latency_us, buyers, changed_at, computed_at)
    SELECT id, quality, evidence, rate, latency, buyers, clock_timestamp(), clock_timestamp()
    FROM json_to_recordset(${JSON.stringify(services.map(newRow))}::text::json)
      AS t (id uuid, quality real, evidence real, rate real, latency bigint, buyers int)
    ORDER BY id
    ON CONFLICT (service_id) DO UPDATE SET
      quality = excluded.quality, evidence = excluded.evidence, success_rate = excluded.success_rate,
      latency_us = excluded.latency_us, buyers = excluded.buyers, computed_at = excluded.computed_at,
      changed_at = CASE WHEN q.quality = excluded.quality THEN q.changed_at ELSE excluded.changed_at END`;
}

/** Qualities that changed after `after` (null: all), in the order of their changes. */
export async function selectChangedQualities(
  sql: Sql,
  after: ChangeCursor | null,
  limit: number,
): Promise<ChangedQuality[]> {
  return sql<ChangedQuality[]>`
    SELECT service_id AS "serviceId", quality::float8 AS quality, changed_at::text AS "changedAt",
           changed_at < now() - ${SETTLED_AFTER_SECONDS} * interval '1 second' AS "isSettled"
    FROM service_quality
    ${after === null ? sql`` : sql`WHERE (changed_at, service_id) > (${after.changedAt}::text::timestamptz, ${after.serviceId}::uuid)`}
    ORDER BY changed_at, service_id LIMIT ${limit}`;
}
