import type { Sql, Tx } from '../platform/postgres.ts';
import { type TimeRange, utcDay } from './time-range.ts';

/** Sums over a provider's completed calls, free calls included. `fees` is the platform's share of `earned`. */
export type EarningsSums = {
  readonly calls: number;
  readonly freeCalls: number;
  readonly earnedMicros: number;
  readonly feesMicros: number;
};
export type ServiceEarnings = EarningsSums & { readonly serviceId: string; readonly serviceName: string };
/** `day`: YYYY-MM-DD, UTC. */
export type DayEarnings = EarningsSums & { readonly day: string };

export type Earnings = {
  readonly byService: readonly ServiceEarnings[];
  readonly byDay: readonly DayEarnings[];
  /** Sum of the payouts within the range. */
  readonly paidOutMicros: number;
  /** What the platform owes the provider now, whatever the range: the balance of its earnings ledger. */
  readonly payableMicros: number;
};

/**
 * Earnings of a provider on the days of the range. All of it is read from one snapshot, so without a range
 * `payable = earned − fees − paid out` holds to the micro-dollar.
 *
 * Tested by test/routes/earnings.test.ts.
 */
export async function selectEarnings(sql: Sql, providerId: string, range: TimeRange): Promise<Earnings> {
  return sql.begin(
    async (tx) => ({
      byService: await selectByService(tx, providerId, range),
      byDay: await selectByDay(tx, providerId, range),
      paidOutMicros: await selectPaidOut(tx, providerId, range),
      payableMicros: await selectPayable(tx, providerId),
    }),
    'ISOLATION LEVEL REPEATABLE READ READ ONLY',
  );
}

function daysOf(tx: Tx, providerId: string, { fromMs, toMs }: TimeRange) {
  return tx`
    d.provider_id = ${providerId}
    ${fromMs === null ? tx`` : tx`AND d.day >= ${utcDay(fromMs)}`}
    ${toMs === null ? tx`` : tx`AND d.day < ${utcDay(toMs)}`}`;
}

const sums = (tx: Tx) => tx`
  sum(d.calls)::bigint AS "calls", sum(d.free_calls)::bigint AS "freeCalls",
  sum(d.earned)::bigint AS "earnedMicros", sum(d.fees)::bigint AS "feesMicros"`;

async function selectByService(tx: Tx, providerId: string, range: TimeRange): Promise<ServiceEarnings[]> {
  return tx<ServiceEarnings[]>`
    SELECT d.service_id AS "serviceId", coalesce(s.name, '') AS "serviceName", ${sums(tx)}
    FROM service_days d LEFT JOIN services s ON s.id = d.service_id
    WHERE ${daysOf(tx, providerId, range)}
    GROUP BY d.service_id, s.name ORDER BY sum(d.earned) DESC, d.service_id`;
}

async function selectByDay(tx: Tx, providerId: string, range: TimeRange): Promise<DayEarnings[]> {
  return tx<DayEarnings[]>`
    SELECT to_char(d.day, 'YYYY-MM-DD') AS "day", ${sums(tx)}
    FROM service_days d
    WHERE ${daysOf(tx, providerId, range)}
    GROUP BY d.day ORDER BY d.day DESC`;
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
