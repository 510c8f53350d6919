import type { ApiRequest, ApiResponse, Route } from '../http/route.ts';
import { keyOf } from '../keys/caller.ts';
import { type Repair, selectBooksSum, selectRepairs, selectReports } from '../ledger/reconcile/reconcile-sql.ts';
import type { Drift, ShardReport } from '../ledger/reconcile/report.ts';
import { microsToUsd } from '../platform/money.ts';
import type { Sql } from '../platform/postgres.ts';

export type ReconciliationRoutesDeps = {
  readonly sql: Sql;
  /** @param by  who asked for the comparison; recorded with each repair that it makes */
  readonly reconciler: { run(by: string): Promise<unknown> };
};

/** Maximum repairs shown, newest first; the table in Postgres keeps all of them. */
const SHOWN_REPAIRS = 100;

/**
 * Shows how the wallets of each shard compared with Postgres when they were last checked, and compares them now on request.
 *
 * Tested by test/integration/redis-older.test.ts.
 */
export function reconciliationRoutes({ sql, reconciler }: ReconciliationRoutesDeps): Route[] {
  const path = '/api/v1/admin/reconciliation';
  return [
    {
      method: 'GET',
      path,
      summary:
        'The last comparison of wallets with Postgres (made every minute): sums and accounts that disagree, by shard',
      access: ['admin'],
      handle: () => page(sql),
    },
    {
      method: 'POST',
      path,
      summary: 'Compare now, repair what provably comes from a Redis older than Postgres, and answer as GET does',
      access: ['admin'],
      handle: async ({ caller }: ApiRequest) => {
        await reconciler.run(`admin ${keyOf(caller).keyId}`);
        return page(sql);
      },
    },
  ];
}

async function page(sql: Sql): Promise<ApiResponse> {
  const [reports, repairs, booksMicros] = await Promise.all([
    selectReports(sql),
    selectRepairs(sql, SHOWN_REPAIRS),
    selectBooksSum(sql),
  ]);
  const total = (pick: (report: ShardReport) => number): number =>
    reports.reduce((sum, report) => sum + pick(report), 0);
  const oldest = reports.reduce<number | null>(
    (min, { checkedAtMs }) => Math.min(min ?? checkedAtMs, checkedAtMs),
    null,
  );
  return {
    status: 200,
    body: {
      checked_at: oldest === null ? null : time(oldest),
      // Double entry: the sum over all ledgers must be zero.
      books_sum: microsToUsd(booksMicros),
      totals: {
        ...sumsJson({
          wallets: total((report) => report.wallets),
          walletMicros: total((report) => report.walletMicros),
          settledMicros: total((report) => report.settledMicros),
          streamedMicros: total((report) => report.streamedMicros),
          heldMicros: total((report) => report.heldMicros),
          driftMicros: total((report) => report.driftMicros),
          driftingAccounts: total((report) => report.driftingAccounts),
        }),
        shards_not_compared: reports.filter(({ compared }) => !compared).length,
      },
      shards: reports.map((report) => ({
        shard: report.shard,
        checked_at: time(report.checkedAtMs),
        compared: report.compared,
        ...sumsJson(report),
        drifts: report.drifts.map(driftJson),
      })),
      repairs: repairs.map(repairJson),
      currency: 'USD',
    },
  };
}

type Sums = Pick<
  ShardReport,
  'wallets' | 'walletMicros' | 'settledMicros' | 'streamedMicros' | 'heldMicros' | 'driftMicros' | 'driftingAccounts'
>;

/** Amounts in USD. For each shard, and in total: wallet = settled − streamed − held + drift. */
function sumsJson(sums: Sums): Record<string, number> {
  return {
    wallets: sums.wallets,
    wallet: microsToUsd(sums.walletMicros),
    settled: microsToUsd(sums.settledMicros),
    streamed: microsToUsd(sums.streamedMicros),
    held: microsToUsd(sums.heldMicros),
    drift: microsToUsd(sums.driftMicros),
    drifting_accounts: sums.driftingAccounts,
  };
}

function driftJson(drift: Drift): Record<string, unknown> {
  return {
    account_id: drift.accountId,
    wallet: microsToUsd(drift.walletMicros),
    expected: microsToUsd(drift.expectedMicros),
    drift: microsToUsd(drift.driftMicros),
    settled: microsToUsd(drift.settledMicros),
    streamed: microsToUsd(drift.streamedMicros),
    held: microsToUsd(drift.heldMicros),
    free_calls: drift.freeDrifts.map(({ serviceId, used, expected }) => ({ service_id: serviceId, used, expected })),
    holds_of_stored_calls: drift.storedHolds,
    since: time(drift.sinceMs),
    not_repaired: drift.unproven,
  };
}

function repairJson(repair: Repair): Record<string, unknown> {
  const { id, accountId, madeBy, reason, before, after, changeMicros, state, createdAt } = repair;
  return {
    id,
    account_id: accountId,
    made_by: madeBy,
    reason,
    before,
    after,
    change: microsToUsd(changeMicros),
    state,
    created_at: createdAt.toISOString(),
  };
}

const time = (ms: number): string => new Date(ms).toISOString();
