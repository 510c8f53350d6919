import type { Tx } from '../../platform/postgres.ts';

/** How many rows of a table have each status. */
export type Counts = Readonly<Record<string, number>>;

/** Counted calls of a time, and what they moved in micro-USD. */
export type CallSums = {
  readonly calls: number;
  readonly freeCalls: number;
  readonly succeeded: number;
  readonly chargedMicros: number;
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
};

/**
 * Counts and sums over everything: reads the indexes by status, and the sums by hour of 30 days.
 *
 * @param timed sets the deadline of each statement
 */
export async function selectStats(timed: () => Promise<Tx>): Promise<Stats> {
  const accounts = await (await timed())<Count[]>`SELECT status, count(*) FROM accounts GROUP BY status`;
  const keys = await (await timed())<Count[]>`SELECT status, count(*) FROM api_keys GROUP BY status`;
  const services = await (await timed())<Count[]>`SELECT status, count(*) FROM services GROUP BY status`;
  const sums = await (await timed())<Sums[]>`
    SELECT span, coalesce(sum(calls), 0)::bigint AS calls, coalesce(sum(free_calls), 0)::bigint AS "freeCalls",
           coalesce(sum(succeeded), 0)::bigint AS succeeded, coalesce(sum(charged), 0)::bigint AS "chargedMicros",
           coalesce(sum(fees), 0)::bigint AS "feesMicros"
    FROM (VALUES ('today', date_trunc('day', now(), 'UTC')), ('lastDay', now() - interval '24 hours'),
                 ('lastMonth', now() - interval '720 hours')) AS spans (span, since)
    LEFT JOIN service_hours h ON h.hour >= since AND h.hour >= now() - interval '720 hours'
    GROUP BY span`;
  const rejected = await (await timed())<{ count: number }[]>`SELECT count(*) FROM rejected_events`;
  const sumsOf = (span: string): Sums => sums.find((row) => row.span === span) as Sums;
  return {
    accounts: countsOf(accounts),
    keys: countsOf(keys),
    services: countsOf(services),
    today: sumsOf('today'),
    lastDay: sumsOf('lastDay'),
    lastMonth: sumsOf('lastMonth'),
    rejectedEvents: rejected[0]?.count ?? 0,
  };
}

type Count = { readonly status: string; readonly count: number };
type Sums = CallSums & { readonly span: string };

const countsOf = (rows: readonly Count[]): Counts =>
  Object.fromEntries(rows.map(({ status, count }) => [status, count]));
