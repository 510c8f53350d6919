import { readWithDeadline } from '../../accounts/lists/deadline.ts';
import { type CallSums, type Counts, type Stats, selectStats } from '../../accounts/lists/operator-stats-sql.ts';
import type { ApiResponse, JsonSchema, Route } from '../../http/route.ts';
import { selectReports } from '../../ledger/reconcile/reconcile-sql.ts';
import type { ShardReport } from '../../ledger/reconcile/report.ts';
import { COUNT, CURRENCY, EXAMPLE, json, orNull, record, TIME, usd } from '../../openapi/schemas.ts';
import { microsToUsd } from '../../platform/money.ts';
import type { Sql } from '../../platform/postgres.ts';

type StatsRoutesDeps = {
  readonly sql: Sql;
  /** `read` updates `events`, the number of usage events that wait in Redis for Postgres. */
  readonly backlog: { read(): Promise<void>; readonly events: number };
};

const ACCOUNT_STATUSES = ['active', 'suspended', 'closed'] as const;
const KEY_STATUSES = ['active', 'revoked'] as const;
const SERVICE_STATUSES = ['active', 'paused', 'removed'] as const;

const counts = (title: string, statuses: readonly string[]): JsonSchema =>
  record(title, Object.fromEntries(statuses.map((status) => [status, COUNT])));
const SUMS = record('CallSums', {
  calls: { ...COUNT, description: 'As statistics count them: without free MCP messages and calls of own services' },
  free_calls: COUNT,
  succeeded: COUNT,
  charged: usd('What they cost their buyers'),
  refunded: usd('What came back of it later, at any time'),
  fees: usd("The platform's share, less what it gave back"),
});
const STATS = record('PlatformStats', {
  accounts: counts('AccountCounts', ACCOUNT_STATUSES),
  keys: counts('KeyCounts', KEY_STATUSES),
  services: counts('ServiceCounts', SERVICE_STATUSES),
  calls: record('CallSumsBySpan', { today: SUMS, last_24_hours: SUMS, last_30_days: SUMS }),
  backlog: { ...COUNT, description: 'Usage events that wait in Redis for Postgres' },
  rejected_events: { ...COUNT, description: 'Usage events that could not be stored as calls' },
  carried: usd(
    'What refunds by operators took beyond the earnings of providers: the platform carries it until they cover it',
  ),
  held: usd('What open calls held at the last reconciliation'),
  drift: usd('By how much wallets disagreed with Postgres then, all together'),
  drifting_accounts: { ...COUNT, description: 'How many accounts disagreed then' },
  shards_not_compared: { ...COUNT, description: 'Shards that could not be compared then' },
  reconciled_at: orNull(TIME),
  currency: CURRENCY,
});
const SUMS_EXAMPLE = { calls: 1200, free_calls: 100, succeeded: 1190, charged: 2.2, refunded: 0.02, fees: 0.11 };
const STATS_EXAMPLE = {
  accounts: { active: 41, suspended: 1, closed: 0 },
  keys: { active: 57, revoked: 3 },
  services: { active: 12, paused: 1, removed: 2 },
  calls: { today: SUMS_EXAMPLE, last_24_hours: SUMS_EXAMPLE, last_30_days: SUMS_EXAMPLE },
  backlog: 0,
  rejected_events: 0,
  carried: 0,
  held: 0.002,
  drift: 0,
  drifting_accounts: 0,
  shards_not_compared: 0,
  reconciled_at: EXAMPLE.time,
  currency: 'USD',
};

/** `GET /admin/stats`: the whole platform at a glance. */
export function statsRoutes(deps: StatsRoutesDeps): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/admin/stats',
      summary: 'The whole platform in numbers: accounts, keys, services, calls and money',
      access: ['admin'],
      responses: { 200: json('The numbers', STATS, STATS_EXAMPLE) },
      handle: () => readStats(deps),
    },
  ];
}

async function readStats({ sql, backlog }: StatsRoutesDeps): Promise<ApiResponse> {
  const [stats, reports] = await Promise.all([readWithDeadline(sql, selectStats), selectReports(sql), backlog.read()]);
  return { status: 200, body: statsJson(stats, reports, backlog.events) };
}

function statsJson(stats: Stats, reports: readonly ShardReport[], backlog: number): Record<string, unknown> {
  const total = (pick: (report: ShardReport) => number): number =>
    microsToUsd(reports.reduce((sum, report) => sum + pick(report), 0));
  const times = reports.map(({ checkedAtMs }) => checkedAtMs);
  return {
    accounts: countsJson(stats.accounts, ACCOUNT_STATUSES),
    keys: countsJson(stats.keys, KEY_STATUSES),
    services: countsJson(stats.services, SERVICE_STATUSES),
    calls: {
      today: sumsJson(stats.today),
      last_24_hours: sumsJson(stats.lastDay),
      last_30_days: sumsJson(stats.lastMonth),
    },
    backlog,
    rejected_events: stats.rejectedEvents,
    carried: microsToUsd(stats.carriedMicros),
    held: total((report) => report.heldMicros),
    drift: total((report) => report.driftMicros),
    // Drifts of several accounts may cancel out.
    drifting_accounts: reports.reduce((sum, { driftingAccounts }) => sum + driftingAccounts, 0),
    shards_not_compared: reports.filter(({ compared }) => !compared).length,
    // The time of the oldest shard: no number is older.
    reconciled_at: times.length === 0 ? null : new Date(Math.min(...times)).toISOString(),
    currency: 'USD',
  };
}

const countsJson = (found: Counts, statuses: readonly string[]): Record<string, number> =>
  Object.fromEntries(statuses.map((status) => [status, found[status] ?? 0]));

function sumsJson(sums: CallSums): Record<string, number> {
  return {
    calls: sums.calls,
    free_calls: sums.freeCalls,
    succeeded: sums.succeeded,
    charged: microsToUsd(sums.chargedMicros),
    refunded: microsToUsd(sums.refundedMicros),
    fees: microsToUsd(sums.feesMicros),
  };
}
