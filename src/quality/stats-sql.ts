import { CALL_CLASSES, type CallClass } from '../ledger/rollups/call-class.ts';
import { BUCKETS } from '../ledger/rollups/latency-buckets.ts';
import { DAYS_OF_HOURS } from '../ledger/rollups/recent-hours.ts';
import type { Sql, Tx } from '../platform/postgres.ts';
import { WINDOW_DAYS } from './formula.ts';

/** Calls that were given back whole, which count as failures, and those of them that had succeeded. */
type GivenBack = { readonly givenBack: number; readonly givenBackSucceeded: number };

/** The counted calls of one service on one UTC day. */
export type DayStats = Readonly<Record<CallClass, number>> &
  GivenBack & {
    /** YYYY-MM-DD */
    readonly day: string;
    readonly calls: number;
    /** Completed calls priced by use that were not free, and how many of them were charged the highest price. */
    readonly byUse: number;
    readonly atCap: number;
    /** Of succeeded calls; see src/ledger/rollups/latency-buckets.ts. */
    readonly latencyHistogram: readonly number[];
  };

/** The counted calls of one service in one hour. */
export type HourStats = Readonly<Record<CallClass, number>> &
  GivenBack & {
    readonly hour: Date;
    readonly calls: number;
    /** Of succeeded calls. */
    readonly latencySumUs: number;
  };

/** What the charged calls cost, each amount rounded to three digits. */
export type ChargedPrices = {
  /** YYYY-MM-DD; null: all days together */
  readonly day: string | null;
  readonly medianMicros: number;
  readonly p95Micros: number;
};

/** The evidence from which the quality was last computed. */
type QualityInputs = {
  readonly evidence: number;
  readonly successRate: number;
  readonly latencyUs: number | null;
  readonly buyers: number;
  readonly computedAt: Date;
};

export type ServiceStats = {
  /** Newest first; days without calls are left out. */
  readonly days: readonly DayStats[];
  /** Hours with calls, newest first. Null for a service that has calls outside the last three days, or no calls at all. */
  readonly hours: readonly HourStats[] | null;
  /** Days without charged calls are left out. */
  readonly prices: readonly ChargedPrices[];
  readonly inputs: QualityInputs | null;
};

/** The last 30 UTC days of a service, today included. Reads its rows by hour: 720 at most. */
export function selectStats(sql: Sql, serviceId: string): Promise<ServiceStats> {
  return sql.begin(
    async (tx) => ({
      ...(await selectTimes(tx, serviceId)),
      prices: await selectPrices(tx, serviceId),
      inputs: await selectInputs(tx, serviceId),
    }),
    'ISOLATION LEVEL REPEATABLE READ READ ONLY',
  );
}

const firstDay = (tx: Tx) => tx`(now() AT TIME ZONE 'UTC')::date - ${WINDOW_DAYS - 1}::int`;

const givenBack = (tx: Tx) => tx`(
  SELECT coalesce(sum(whole), 0)::bigint AS whole, coalesce(sum(whole_succeeded), 0)::bigint AS whole_succeeded
  FROM refund_hours WHERE service_id = h.service_id AND hour = h.hour)`;

async function selectDays(tx: Tx, serviceId: string): Promise<DayStats[]> {
  const classes = tx.text(CALL_CLASSES.map((name) => `sum(${name})::bigint AS ${name}`).join(', '));
  type Row = Omit<DayStats, 'latencyHistogram'>;
  const days = await tx<Row[]>`
    SELECT to_char((hour AT TIME ZONE 'UTC')::date, 'YYYY-MM-DD') AS day, sum(calls)::bigint AS calls, ${classes},
           sum(by_use)::bigint AS "byUse", sum(at_cap)::bigint AS "atCap", sum(whole)::bigint AS "givenBack",
           sum(whole_succeeded)::bigint AS "givenBackSucceeded"
    FROM service_hours h CROSS JOIN LATERAL ${givenBack(tx)} AS back
    WHERE service_id = ${serviceId} AND hour >= (${firstDay(tx)})::timestamp AT TIME ZONE 'UTC'
    GROUP BY 1 ORDER BY 1 DESC`;
  const latencies = await tx<{ day: string; bucket: number; calls: number }[]>`
    SELECT to_char(day, 'YYYY-MM-DD') AS day, bucket, calls FROM service_latencies
    WHERE service_id = ${serviceId} AND day >= ${firstDay(tx)}`;
  return days.map((row) => {
    const latencyHistogram = new Array<number>(BUCKETS).fill(0);
    for (const { day, bucket, calls } of latencies) if (day === row.day) latencyHistogram[bucket] = calls;
    return { ...row, latencyHistogram };
  });
}

async function selectTimes(tx: Tx, serviceId: string): Promise<Pick<ServiceStats, 'days' | 'hours'>> {
  const days = await selectDays(tx, serviceId);
  const isNew = days.length > 0 && days.length <= DAYS_OF_HOURS;
  const hours = isNew ? await selectHours(tx, serviceId) : [];
  // All hours or none: a part of them would say less than the days.
  const known = hours.reduce((sum, { calls }) => sum + calls, 0);
  const isWhole = known > 0 && known === days.reduce((sum, { calls }) => sum + calls, 0);
  return { days, hours: isWhole ? hours : null };
}

async function selectHours(tx: Tx, serviceId: string): Promise<HourStats[]> {
  return tx<HourStats[]>`
    SELECT hour, calls, ${tx.text(CALL_CLASSES.join(', '))}, latency_sum_us AS "latencySumUs", whole AS "givenBack",
           whole_succeeded AS "givenBackSucceeded"
    FROM service_hours h CROSS JOIN LATERAL ${givenBack(tx)} AS back
    WHERE service_id = ${serviceId}
      AND hour >= ((now() AT TIME ZONE 'UTC')::date - ${DAYS_OF_HOURS - 1}::int)::timestamp AT TIME ZONE 'UTC'
    ORDER BY hour DESC`;
}

/** The median and the 95th percentile of the amounts of charged calls. */
async function selectPrices(tx: Tx, serviceId: string): Promise<ChargedPrices[]> {
  return tx<ChargedPrices[]>`
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

async function selectInputs(tx: Tx, serviceId: string): Promise<QualityInputs | null> {
  const rows = await tx<QualityInputs[]>`
    SELECT evidence::float8 AS evidence, success_rate::float8 AS "successRate", latency_us AS "latencyUs", buyers,
           computed_at AS "computedAt"
    FROM service_quality WHERE service_id = ${serviceId}`;
  return rows[0] ?? null;
}
