import { countedOf, rowsFrom } from './hours-sql.ts';
import { bucketSql } from './latency-buckets.ts';

/** The sums by day that the statistics of a service need: how many calls took how long, and how many were charged how much. */

/** Adds the rows of `sums`, one per service, day and bucket of latency. The rows are locked in the order of their keys. */
export const addServiceLatencies = (sums: string): string => `
  INSERT INTO service_latencies AS l (service_id, day, bucket, calls)
  SELECT service_id, day, bucket, calls FROM (${sums}) AS sums ORDER BY service_id, day, bucket
  ON CONFLICT (service_id, day, bucket) DO UPDATE SET calls = l.calls + excluded.calls`;

/** Adds the rows of `sums`, one per service, day and rounded amount. The rows are locked in the order of their keys. */
export const addServiceAmounts = (sums: string): string => `
  INSERT INTO service_amounts AS a (service_id, day, amount, calls)
  SELECT service_id, day, amount, calls FROM (${sums}) AS sums ORDER BY service_id, day, amount
  ON CONFLICT (service_id, day, amount) DO UPDATE SET calls = a.calls + excluded.calls`;

const DAY = `(created_at AT TIME ZONE 'UTC')::date AS day`;

/** How many succeeded calls of `from` (rows with `SUMMED_COLUMNS`) took how long: the rows of `service_latencies`. */
export const latencySumsOf = (from: string): string => `
  SELECT service_id, ${DAY}, ${bucketSql('latency_us')}::smallint AS bucket, count(*) AS calls
  FROM ${countedOf(from)} WHERE class = 'succeeded' GROUP BY 1, 2, 3`;

/**
 * An amount rounded to three digits, for statistics: 1 234 567 micro-USD become 1 230 000. `roundedAmount` of day-sums.ts does the
 * same.
 */
const ROUNDED_AMOUNT = `(floor(amount / power(10::numeric, greatest(0, length(amount::text) - 3)))
  * power(10::numeric, greatest(0, length(amount::text) - 3)))::bigint`;

/** How many calls of `from` were charged which amount: the rows of `service_amounts`. */
export const amountSumsOf = (from: string): string => `
  SELECT service_id, ${DAY}, ${ROUNDED_AMOUNT} AS amount, count(*) AS calls
  FROM ${from} WHERE amount > 0 GROUP BY 1, 2, 3`;

export const LATENCY_PARAMETERS = ['service_id uuid', 'days bigint', 'bucket smallint', 'calls bigint'];
export const AMOUNT_PARAMETERS = ['service_id uuid', 'days bigint', 'amount bigint', 'calls bigint'];

/** `days` counts whole days since 1970. */
const DAY_OF_NUMBER = `'epoch'::date + days::int AS day`;

/** The writer's sums by service, day and bucket, one row each, from the parameters `$first` and following. */
export const latencyRowsFrom = (first: number): string =>
  `SELECT service_id, ${DAY_OF_NUMBER}, bucket, calls FROM ${rowsFrom(LATENCY_PARAMETERS, first)}`;

/** The writer's sums by service, day and amount, one row each, from the parameters `$first` and following. */
export const amountRowsFrom = (first: number): string =>
  `SELECT service_id, ${DAY_OF_NUMBER}, amount, calls FROM ${rowsFrom(AMOUNT_PARAMETERS, first)}`;
