// The SQL of the reconciliation. Tested by test/ledger/reconcile/reconciler.test.ts, credits.test.ts and restart.test.ts.
import { dayOfId, isUuid, uuidv7 } from '../../platform/ids.js';
import { START_UNCERTAIN_MS } from './provable.js';
/**
 * How far before Redis's start to look for calls that Redis lost. An append-only file loses seconds. A Redis that has only
 * snapshots may lose more than this; then the drift stays unproven, and is reported but not repaired.
 */
const LOST_MS = 600_000;
/** How far a gateway's clock, which the usage ids are made from, may differ from Redis's clock. */
const CLOCK_SKEW_MS = 300_000;
const MAX_CALLS = 5_000;
/** The account's stored calls from before Redis's start, which Redis may have lost; youngest first, at most `MAX_CALLS`. */
export async function selectCallsBefore(sql, accountId, redisStartedAtMs) {
    const [from, to] = [redisStartedAtMs - LOST_MS, redisStartedAtMs + START_UNCERTAIN_MS];
    const [first, last] = [firstId(from - CLOCK_SKEW_MS), firstId(to + CLOCK_SKEW_MS)];
    // Found through the API keys, because `calls` is indexed by key. OFFSET 0 keeps the calls behind the keys: a plan that begins with
    // the calls, as Postgres makes it for a day without statistics, reads everybody's calls of these minutes.
    return sql.anew `
    SELECT c."admittedAtMs", c."amountMicros", c."freeServiceId"
    FROM api_keys k CROSS JOIN LATERAL (
      SELECT (extract(epoch FROM created_at) * 1000)::float8 AS "admittedAtMs", amount AS "amountMicros",
             CASE WHEN free_tier AND outcome = 'completed' THEN service_id END AS "freeServiceId", created_at, usage_id
      FROM calls
      WHERE key_id = k.key_id AND account_id = ${accountId}
        AND day BETWEEN ${dayOfId(first)}::date AND ${dayOfId(last)}::date
        AND usage_id BETWEEN ${first}::uuid AND ${last}::uuid
        AND created_at BETWEEN ${new Date(from)} AND ${new Date(to)}
      OFFSET 0
    ) AS c
    WHERE k.account_id = ${accountId}
    ORDER BY c.created_at DESC, c.usage_id DESC LIMIT ${MAX_CALLS}`;
}
/**
 * Those of the calls that Postgres has stored, by id. OFFSET 0 makes Postgres look each of them up: for a day without statistics it
 * read all calls of the day instead.
 */
export async function selectStored(tx, usageIds) {
    // A hold that somebody wrote by hand may have any text as its usage id.
    const ids = usageIds.filter(isUuid);
    if (ids.length === 0)
        return new Map();
    const days = ids.map(dayOfId);
    // Only by the last line Postgres sees, when it plans, which partitions are meant.
    const rows = await tx.anew `
    SELECT asked.id, c.amount AS "amountMicros", c.free_call AS "freeCall"
    FROM unnest(${days}::date[], ${ids}::uuid[]) AS asked (day, id)
    CROSS JOIN LATERAL (
      SELECT amount, free_tier AND outcome = 'completed' AS free_call FROM calls
      WHERE day = asked.day AND usage_id = asked.id AND day = ANY(${Array.from(new Set(days))}::date[])
      OFFSET 0
    ) AS c`;
    return new Map(rows.map((row) => [row.id, row]));
}
/** The smallest usage id that can be made in that millisecond. */
function firstId(ms) {
    return `${uuidv7(ms).slice(0, 13)}-7000-8000-000000000000`;
}
/** Records a repair before it is made, so that there is a record even if the reply is lost or this process dies. */
export async function beginRepair(sql, repair) {
    // A transaction, here and below, because only transactions wait until the commit is on disk (postgres-session.ts).
    const rows = await sql.begin((tx) => tx `
      INSERT INTO repairs (account_id, made_by, reason, change, before, after)
      VALUES (${repair.accountId}, ${repair.madeBy}, ${repair.reason}, ${repair.changeMicros},
              ${JSON.stringify(repair.before)}::text::json, ${JSON.stringify(repair.after)}::text::json)
      RETURNING id`);
    return rows[0]?.id;
}
/** Records the outcome of a repair. @returns whether this call recorded it; false when it was recorded before */
export async function endRepair(sql, id, state) {
    const { count } = await sql.begin((tx) => tx `UPDATE repairs SET state = ${state}, ended_at = now() WHERE id = ${id} AND state = 'begun'`);
    return count > 0;
}
/** Repairs that may or may not have been made, because their reply was lost; by account. */
export async function selectBegunRepairs(sql) {
    const rows = await sql `
    SELECT account_id AS "accountId", array_agg(id) AS ids FROM repairs WHERE state = 'begun' GROUP BY account_id`;
    return new Map(rows.map(({ accountId, ids }) => [accountId, ids]));
}
/**
 * Marks credits up to `creditSeq` as missing if the wallet lacks them although they were marked as applied. `CreditWallets` then
 * applies them again, in order and each at most once. The mark and its record are written together or not at all.
 *
 * @returns whether any credit was marked
 */
export async function unmarkCredits(sql, credits) {
    const { accountId, madeBy, walletSeq, creditSeq } = credits;
    const rows = await sql.begin((tx) => tx `
    WITH lost AS (
      UPDATE credits SET applied_at = NULL
      WHERE account_id = ${accountId} AND seq > ${walletSeq} AND seq <= ${creditSeq} AND applied_at IS NOT NULL
      RETURNING amount)
    INSERT INTO repairs (account_id, made_by, reason, change, before, after, state, ended_at)
    SELECT ${accountId}, ${madeBy}, 'Redis came back without credits that it had: the credits are applied again', sum(amount),
           json_build_object('credit_seq', ${walletSeq}::bigint), json_build_object('credit_seq', ${creditSeq}::bigint),
           'done', now()
    FROM lost HAVING count(*) > 0
    RETURNING id`);
    return rows.length > 0;
}
/** Youngest first. */
export async function selectRepairs(sql, limit) {
    return sql `
    SELECT id, account_id AS "accountId", made_by AS "madeBy", reason, before, after, change AS "changeMicros", state, created_at AS "createdAt"
    FROM repairs ORDER BY id DESC LIMIT ${limit}`;
}
export async function saveReport(sql, report) {
    await sql `
    INSERT INTO reconciliations (shard, checked_at, report)
    VALUES (${report.shard}, ${new Date(report.checkedAtMs)}, ${JSON.stringify(report)}::text::json)
    ON CONFLICT (shard) DO UPDATE SET checked_at = excluded.checked_at, report = excluded.report`;
}
/** The last report of each shard. */
export async function selectReports(sql) {
    const rows = await sql `SELECT report FROM reconciliations ORDER BY shard`;
    return rows.map(({ report }) => report);
}
/** The sum of all balances of all accounts and ledgers. If it is not 0, the books are wrong. */
export async function selectBooksSum(sql) {
    const rows = await sql `SELECT coalesce(sum(balance), 0)::bigint AS sum FROM balances`;
    return rows[0]?.sum ?? 0;
}
//# sourceMappingURL=reconcile-sql.js.map