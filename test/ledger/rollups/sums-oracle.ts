import {
  ACCOUNT_DAYS,
  ACCOUNT_KEY_DAYS,
  KEY_DAYS,
  KEY_HOURS,
  SERVICE_AMOUNTS,
  SERVICE_HOURS,
  SERVICE_LATENCIES,
} from '../../../src/ledger/rollups/sum-tables.ts';
import { TAG_DAYS } from '../../../src/ledger/rollups/tag-sums.ts';
import type { Tx } from '../../../src/platform/postgres.ts';

/**
 * The sums of calls in SQL, made of nothing but the rows of `calls`. The writer makes them in JavaScript: where both agree, neither
 * has a fault that the other has not.
 */

/** `classOf` as an expression on columns of `calls`. */
export const CLASS_SQL = `CASE
  WHEN status = 499 OR outcome = 'refunded:caller_gone' THEN 'caller_left'
  WHEN outcome = 'completed' AND status < 400 THEN 'succeeded'
  WHEN outcome = 'completed' AND status < 500 THEN 'caller_errors'
  WHEN outcome IN ('refunded:invalid_request', 'refunded:payload_too_large', 'refunded:body_too_slow') THEN 'caller_errors'
  WHEN outcome = 'refunded:upstream_rate_limited' THEN 'caller_errors'
  WHEN outcome IN ('refunded:upstream_error', 'refunded:upstream_denied') THEN 'upstream_error'
  WHEN outcome = 'refunded:upstream_timeout' THEN 'upstream_timeout'
  WHEN outcome = 'refunded:upstream_cut' THEN 'upstream_cut'
  WHEN outcome IN ('completed', 'refunded:upstream_5xx') THEN 'upstream_5xx'
  ELSE 'unavailable' END`;

/** `bucketOf` as an expression on a column of type `bigint`. */
export const bucketSql = (latencyUs: string): string =>
  `width_bucket(${latencyUs}, ARRAY(SELECT round(1000 * 1.2 ^ i)::bigint FROM generate_series(0, 83) AS i))`;

/** `roundedAmount` as an expression on the column `amount`. */
const ROUNDED_AMOUNT = `(floor(amount / power(10::numeric, greatest(0, length(amount::text) - 3)))
  * power(10::numeric, greatest(0, length(amount::text) - 3)))::bigint`;

/** The counted calls of `from`, each with its hour, its day and its class. */
const countedOf = (from: string): string => `
  (SELECT c.*, date_trunc('hour', created_at, 'UTC') AS hour, (created_at AT TIME ZONE 'UTC')::date AS day_begun, ${CLASS_SQL} AS class
   FROM ${from} c WHERE amount > 0 OR (account_id <> provider_id AND strpos(path, '#') = 0)) AS counted`;

const classes = ['succeeded', 'caller_errors', 'caller_left', 'upstream_error', 'upstream_timeout', 'upstream_5xx'];
const countClass = (name: string): string => `count(*) FILTER (WHERE class = '${name}') AS ${name}`;

const serviceSumsOf = (from: string): string => `
  SELECT service_id, hour, (min(provider_id::text))::uuid AS provider_id, count(*) AS calls,
    count(*) FILTER (WHERE outcome = 'completed') AS completed,
    count(*) FILTER (WHERE outcome = 'completed' AND free_tier) AS free_calls,
    ${[...classes, 'upstream_cut', 'unavailable'].map(countClass).join(', ')},
    sum(amount) AS charged, sum(fee) AS fees,
    coalesce(sum(latency_us) FILTER (WHERE class = 'succeeded'), 0) AS latency_sum_us,
    count(*) FILTER (WHERE authorized IS NOT NULL AND outcome = 'completed' AND NOT free_tier) AS by_use,
    count(*) FILTER (WHERE at_cap AND outcome = 'completed' AND NOT free_tier) AS at_cap,
    min(created_at) AS first_call_at, max(created_at) AS last_call_at
  FROM ${countedOf(from)} GROUP BY service_id, hour`;

const keySumsOf = (from: string): string => `
  SELECT key_id, hour, service_id, (min(account_id::text))::uuid AS account_id, count(*) AS calls,
    count(*) FILTER (WHERE outcome = 'completed') AS completed,
    count(*) FILTER (WHERE outcome = 'completed' AND free_tier) AS free_calls,
    count(*) FILTER (WHERE class = 'succeeded') AS succeeded,
    count(*) FILTER (WHERE class IN ('upstream_error', 'upstream_timeout', 'upstream_5xx', 'upstream_cut')) AS failed,
    count(*) FILTER (WHERE latency_us > 0) AS latency_count, sum(amount) AS spent, sum(latency_us) AS latency_sum_us,
    coalesce(sum(latency_us) FILTER (WHERE class = 'succeeded'), 0) AS succeeded_us,
    min(created_at) AS first_call_at, max(created_at) AS last_call_at
  FROM ${countedOf(from)} GROUP BY key_id, hour, service_id`;

const keyDaysOf = (from: string): string => `
  SELECT key_id, day_begun AS day, service_id, (min(account_id::text))::uuid AS account_id, count(*) AS calls,
    count(*) FILTER (WHERE outcome = 'completed' AND free_tier) AS free_calls,
    sum(amount) AS spent, sum(latency_us) AS latency_sum_us, count(*) FILTER (WHERE latency_us > 0) AS latency_count
  FROM ${countedOf(from)} WHERE hour < (SELECT days_summed_to FROM installation) GROUP BY key_id, day_begun, service_id`;

/** The sums by day of accounts that have them, by account and one thing more. */
const accountDaysOf =
  (by: 'service_id' | 'key_id') =>
  (from: string): string =>
    `
  SELECT account_id, day_begun AS day, ${by}, count(*) AS calls,
    count(*) FILTER (WHERE outcome = 'completed' AND free_tier) AS free_calls,
    sum(amount) AS spent, sum(latency_us) AS latency_sum_us, count(*) FILTER (WHERE latency_us > 0) AS latency_count
  FROM ${countedOf(from)} JOIN accounts a ON a.id = account_id AND day_begun >= a.summed_from GROUP BY account_id, day_begun, ${by}`;

const latencySumsOf = (from: string): string => `
  SELECT service_id, day_begun AS day, ${bucketSql('latency_us')}::smallint AS bucket, count(*) AS calls
  FROM ${countedOf(from)} WHERE class = 'succeeded' GROUP BY 1, 2, 3`;

/** How many calls of `from` were charged which amount. */
export const amountSumsOf = (from: string): string => `
  SELECT service_id, (created_at AT TIME ZONE 'UTC')::date AS day, ${ROUNDED_AMOUNT} AS amount, count(*) AS calls
  FROM ${from} WHERE amount > 0 GROUP BY 1, 2, 3`;

/** Which tags have sums is what `tag_months` says: test/ledger/rollups/tags.test.ts holds that against a model. */
const tagDaysOf = (from: string): string => `
  SELECT account_id, day, name AS tag, count(*) AS calls,
    count(*) FILTER (WHERE outcome = 'completed' AND free_tier) AS free_calls,
    sum(amount) AS spent, sum(latency_us) AS latency_sum_us, count(*) FILTER (WHERE latency_us > 0) AS latency_count
  FROM (
    SELECT counted.account_id, day_begun AS day, coalesce(m.tag, 'other') AS name, outcome, free_tier, amount, latency_us
    FROM ${countedOf(from)} LEFT JOIN tag_months m
      ON m.account_id = counted.account_id AND m.tag = counted.tag AND m.month = date_trunc('month', day_begun::timestamp)
    WHERE counted.tag IS NOT NULL
  ) AS named GROUP BY account_id, day, name`;

const TABLES = [
  [SERVICE_HOURS, serviceSumsOf],
  [KEY_HOURS, keySumsOf],
  [KEY_DAYS, keyDaysOf],
  [ACCOUNT_DAYS, accountDaysOf('service_id')],
  [ACCOUNT_KEY_DAYS, accountDaysOf('key_id')],
  [SERVICE_LATENCIES, latencySumsOf],
  [SERVICE_AMOUNTS, amountSumsOf],
  [TAG_DAYS, tagDaysOf],
] as const;

/** A row of the sums that is not as `calls` says: missing from the table, too much in it, or with other sums. */
type Difference = { readonly table: string; readonly isStored: boolean; readonly row: unknown };

const PARTS = TABLES.map(([{ name, columns }, sumsOf]) => {
  const list = columns.join(', ');
  return {
    rows: `
  ${name}_stored AS (SELECT to_jsonb(s) AS row FROM (SELECT ${list} FROM ${name}) AS s),
  ${name}_counted AS (SELECT to_jsonb(c) AS row FROM (SELECT ${list} FROM (${sumsOf('all_calls')}) AS x) AS c)`,
    differences: `
  SELECT '${name}' AS "table", true AS "isStored", row FROM (TABLE ${name}_stored EXCEPT ALL TABLE ${name}_counted) AS more
  UNION ALL
  SELECT '${name}', false, row FROM (TABLE ${name}_counted EXCEPT ALL TABLE ${name}_stored) AS less`,
  };
});

// Every part reads the same rows of `calls`, so Postgres plans for its partitions once.
const COMPARE_SQL = `
  WITH all_calls AS MATERIALIZED (SELECT * FROM calls), ${PARTS.map(({ rows }) => rows).join(',')}
  ${PARTS.map(({ differences }) => differences).join(' UNION ALL ')}`;

/** Computes all sums from `calls` again, and compares: one statement, so one snapshot. It reads every call. Empty when all is right. */
export async function compareSums(sql: Tx): Promise<Difference[]> {
  return (await sql.unsafe(COMPARE_SQL, [])) as unknown as Difference[];
}

/** Makes the sums of all calls, in place of those that are there. */
export async function sumUp(sql: Tx): Promise<void> {
  for (const [{ name, columns }, sumsOf] of TABLES) {
    const list = columns.join(', ');
    await sql.unsafe(
      `DELETE FROM ${name}; INSERT INTO ${name} (${list}) SELECT ${list} FROM (${sumsOf('calls')}) AS sums`,
    );
  }
}
