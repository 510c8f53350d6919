import type { Sql } from '../platform/postgres.ts';
import { BUYER_WEIGHT, type Evidence, HALF_LIFE_DAYS, WINDOW_DAYS } from './formula.ts';

export type ServiceEvidence = Evidence & {
  readonly serviceId: string;
  readonly category: string;
  readonly buyers: number;
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

/**
 * Ids of services that may have been called within the last two hours, in order. A call that took longer is noticed when all services
 * are judged again.
 */
export async function selectActiveServices(sql: Sql): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    SELECT DISTINCT service_id AS id FROM service_hours WHERE hour >= now() - interval '3 hours' ORDER BY 1`;
  return rows.map(({ id }) => id);
}

/** Ids of services after `afterId` that have a quality or were called within the window, in order. */
export async function selectJudgedServices(sql: Sql, afterId: string | null, limit: number): Promise<string[]> {
  const after = afterId ?? '00000000-0000-0000-0000-000000000000';
  const rows = await sql<{ id: string }[]>`
    SELECT id FROM services s
    WHERE id > ${after} AND (EXISTS (SELECT FROM service_quality q WHERE q.service_id = s.id)
      OR EXISTS (SELECT FROM service_hours h WHERE h.service_id = s.id AND hour > now() - ${WINDOW_DAYS} * interval '1 day'))
    ORDER BY id LIMIT ${limit}`;
  return rows.map(({ id }) => id);
}

/**
 * What is known of these services: each call ages by its hour, each buyer's calls weigh less the more there are, and what is left is
 * summed. Calls of the provider's own account are left out, and so is what is no fault of the service and no merit: the errors of
 * callers, callers who left, and calls that the gateway could not serve are in neither `succeeded` nor `failed`.
 */
export async function selectEvidence(sql: Sql, serviceIds: readonly string[]): Promise<ServiceEvidence[]> {
  return sql<ServiceEvidence[]>`
    WITH aged AS (
      SELECT k.service_id, k.account_id, k.succeeded, k.failed, k.latency_sum_us, k.latency_count,
             power(0.5, greatest(0, extract(epoch FROM now() - k.hour)) / (${HALF_LIFE_DAYS} * 86400.0))::float8 AS weight
      FROM key_hours k JOIN services s ON s.id = k.service_id
      WHERE k.service_id = ANY(${serviceIds}::uuid[]) AND k.hour > now() - ${WINDOW_DAYS} * interval '1 day'
        AND k.account_id <> s.provider_id
    ), buyers AS (
      SELECT service_id, account_id, sum(succeeded * weight) AS succeeded, sum((succeeded + failed) * weight) AS calls,
             sum(latency_sum_us * weight) / nullif(sum(latency_count * weight), 0) AS latency_us
      FROM aged GROUP BY service_id, account_id HAVING sum(succeeded + failed) > 0
    ), weighed AS (
      SELECT *, calls * ${BUYER_WEIGHT} / (calls + ${BUYER_WEIGHT}) AS weight FROM buyers
    ), sums AS (
      SELECT service_id, sum(weight) AS weight, sum(weight * succeeded / calls) AS succeeded, count(*)::int AS buyers,
             exp(sum(weight * ln(latency_us)) FILTER (WHERE latency_us > 0)
                 / nullif(sum(weight) FILTER (WHERE latency_us > 0), 0)) AS latency_us
      FROM weighed GROUP BY service_id
    )
    SELECT s.id AS "serviceId", s.category, coalesce(t.weight, 0)::float8 AS weight,
           coalesce(t.succeeded, 0)::float8 AS succeeded, coalesce(t.buyers, 0) AS buyers, t.latency_us::float8 AS "latencyUs"
    FROM services s LEFT JOIN sums t ON t.service_id = s.id
    WHERE s.id = ANY(${serviceIds}::uuid[])
    ORDER BY s.id`;
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

/**
 * Qualities that changed after `after` (null: all), in the order of their changes. By way of numeric, because 53.7 as a real is
 * 53.70000076… as a float8, and 50.3 would be less than a `min_quality` of 50.3.
 */
export async function selectChangedQualities(
  sql: Sql,
  after: ChangeCursor | null,
  limit: number,
): Promise<ChangedQuality[]> {
  return sql<ChangedQuality[]>`
    SELECT service_id AS "serviceId", quality::numeric::float8 AS quality, changed_at::text AS "changedAt",
           changed_at < now() - ${SETTLED_AFTER_SECONDS} * interval '1 second' AS "isSettled"
    FROM service_quality
    ${after === null ? sql`` : sql`WHERE (changed_at, service_id) > (${after.changedAt}::text::timestamptz, ${after.serviceId}::uuid)`}
    ORDER BY changed_at, service_id LIMIT ${limit}`;
}
