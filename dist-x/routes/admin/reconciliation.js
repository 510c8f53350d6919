import { actorOf, recordAct } from '../../accounts/audit.js';
import { selectLabels } from '../../accounts/labels-sql.js';
import { keyOf } from '../../keys/caller.js';
import { selectBooksSum, selectRepairs, selectReports } from '../../ledger/reconcile/reconcile-sql.js';
import { COUNT, CURRENCY, EXAMPLE, json, list, orNull, record, TEXT, TIME, UUID, usd } from '../../openapi/schemas.js';
import { microsToUsd } from '../../platform/money.js';
const RUN = {
    action: 'reconciliation.run',
    subjectType: 'reconciliation',
    subjectId: 'all',
    before: null,
    after: null,
};
/** Maximum repairs shown, newest first; the table in Postgres keeps all of them. */
const SHOWN_REPAIRS = 100;
const SUMS = {
    wallets: COUNT,
    wallet: usd('In the wallets of Redis'),
    settled: usd('The balances in Postgres'),
    streamed: usd('In usage events that Postgres does not have yet'),
    held: usd('What open calls hold'),
    drift: usd('wallet − (settled − streamed − held): 0 in good books'),
    drifting_accounts: COUNT,
};
const LABEL = { ...TEXT, description: 'The label of the account' };
const DRIFT = record('Drift', {
    account_id: UUID,
    owner_id: LABEL,
    wallet: SUMS.wallet,
    expected: usd('What the wallet should have'),
    drift: SUMS.drift,
    settled: SUMS.settled,
    streamed: SUMS.streamed,
    held: SUMS.held,
    free_calls: list(record('FreeCallsDrift', { service_id: UUID, used: COUNT, expected: COUNT })),
    holds_of_stored_calls: { type: 'integer', description: 'Holds of calls that Postgres has already' },
    since: TIME,
    not_repaired: { type: 'string', description: 'Why it was not repaired' },
});
const STATE = {
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
const RECONCILIATION = record('Reconciliation', {
    checked_at: orNull(TIME),
    books_sum: usd('The sum of all balances: 0'),
    totals: record('ReconciliationTotals', { ...SUMS, shards_not_compared: COUNT }),
    shards: list(record('ShardReconciliation', {
        shard: COUNT,
        checked_at: TIME,
        compared: { type: 'boolean' },
        ...SUMS,
        drifts: list(DRIFT),
    })),
    repairs: list(REPAIR, 'Newest first'),
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
const RESPONSES = {
    200: json('The comparison', RECONCILIATION, {
        checked_at: EXAMPLE.time,
        books_sum: 0,
        totals: { ...SUMS_EXAMPLE, shards_not_compared: 0 },
        shards: [{ shard: 0, checked_at: EXAMPLE.time, compared: true, ...SUMS_EXAMPLE, drifts: [] }],
        repairs: [],
        currency: 'USD',
    }),
};
/**
 * Shows how the wallets of each shard compared with Postgres when they were last checked, and compares them now on request.
 *
 * Tested by test/integration/redis-older.test.ts.
 */
export function reconciliationRoutes({ sql, reconciler }) {
    const path = '/api/v1/admin/reconciliation';
    return [
        {
            method: 'GET',
            path,
            summary: 'The last comparison of wallets with Postgres (made every minute): sums and accounts that disagree, by shard',
            access: ['admin'],
            responses: RESPONSES,
            handle: () => page(sql),
        },
        {
            method: 'POST',
            path,
            summary: 'Compare now, repair what provably comes from a Redis older than Postgres, and answer as GET does',
            access: ['admin'],
            responses: RESPONSES,
            handle: async ({ caller, requestId }) => {
                const key = keyOf(caller);
                // Recorded first: the comparison changes Redis step by step, each repair with a record of its own.
                await sql.begin((tx) => recordAct(tx, { ...actorOf(key, requestId), ...RUN }));
                await reconciler.run(`admin ${key.keyId}`);
                return page(sql);
            },
        },
    ];
}
async function page(sql) {
    const [reports, repairs, booksMicros] = await Promise.all([
        selectReports(sql),
        selectRepairs(sql, SHOWN_REPAIRS),
        selectBooksSum(sql),
    ]);
    const accounts = [...reports.flatMap(({ drifts }) => drifts), ...repairs].map(({ accountId }) => accountId);
    const labels = await selectLabels(sql, accounts);
    const total = (pick) => reports.reduce((sum, report) => sum + pick(report), 0);
    const oldest = reports.reduce((min, { checkedAtMs }) => Math.min(min ?? checkedAtMs, checkedAtMs), null);
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
                drifts: report.drifts.map((drift) => driftJson(drift, labels)),
            })),
            repairs: repairs.map((repair) => repairJson(repair, labels)),
            currency: 'USD',
        },
    };
}
/** Amounts in USD. For each shard, and in total: wallet = settled − streamed − held + drift. */
function sumsJson(sums) {
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
function driftJson(drift, labels) {
    return {
        account_id: drift.accountId,
        owner_id: labels.get(drift.accountId) ?? '',
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
function repairJson(repair, labels) {
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
const time = (ms) => new Date(ms).toISOString();
//# sourceMappingURL=reconciliation.js.map