import type { Quality } from '../catalog/quality.ts';
import type { Sql, Tx } from '../platform/postgres.ts';
import { BUYER_WEIGHT, type Evidence, HALF_LIFE_DAYS, TREND_DAYS, WINDOW_DAYS } from './formula.ts';

type ServiceEvidence = Evidence & {
  readonly serviceId: string;
  readonly category: string;
  readonly buyers: number;
  /** The calls that count, each as one. */
  readonly calls: number;
  /** Those of `calls` that succeeded. */
  readonly callsSucceeded: number;
  /** The evidence of `TREND_DAYS` before. */
  readonly before: Evidence;
  /** How many rows of `key_hours` were read: the cost of the judgement. */
  readonly rows: number;
};

type JudgedService = ServiceEvidence & {
  readonly quality: number;
  readonly trend: number | null;
  readonly lowerBound: number;
};

/** A position in the order of changes. `changedAt` is text, because a `Date` has no microseconds. */
export type ChangeCursor = { readonly serviceId: string; readonly changedAt: string };

export type ChangedQuality = ChangeCursor & {
  readonly quality: Quality;
  /** Whether no earlier change can still become visible. */
  readonly isSettled: boolean;
};

/**
 * A row's time is taken before its transaction commits, so a row may become visible after rows with a later time. Statements end
 * after 15 s, so no row is later than this.
 */
const SETTLED_AFTER_SECONDS = 30;

/** A service, and how many of its calls count since one hour and since another. */
type RecentCalls = { readonly id: string; readonly calls: number; readonly later: number };

/** The services with calls in the hours since `since`. @param laterSince not before `since` */
export async function selectRecentCalls(sql: Sql, since: Date, laterSince: Date): Promise<RecentCalls[]> {
  return sql<RecentCalls[]>`
    SELECT service_id AS id, sum(calls)::bigint AS calls,
           coalesce(sum(calls) FILTER (WHERE hour >= ${laterSince}), 0)::bigint AS later
    FROM service_hours WHERE hour >= ${since} GROUP BY service_id`;
}

/**
 * Ids of services after `afterId` that have a quality or were called within the window, in order. Removed services are left out:
 * nobody calls them again.
 *
 * The conditions are scalar queries, because for an EXISTS within an OR Postgres would hash all of `service_quality`: 70 ms per
 * page with 100 000 services, instead of 0.3 ms.
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
 * Maximum rows of `key_hours` that count for a service, newest first. Postgres takes 0.3 s for this many. A service with more rows
 * within the window has hundreds of buyers, and the rows left out are old.
 */
const MAX_ROWS = 100_000;

/** Weight, succeeded weight, and latency in microseconds at one moment; null without calls. */
type Sums = readonly [weight: number | null, succeeded: number | null, latencyUs: number | null] | null;
type EvidenceRow = Omit<ServiceEvidence, keyof Evidence | 'before'> & { readonly now: Sums; readonly before: Sums };

const evidenceOf = (sums: Sums): Evidence => ({
  weight: sums?.[0] ?? 0,
  succeeded: sums?.[1] ?? 0,
  latencyUs: sums?.[2] ?? null,
});

/** The factor by which a call weighed more `TREND_DAYS` ago than it does now. */
const WEIGHED_MORE = 2 ** (TREND_DAYS / HALF_LIFE_DAYS);
/** The rows that count for one of the two moments: a column of `aged`. */
type Moment = 'is_now' | 'was_then';

const ofBuyer = (tx: Tx, moment: Moment, weighed: number) =>
  tx.text(`
    sum(succeeded * weight) FILTER (WHERE ${moment}) * ${weighed}::float8 AS ${moment}_succeeded,
    sum((succeeded + failed) * weight) FILTER (WHERE ${moment}) * ${weighed}::float8 AS ${moment}_calls,
    sum(succeeded_us * weight) FILTER (WHERE ${moment})
      / nullif(sum(timed * weight) FILTER (WHERE ${moment} AND succeeded_us > 0), 0) AS ${moment}_latency_us`);

const ofService = (tx: Tx, moment: Moment) =>
  tx.text(`
    json_build_array(
      sum(${moment}_weight), sum(${moment}_weight * ${moment}_succeeded / ${moment}_calls),
      exp(sum(${moment}_weight * ln(${moment}_latency_us)) FILTER (WHERE ${moment}_latency_us > 0)
          / nullif(sum(${moment}_weight) FILTER (WHERE ${moment}_latency_us > 0), 0))
    ) AS ${moment === 'is_now' ? 'now' : 'before'}`);

/**
 * What is known about these services now, and what was known `TREND_DAYS` before. Each call ages by its hour, each buyer's calls
 * weigh less the more there are, and the weights are summed. Not counted are calls of the provider's own account, and calls that
 * tell neither good nor bad of the service: errors of callers, callers who left, and calls that the gateway could not serve are
 * neither `succeeded` nor `failed`. A call whose whole amount was given back counts as failed, however it ended. Latencies come
 * from succeeded calls, including those that were given back.
 *
 * LIMIT makes Postgres compute a weight once per row, and float8 takes a hundredth of the time of numeric: 5 s instead of 150 for a
 * service with 1 500 000 rows. Without the settings, Postgres would read and sort all of these rows to keep the newest.
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
    const rows = await tx<EvidenceRow[]>`
    WITH aged AS (
      SELECT s.id AS service_id, k.*
      FROM services s CROSS JOIN LATERAL (
        SELECT h.account_id, h.succeeded - coalesce(r.whole_succeeded, 0) AS succeeded, h.failed + coalesce(r.whole, 0) AS failed,
               h.succeeded AS timed, h.succeeded_us, h.hour > now() - ${WINDOW_DAYS} * interval '1 day' AS is_now,
               h.hour <= now() - ${TREND_DAYS} * interval '1 day' AS was_then,
               power(0.5::float8, greatest(0, date_part('epoch', now() - h.hour)) / (${HALF_LIFE_DAYS} * 86400.0::float8)) AS weight
        FROM key_hours h LEFT JOIN LATERAL (
          -- OFFSET 0: looked up row by row, so that the newest are read in the order of their index.
          SELECT whole, whole_succeeded FROM refund_hours
          WHERE key_id = h.key_id AND hour = h.hour AND service_id = h.service_id OFFSET 0) AS r ON true
        WHERE h.service_id = s.id AND h.hour > now() - ${WINDOW_DAYS + TREND_DAYS} * interval '1 day'
          AND h.account_id <> s.provider_id AND h.succeeded + h.failed + coalesce(r.whole, 0) > 0
        ORDER BY h.hour DESC LIMIT ${maxRows}
      ) AS k
      WHERE s.id = ANY(${serviceIds}::uuid[])
    ), buyers AS (
      SELECT service_id, account_id, count(*) AS rows, sum(succeeded) FILTER (WHERE is_now) AS calls_succeeded,
             sum(failed) FILTER (WHERE is_now) AS calls_failed, ${ofBuyer(tx, 'is_now', 1)}, ${ofBuyer(tx, 'was_then', WEIGHED_MORE)}
      FROM aged GROUP BY service_id, account_id
    ), weighed AS (
      SELECT *, is_now_calls * ${BUYER_WEIGHT} / (is_now_calls + ${BUYER_WEIGHT}) AS is_now_weight,
             was_then_calls * ${BUYER_WEIGHT} / (was_then_calls + ${BUYER_WEIGHT}) AS was_then_weight FROM buyers
    ), sums AS (
      SELECT service_id, sum(rows)::int AS rows, count(is_now_calls)::int AS buyers,
             sum(calls_succeeded) AS calls_succeeded, sum(calls_failed) AS calls_failed,
             ${ofService(tx, 'is_now')}, ${ofService(tx, 'was_then')}
      FROM weighed GROUP BY service_id
    )
    SELECT s.id AS "serviceId", s.category, coalesce(t.rows, 0) AS rows, coalesce(t.buyers, 0) AS buyers,
           coalesce(t.calls_succeeded, 0)::float8 AS "callsSucceeded", coalesce(t.calls_succeeded + t.calls_failed, 0)::float8 AS calls,
           t.now, t.before
    FROM services s LEFT JOIN sums t ON t.service_id = s.id
    WHERE s.id = ANY(${serviceIds}::uuid[])
    ORDER BY s.id`;
    return rows.map(({ now, before, ...row }) => ({ ...row, ...evidenceOf(now), before: evidenceOf(before) }));
  }, 'READ ONLY');
}

/** A category with fewer services has no typical latency: two would only be compared with each other. */
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

const newRow = ({ serviceId, quality, trend, lowerBound, weight, succeeded, latencyUs, ...of }: JudgedService) => ({
  id: serviceId,
  quality,
  trend,
  bound: lowerBound,
  evidence: weight,
  // A float error must not make the rate 1.0000000000000002.
  rate: weight === 0 ? 0 : Math.min(1, succeeded / weight),
  latency: latencyUs === null ? null : Math.round(latencyUs),
  buyers: of.buyers,
  calls: threeDigits(of.calls),
  share: of.calls === 0 ? 0 : Math.floor((of.callsSucceeded / of.calls) * 1_000) / 1_000,
});

/** Rounded down to three digits. */
function threeDigits(n: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, n))) - 2);
  return Math.floor(n / unit) * unit;
}

/** Everything that gateways show from a row. @param of the row's name in the statement */
const shown = (sql: Sql, of: 'q' | 'excluded') =>
  sql.text(
    `(${of}.quality, ${of}.trend, ${of}.lower_bound, ${of}.calls, ${of}.buyers, ${of}.calls_succeeded, ${twoDigits(of)})`,
  );

/** The latency of a row in milliseconds, to two digits, as text. */
const twoDigits = (of: string): string => `to_char(${of}.latency_us / 1000.0, '9.9EEEE')`;

/** Stores the results. `changed_at` changes only when what gateways show has changed, so that they read only new values. */
export async function storeQualities(sql: Sql, services: readonly JudgedService[]): Promise<void> {
  await sql`
    INSERT INTO service_quality AS q
      (service_id, quality, trend, lower_bound, evidence, success_rate, latency_us, buyers, calls, calls_succeeded,
       changed_at, computed_at)
    SELECT id, quality, trend, bound, evidence, rate, latency, buyers, calls, share, clock_timestamp(), clock_timestamp()
    FROM json_to_recordset(${JSON.stringify(services.map(newRow))}::text::json)
      AS t (id uuid, quality real, trend real, bound real, evidence real, rate real, latency bigint, buyers int, calls bigint,
            share numeric)
    ORDER BY id
    ON CONFLICT (service_id) DO UPDATE SET
      quality = excluded.quality, trend = excluded.trend, lower_bound = excluded.lower_bound, evidence = excluded.evidence,
      success_rate = excluded.success_rate, latency_us = excluded.latency_us, buyers = excluded.buyers, calls = excluded.calls,
      calls_succeeded = excluded.calls_succeeded, computed_at = excluded.computed_at,
      changed_at = CASE WHEN ${shown(sql, 'q')} IS NOT DISTINCT FROM ${shown(sql, 'excluded')}
                        THEN q.changed_at ELSE excluded.changed_at END`;
}

/**
 * Qualities that changed after `after` (null: all), in the order of their changes. The cast goes through numeric, because the real
 * 53.7 is 53.70000076… as a float8, and some values would fall below a `min_quality` that they equal.
 */
export async function selectChangedQualities(
  sql: Sql,
  after: ChangeCursor | null,
  limit: number,
): Promise<ChangedQuality[]> {
  return sql<ChangedQuality[]>`
    SELECT service_id AS "serviceId",
           json_build_object('value', quality::numeric::float8, 'trend', trend::numeric::float8,
             'lowerBound', lower_bound::numeric::float8, 'record', CASE WHEN calls > 0 THEN json_build_object(
               'calls', calls, 'buyers', buyers, 'successRate', calls_succeeded,
               'latencyMs', (${sql.text(twoDigits('service_quality'))})::float8) END) AS quality,
           changed_at::text AS "changedAt",
           changed_at < now() - ${SETTLED_AFTER_SECONDS} * interval '1 second' AS "isSettled"
    FROM service_quality
    ${after === null ? sql`` : sql`WHERE (changed_at, service_id) > (${after.changedAt}::text::timestamptz, ${after.serviceId}::uuid)`}
    ORDER BY changed_at, service_id LIMIT ${limit}`;
}
