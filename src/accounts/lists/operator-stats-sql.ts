import type { Tx } from '../../platform/postgres.ts';
import { selectCarriedMicros } from '../refunds/refund-sql.ts';

/** How many rows of a table have each status. */
export type Counts = Readonly<Record<string, number>>;

/** Counted calls in a period, and the money they moved in micro-USD. */
export type CallSums = {
  readonly calls: number;
  readonly freeCalls: number;
  readonly succeeded: number;
  readonly chargedMicros: number;
  /** What came back of these calls, at any time. */
  readonly refundedMicros: number;
  /** The platform's share, less what it gave back. */
  readonly feesMicros: number;
};

export type Stats = {
  readonly accounts: Counts;
  readonly keys: Counts;
  readonly services: Counts;
  readonly today: CallSums;
  readonly lastDay: CallSums;
  readonly lastMonth: CallSums;
  /** Usage events that could not be turned into calls. */
  readonly rejectedEvents: number;
  /** What providers owe because operators gave back more than their earnings covered. */
  readonly carriedMicros: number;
};

const DAY_MS = 86_400_000;

/**
 * Counts and sums over everything: reads the indexes by status, and the sums by hour of 30 days.
 *
 * @param timed sets the deadline of each statement
 */
export async function selectStats(timed: () => Promise<Tx>): Promise<Stats> {
  const accounts = await (await timed())<Count[]>`SELECT status, count(*) FROM accounts GROUP BY status`;
  const keys = await (await timed())<Count[]>`SELECT status, count(*) FROM api_keys GROUP BY status`;
  const services = await (await timed())<Count[]>`SELECT status, count(*) FROM services GROUP BY status`;
  const nowMs = Date.now();
  const today = await sumsSince(await timed(), nowMs - (nowMs % DAY_MS));
  const lastDay = await sumsSince(await timed(), nowMs - DAY_MS);
  const lastMonth = await sumsSince(await timed(), nowMs - 30 * DAY_MS);
  const rejected = await (await timed())<{ count: number }[]>`SELECT count(*) FROM rejected_events`;
  const carried = await selectCarriedMicros(await timed());
  return {
    accounts: countsOf(accounts),
    keys: countsOf(keys),
    services: countsOf(services),
    today,
    lastDay,
    lastMonth,
    rejectedEvents: rejected[0]?.count ?? 0,
    carriedMicros: carried,
  };
}

type Count = { readonly status: string; readonly count: number };

/** Sums of the hours that began at this time or later. */
async function sumsSince(tx: Tx, ms: number): Promise<CallSums> {
  const since = new Date(ms);
  const rows = await tx<CallSums[]>`
    SELECT c.calls, c.free_calls AS "freeCalls", c.succeeded, c.charged AS "chargedMicros", r.amount AS "refundedMicros",
           c.fees - r.fees AS "feesMicros"
    FROM (
      SELECT coalesce(sum(calls), 0)::bigint AS calls, coalesce(sum(free_calls), 0)::bigint AS free_calls,
             coalesce(sum(succeeded), 0)::bigint AS succeeded, coalesce(sum(charged), 0)::bigint AS charged,
             coalesce(sum(fees), 0)::bigint AS fees
      FROM service_hours WHERE hour >= ${since}
    ) AS c CROSS JOIN (
      SELECT coalesce(sum(amount), 0)::bigint AS amount, coalesce(sum(fees), 0)::bigint AS fees
      FROM refund_hours WHERE hour >= ${since}
    ) AS r`;
  return rows[0] as CallSums;
}

const countsOf = (rows: readonly Count[]): Counts =>
  Object.fromEntries(rows.map(({ status, count }) => [status, count]));
