import { DAYS_SUMMED_TO } from '../ledger/rollups/sum-tables.ts';
import { COUNTED_SQL } from '../ledger/usage-event.ts';
import type { Tx } from '../platform/postgres.ts';
import { type TimeRange, utcDay } from './time-range.ts';
import { matches, SUMMED_AS, type UsageFilter } from './usage-sql.ts';

// What pages of usage add up: rows of stored sums, and single calls of hours and days that are covered only in part.

/** Sums over matching calls that count (`isCounted` of src/ledger/usage-event.ts). */
export type Sums = {
  readonly calls: number;
  /** Free calls used. A refunded call gave its free call back, and does not count. */
  readonly freeCalls: number;
  readonly spentMicros: number;
  /** Sum and number of the known latencies. The latency is unknown if the call's gateway died or its admission got no reply. */
  readonly latencySumUs: number;
  readonly latencyCount: number;
};

export const SUMS = 'calls, free_calls, spent, latency_sum_us, latency_count';

export const ADDED_UP = `sum(calls)::bigint AS calls, sum(free_calls)::bigint AS free_calls, sum(spent)::bigint AS spent,
  sum(latency_sum_us)::bigint AS latency_sum_us, sum(latency_count)::bigint AS latency_count`;

/** These columns under the names that `Sums` has. */
export const NAMED_SUMS = `calls, free_calls AS "freeCalls", spent AS "spentMicros", latency_sum_us AS "latencySumUs",
  latency_count AS "latencyCount"`;

/** The sums of partial hours or days, from their calls, in the form of `hourSums` and `daySums`. */
export const sumsOfCalls = (tx: Tx, filter: UsageFilter) => tx`
  SELECT service_id, key_id, (created_at AT TIME ZONE 'UTC')::date AS day, count(*) AS calls,
         count(*) FILTER (WHERE outcome = 'completed' AND free_tier) AS free_calls, sum(amount) AS spent,
         sum(latency_us) AS latency_sum_us, count(*) FILTER (WHERE latency_us > 0) AS latency_count
  FROM calls c WHERE ${matches(tx, filter)} AND ${tx.text(COUNTED_SQL)}
    ${filter.tag === null ? tx`` : tx`AND ${tx.text(SUMMED_AS)} = ${filter.tag}`}
  GROUP BY 1, 2, 3`;

/** The range as a condition on a column of hours or days. */
export const within = (tx: Tx, unit: 'hour' | 'day', { fromMs, toMs }: TimeRange) => {
  const at = (ms: number) => (unit === 'hour' ? tx`${new Date(ms)}` : tx`${utcDay(ms)}::date`);
  return tx`
    ${fromMs === null ? tx`` : tx`AND ${tx.text(unit)} >= ${at(fromMs)}`}
    ${toMs === null ? tx`` : tx`AND ${tx.text(unit)} < ${at(toMs)}`}`;
};

/** The sums of whole hours by key and service. @param of the rest of a WHERE */
export const keyHours = (tx: Tx, of: ReturnType<Tx>, range: TimeRange) => tx`
  SELECT service_id, key_id, (hour AT TIME ZONE 'UTC')::date AS day, ${tx.text(SUMS)} FROM key_hours WHERE ${of} ${within(tx, 'hour', range)}`;

/** The sums of whole days by key and service: those of `key_days`, and of the hours that are not in it yet. */
export const keyDays = (tx: Tx, of: ReturnType<Tx>, range: TimeRange) => tx`
  SELECT service_id, key_id, day, ${tx.text(SUMS)} FROM key_days WHERE ${of} ${within(tx, 'day', range)}
  UNION ALL ${keyHours(tx, tx`${of} AND hour >= ${tx.text(DAYS_SUMMED_TO)}`, range)}`;

export function addedUp(all: readonly Sums[]): Sums {
  const of = (name: keyof Sums): number => all.reduce((sum, sums) => sum + sums[name], 0);
  return {
    calls: of('calls'),
    freeCalls: of('freeCalls'),
    spentMicros: of('spentMicros'),
    latencySumUs: of('latencySumUs'),
    latencyCount: of('latencyCount'),
  };
}
