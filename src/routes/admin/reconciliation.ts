import { type Act, type Actor, actorOf, recordAct } from '../../accounts/audit.ts';
import { type Labels, selectLabels } from '../../accounts/labels-sql.ts';
import type { ApiRequest, ApiResponse, JsonSchema, Route } from '../../http/route.ts';
import { keyOf } from '../../keys/caller.ts';
import { selectCorrections } from '../../ledger/reconcile/corrections-sql.ts';
import { type Repair, selectBooksSum, selectRepairs, selectReports } from '../../ledger/reconcile/reconcile-sql.ts';
import type { Drift, ShardReport } from '../../ledger/reconcile/report.ts';
import { COUNT, CURRENCY, EXAMPLE, json, list, orNull, record, TEXT, TIME, UUID, usd } from '../../openapi/schemas.ts';
import { microsToUsd } from '../../platform/money.ts';
import type { Sql } from '../../platform/postgres.ts';
import { endsWithin } from '../../platform/timing.ts';
import {
  BUDGET_DRIFT,
  budgetsJson,
  CORRECTION_FIELDS,
  correctionJson,
  FREE_CALLS_DRIFT,
  freeCallsJson,
} from './corrections.ts';

type ReconciliationRoutesDeps = {
  readonly sql: Sql;
  /** @param by  who asked for the comparison; recorded with each repair that it makes */
  readonly reconciler: { run(by: string): Promise<unknown> };
  readonly log: { warn(fields: object, message: string): void };
  /** How long a comparison is waited for. Default: 4 s, because a request may take 5 (src/http/api.ts). */
  readonly answerWithinMs?: number;
};

const ANSWER_WITHIN_MS = 4_000;

const RUN: Omit<Act, keyof Actor> = {
  action: 'reconciliation.run',
  subjectType: 'reconciliation',
  subjectId: 'all',
  before: null,
  after: null,
};

/** Maximum number of repairs, and of corrections, that are shown, newest first. The tables in Postgres keep all of them. */
const SHOWN = 100;

const SUMS = {
  wallets: COUNT,
  wallet: usd('In the wallets of Redis'),
  settled: usd('The balances in Postgres'),
  streamed: usd('In usage events that Postgres does not have yet'),
  held: usd('What open calls hold'),
  drift: usd('wallet − (settled − streamed − held): 0 in good books'),
  drifting_accounts: COUNT,
};
const LABEL: JsonSchema = { ...TEXT, description: 'The label of the account' };
const DRIFT = record('Drift', {
  account_id: UUID,
  owner_id: LABEL,
  wallet: SUMS.wallet,
  expected: usd('What the wallet should have'),
  drift: SUMS.drift,
  settled: SUMS.settled,
  streamed: SUMS.streamed,
  held: SUMS.held,
  free_calls: list(FREE_CALLS_DRIFT),
  budgets: list(BUDGET_DRIFT),
  holds_of_stored_calls: { type: 'integer', description: 'Holds in Redis of calls that Postgres already has' },
  since: TIME,
  not_repaired: { type: 'string', description: 'Why it was not repaired' },
});
const STATE: JsonSchema = {
  type: 'object',
  additionalProperties: true,
  description: 'What the wallet and its counters had',
};
const REPAIR = record('Repair', {
  id: { type: 'integer' },
  account_id: UUID,
  owner_id: LABEL,
  made_by: TEXT,
  reason: TEXT,
  before: STATE,
  after: STATE,
  change: usd('What the wallet gained or lost'),
  state: { type: 'string', enum: ['begun', 'done', 'left'] },
  created_at: TIME,
});
const LISTED_CORRECTION = record('ListedCorrection', { ...CORRECTION_FIELDS, owner_id: LABEL });
const RECONCILIATION = record('Reconciliation', {
  checked_at: orNull(TIME),
  books_sum: usd('The sum of all balances: 0'),
  totals: record('ReconciliationTotals', { ...SUMS, shards_not_compared: COUNT }),
  shards: list(
    record('ShardReconciliation', {
      shard: COUNT,
      checked_at: TIME,
      compared: { type: 'boolean' },
      not_compared: {
        ...orNull(TEXT),
        description: 'Why it was not compared then; the sums are those of the last time',
      },
      ...SUMS,
      drifts: list(DRIFT),
    }),
  ),
  repairs: list(REPAIR, 'Newest first'),
  corrections: list(LISTED_CORRECTION, 'What operators decided. Newest first'),
  currency: CURRENCY,
});
const SUMS_EXAMPLE = {
  wallets: 1,
  wallet: 9.996,
  settled: 10,
  streamed: 0.002,
  held: 0.002,
  drift: 0,
  drifting_accounts: 0,
};
const GOES_ON = record('ReconciliationUnderWay', {
  message: TEXT,
  checked_at: {
    ...orNull(TIME),
    description:
      'When the last comparison began. This one is over once GET has a later time (null: once it has one); shards have not_compared if it failed',
  },
});
const DONE = {
  200: json('The comparison', RECONCILIATION, {
    checked_at: EXAMPLE.time,
    books_sum: 0,
    totals: { ...SUMS_EXAMPLE, shards_not_compared: 0 },
    shards: [{ shard: 0, checked_at: EXAMPLE.time, compared: true, not_compared: null, ...SUMS_EXAMPLE, drifts: [] }],
    repairs: [],
    corrections: [],
    currency: 'USD',
  }),
};

const MESSAGE =
  'The comparison takes longer and goes on. It is over once checked_at of GET /api/v1/admin/reconciliation is later than this one.';
const UNDER_WAY = {
  202: json('The comparison takes longer than 4 s, and goes on', GOES_ON, {
    message: MESSAGE,
    checked_at: EXAMPLE.time,
  }),
};

/**
 * Shows how the wallets of each shard compared with Postgres when they were last checked, and compares them now on request.
 *
 * Tested by test/integration/redis-older.test.ts and test/routes/money-by-operators.test.ts.
 */
export function reconciliationRoutes({
  sql,
  reconciler,
  log,
  answerWithinMs = ANSWER_WITHIN_MS,
}: ReconciliationRoutesDeps): Route[] {
  const path = '/api/v1/admin/reconciliation';
  return [
    {
      method: 'GET',
      path,
      summary:
        'The last comparison of wallets with Postgres (made every minute): sums and accounts that disagree, by shard',
      access: ['admin'],
      csvRows: 'shards',
      responses: DONE,
      handle: () => page(sql),
    },
    {
      method: 'POST',
      path,
      summary:
        'Compare now, repair what provably comes from a Redis older than Postgres, and answer as GET does, or 202 after 4 s',
      access: ['admin'],
      responses: { ...DONE, ...UNDER_WAY },
      handle: async ({ caller, requestId }: ApiRequest) => {
        const key = keyOf(caller);
        // Recorded first, because the comparison changes Redis step by step, and each repair has its own record.
        await sql.begin((tx) => recordAct(tx, { ...actorOf(key, requestId), ...RUN }));
        const before = oldest(await selectReports(sql));
        const run = reconciler.run(`admin ${key.keyId}`);
        if (await endsWithin(run, answerWithinMs)) return page(sql);
        // Nobody waits for its outcome any more.
        run.catch((error: unknown) =>
          log.warn({ err: error, request_id: requestId }, 'a comparison failed that an operator had asked for'),
        );
        return { status: 202, body: { message: MESSAGE, checked_at: before } };
      },
    },
  ];
}

/** When the shard was compared that was compared first; null: none was. */
const oldest = (reports: readonly ShardReport[]): string | null =>
  reports.length === 0 ? null : time(Math.min(...reports.map(({ checkedAtMs }) => checkedAtMs)));

async function page(sql: Sql): Promise<ApiResponse> {
  const [reports, repairs, corrections, booksMicros] = await Promise.all([
    selectReports(sql),
    selectRepairs(sql, SHOWN),
    selectCorrections(sql, SHOWN),
    selectBooksSum(sql),
  ]);
  const accounts = [...reports.flatMap(({ drifts }) => drifts), ...repairs, ...corrections].map(
    ({ accountId }) => accountId,
  );
  const labels = await selectLabels(sql, accounts);
  const total = (pick: (report: ShardReport) => number): number =>
    reports.reduce((sum, report) => sum + pick(report), 0);
  return {
    status: 200,
    body: {
      checked_at: oldest(reports),
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
        not_compared: report.whyNot ?? null,
        ...sumsJson(report),
        drifts: report.drifts.map((drift) => driftJson(drift, labels)),
      })),
      repairs: repairs.map((repair) => repairJson(repair, labels)),
      corrections: corrections.map((correction) => ({
        ...correctionJson(correction),
        owner_id: labels.get(correction.accountId) ?? '',
      })),
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

function driftJson(drift: Drift, labels: Labels): Record<string, unknown> {
  return {
    account_id: drift.accountId,
    owner_id: labels.get(drift.accountId) ?? '',
    wallet: microsToUsd(drift.walletMicros),
    expected: microsToUsd(drift.expectedMicros),
    drift: microsToUsd(drift.driftMicros),
    settled: microsToUsd(drift.settledMicros),
    streamed: microsToUsd(drift.streamedMicros),
    held: microsToUsd(drift.heldMicros),
    free_calls: freeCallsJson(drift.freeDrifts),
    budgets: budgetsJson(drift.budgetDrifts),
    holds_of_stored_calls: drift.storedHolds,
    since: time(drift.sinceMs),
    not_repaired: drift.notRepaired,
  };
}

function repairJson(repair: Repair, labels: Labels): Record<string, unknown> {
  const { id, accountId, madeBy, reason, before, after, changeMicros, state, createdAt } = repair;
  return {
    id,
    account_id: accountId,
    owner_id: labels.get(accountId) ?? '',
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
