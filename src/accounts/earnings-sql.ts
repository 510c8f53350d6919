import { hoursSince } from '../ledger/rollups/recent-hours.ts';
import type { Sql, Tx } from '../platform/postgres.ts';
import type { TimeRange } from './time-range.ts';

/** Sums over a provider's completed calls, free calls included. */
export type EarningsSums = {
  readonly calls: number;
  readonly freeCalls: number;
  /** What buyers were charged. */
  readonly grossMicros: number;
  /** What buyers got back of these calls, at any time. */
  readonly refundedMicros: number;
  /** The platform's share of what buyers were charged, less what it has given back. */
  readonly feesMicros: number;
};
type ServiceEarnings = EarningsSums & { readonly serviceId: string; readonly serviceName: string };
/** `day`: YYYY-MM-DD, UTC. */
type DayEarnings = EarningsSums & { readonly day: string };
type HourEarnings = EarningsSums & { readonly hour: Date };

type Earnings = {
  readonly byService: readonly ServiceEarnings[];
  readonly byDay: readonly DayEarnings[];
  /** Null: they are not all of the last days. */
  readonly byHour: readonly HourEarnings[] | null;
  /** Sum of the payouts within the range. */
  readonly paidOutMicros: number;
  /** What the platform owes the provider now, whatever the range: the balance of its earnings ledger. */
  readonly payableMicros: number;
};

/**
 * Earnings of a provider on the days of the range. All figures come from one snapshot, so without a range `payable = gross −
 * refunded − fees − paid out` holds to the micro-dollar.
 *
 * Tested by test/routes/earnings.test.ts.
 */
export async function selectEarnings(sql: Sql, providerId: string, range: TimeRange): Promise<Earnings> {
  return sql.begin(async (tx) => {
    const sums = await selectSums(tx, providerId, range);
    const sinceMs = hoursSince(sums.byDay, Date.now());
    return {
      ...sums,
      byHour:
        sinceMs === null
          ? null
          : await selectHours(tx, providerId, { ...range, fromMs: Math.max(sinceMs, range.fromMs ?? sinceMs) }),
      paidOutMicros: await selectPaidOut(tx, providerId, range),
      payableMicros: await selectPayable(tx, providerId),
    };
  }, 'ISOLATION LEVEL REPEATABLE READ READ ONLY');
}

function hoursOf(tx: Tx, providerId: string, { fromMs, toMs }: TimeRange) {
  return tx`
    h.provider_id = ${providerId}
    ${fromMs === null ? tx`` : tx`AND h.hour >= ${new Date(fromMs)}`}
    ${toMs === null ? tx`` : tx`AND h.hour < ${new Date(toMs)}`}`;
}

/** What earned or gave back, by service and hour. */
const earnedIn = (tx: Tx, providerId: string, range: TimeRange) => tx`
  SELECT h.service_id, h.hour, h.completed, h.free_calls, h.charged, 0 AS refunded, h.fees
  FROM service_hours h WHERE ${hoursOf(tx, providerId, range)} AND h.completed > 0
  UNION ALL
  SELECT h.service_id, h.hour, 0, 0, 0, h.amount, -h.fees FROM refund_hours h WHERE ${hoursOf(tx, providerId, range)}`;

const ADDED_UP = `sum(completed)::bigint AS "calls", sum(free_calls)::bigint AS "freeCalls", sum(charged)::bigint AS "grossMicros",
  sum(refunded)::bigint AS "refundedMicros", sum(fees)::bigint AS "feesMicros"`;

/** Newest first. */
const selectHours = (tx: Tx, providerId: string, range: TimeRange): Promise<readonly HourEarnings[]> => tx<
  HourEarnings[]
>`
  SELECT hour, ${tx.text(ADDED_UP)} FROM (${earnedIn(tx, providerId, range)}) AS hours GROUP BY hour ORDER BY hour DESC`;

/** Both tables in one reading of the hours: a provider of 20 services has 48 000 in a hundred days. */
async function selectSums(
  tx: Tx,
  providerId: string,
  range: TimeRange,
): Promise<Pick<Earnings, 'byService' | 'byDay'>> {
  type Row = EarningsSums & { readonly serviceId: string | null; readonly serviceName: string; readonly day: string };
  const rows = await tx<Row[]>`
    WITH hours AS (${earnedIn(tx, providerId, range)}
    ), sums AS (
      SELECT service_id, (hour AT TIME ZONE 'UTC')::date AS day, ${tx.text(ADDED_UP)}
      FROM hours GROUP BY GROUPING SETS (1, 2)
    )
    SELECT t.service_id AS "serviceId", coalesce(s.name, '') AS "serviceName", to_char(t.day, 'YYYY-MM-DD') AS day,
           t.calls, t."freeCalls", t."grossMicros", t."refundedMicros", t."feesMicros"
    FROM sums t LEFT JOIN services s ON s.id = t.service_id
    ORDER BY t.day DESC, t."grossMicros" DESC, t.service_id`;
  return {
    byService: rows.filter((row): row is Row & { serviceId: string } => row.serviceId !== null),
    byDay: rows.filter(({ serviceId }) => serviceId === null),
  };
}

/** Reads the journal itself: a payout is an entry that takes from the earnings ledger. */
async function selectPaidOut(tx: Tx, providerId: string, { fromMs, toMs }: TimeRange): Promise<number> {
  const rows = await tx<{ paidOut: number }[]>`
    SELECT coalesce(-sum(e.amount), 0)::bigint AS "paidOut"
    FROM journal j JOIN entries e ON e.journal_id = j.id
    WHERE j.kind = 'payout' AND e.account_id = ${providerId} AND e.ledger = 'earnings'
      ${fromMs === null ? tx`` : tx`AND j.created_at >= ${new Date(fromMs)}`}
      ${toMs === null ? tx`` : tx`AND j.created_at < ${new Date(toMs)}`}`;
  return rows[0]?.paidOut ?? 0;
}

async function selectPayable(tx: Tx, providerId: string): Promise<number> {
  const rows = await tx<{ balance: number }[]>`
    SELECT balance FROM balances WHERE account_id = ${providerId} AND ledger = 'earnings'`;
  return rows[0]?.balance ?? 0;
}
