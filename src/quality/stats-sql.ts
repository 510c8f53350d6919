import { CALL_CLASSES, type CallClass } from '../ledger/rollups/call-class.ts';
import type { Sql, Tx } from '../platform/postgres.ts';
import { WINDOW_DAYS } from './formula.ts';

/** The counted calls of one service on one UTC day. */
export type DayStats = Readonly<Record<CallClass, number>> & {
  /** YYYY-MM-DD */
  readonly day: string;
  readonly calls: number;
  /** Of succeeded calls; see src/ledger/rollups/latency-buckets.ts. */
  readonly latencyHistogram: readonly number[];
};

/** How many calls were charged this amount, which is rounded to three digits. */
export type ChargedAmount = { readonly amountMicros: number; readonly calls: number };

/** What the quality was made from, when it was last computed. */
export type QualityInputs = {
  readonly evidence: number;
  readonly successRate: number;
  readonly latencyUs: number | null;
  readonly buyers: number;
  readonly computedAt: Date;
};

export type ServiceStats = {
  /** Newest first; days without calls are left out. */
  readonly days: readonly DayStats[];
  /** Ascending. */
  readonly amounts: readonly ChargedAmount[];
  readonly inputs: QualityInputs | null;
};

/** The last 30 UTC days of a service, today included. Reads its rows of hours: 720 at most. */
export function selectStats(sql: Sql, serviceId: string): Promise<ServiceStats> {
  return sql.begin(
    async (tx) => ({
      days: await selectDays(tx, serviceId),
      amounts: await selectAmounts(tx, serviceId),
      inputs: await selectInputs(tx, serviceId),
    }),
    'ISOLATION LEVEL REPEATABLE READ READ ONLY',
  );
}

const firstDay = (tx: Tx) => tx`(now() AT TIME ZONE 'UTC')::date - ${WINDOW_DAYS - 1}::int`;

async function selectDays(tx: Tx, serviceId: string): Promise<DayStats[]> {
  const classes = tx.text(CALL_CLASSES.map((name) => `sum(h.${name})::bigint AS ${name}`).join(', '));
  return tx<DayStats[]>`
    WITH hours AS (
      SELECT (hour AT TIME ZONE 'UTC')::date AS day, * FROM service_hours
      WHERE service_id = ${serviceId} AND hour >= (${firstDay(tx)})::timestamp AT TIME ZONE 'UTC'
    ), buckets AS (
      SELECT day, array_agg(calls ORDER BY bucket) AS histogram FROM (
        SELECT h.day, u.bucket, sum(u.calls)::int AS calls
        FROM hours h, unnest(h.latency_histogram) WITH ORDINALITY AS u (calls, bucket)
        GROUP BY h.day, u.bucket
      ) AS summed GROUP BY day
    )
    SELECT to_char(h.day, 'YYYY-MM-DD') AS day, sum(h.calls)::bigint AS calls, ${classes},
           to_json(b.histogram) AS "latencyHistogram"
    FROM hours h JOIN buckets b USING (day) GROUP BY h.day, b.histogram ORDER BY h.day DESC`;
}

async function selectAmounts(tx: Tx, serviceId: string): Promise<ChargedAmount[]> {
  return tx<ChargedAmount[]>`
    SELECT amount AS "amountMicros", sum(calls)::bigint AS calls FROM service_amounts
    WHERE service_id = ${serviceId} AND day >= ${firstDay(tx)}
    GROUP BY amount ORDER BY amount`;
}

async function selectInputs(tx: Tx, serviceId: string): Promise<QualityInputs | null> {
  const rows = await tx<QualityInputs[]>`
    SELECT evidence::float8 AS evidence, success_rate::float8 AS "successRate", latency_us AS "latencyUs", buyers,
           computed_at AS "computedAt"
    FROM service_quality WHERE service_id = ${serviceId}`;
  return rows[0] ?? null;
}
