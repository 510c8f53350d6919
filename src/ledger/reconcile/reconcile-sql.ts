// The SQL of the reconciliation. Tested by test/ledger/reconcile/reconciler.test.ts, credits.test.ts and restart.test.ts.
import { dayOfId, isUuid } from '../../platform/ids.ts';
import type { Sql, Tx } from '../../platform/postgres.ts';
import type { StoredCall } from './identity.ts';
import type { ShardReport } from './report.ts';

/**
 * Those of the calls that Postgres has stored, by id. OFFSET 0 makes Postgres look up each of them: for a day without statistics it
 * read all calls of the day instead.
 */
export async function selectStored(tx: Tx, usageIds: readonly string[]): Promise<Map<string, StoredCall>> {
  // A hold that somebody wrote by hand may have any text as its usage id.
  const ids = usageIds.filter(isUuid);
  if (ids.length === 0) return new Map();
  const days = ids.map(dayOfId);
  // Only the last line tells Postgres at planning time which partitions are needed.
  const rows = await tx.anew<(StoredCall & { id: string })[]>`
    SELECT asked.id, c.amount AS "amountMicros", c.free_call AS "freeCall"
    FROM unnest(${days}::date[], ${ids}::uuid[]) AS asked (day, id)
    CROSS JOIN LATERAL (
      SELECT amount, free_tier AND outcome = 'completed' AS free_call FROM calls
      WHERE day = asked.day AND usage_id = asked.id AND day = ANY(${Array.from(new Set(days))}::date[])
      OFFSET 0
    ) AS c`;
  return new Map(rows.map((row) => [row.id, row]));
}

/** The accounts of the shard that events in `rejected_events` name, and other ids in them. */
export async function selectRejectedIds(sql: Sql | Tx, shard: number): Promise<ReadonlySet<string>> {
  const rows = await sql<{ id: string }[]>`
    SELECT DISTINCT found[1] AS id
    FROM rejected_events, regexp_matches(fields::text, '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}', 'g') AS found
    WHERE shard = ${shard}`;
  return new Set(rows.map(({ id }) => id));
}

type NewRepair = {
  readonly accountId: string;
  readonly madeBy: string;
  readonly reason: string;
  readonly before: object;
  readonly after: object;
  /** Change of the balance. */
  readonly changeMicros: number;
};

export type Repair = NewRepair & {
  readonly id: number;
  readonly state: 'begun' | 'done' | 'left';
  readonly createdAt: Date;
};

/** Records a repair before it is made, so that there is a record even if the reply is lost or this process dies. */
export async function beginRepair(sql: Sql, repair: NewRepair): Promise<number> {
  // A transaction is used here and below, because only transactions wait until the commit is on disk (postgres-session.ts).
  return sql.begin((tx) => insertRepair(tx, repair));
}

export async function insertRepair(tx: Tx, repair: NewRepair): Promise<number> {
  const rows = await tx<{ id: number }[]>`
    INSERT INTO repairs (account_id, made_by, reason, change, before, after)
    VALUES (${repair.accountId}, ${repair.madeBy}, ${repair.reason}, ${repair.changeMicros},
            ${JSON.stringify(repair.before)}::text::json, ${JSON.stringify(repair.after)}::text::json)
    RETURNING id`;
  return rows[0]?.id as number;
}

/** Records the outcome of a repair. @returns whether this call recorded it; false when it was recorded before */
export async function endRepair(sql: Sql, id: number, state: 'done' | 'left'): Promise<boolean> {
  const { count } = await sql.begin(
    (tx) => tx`UPDATE repairs SET state = ${state}, ended_at = now() WHERE id = ${id} AND state = 'begun'`,
  );
  return count > 0;
}

/** Repairs that may or may not have been made, because their reply was lost; by account. */
export async function selectBegunRepairs(sql: Sql): Promise<ReadonlyMap<string, readonly number[]>> {
  const rows = await sql<{ accountId: string; ids: number[] }[]>`
    SELECT account_id AS "accountId", array_agg(id) AS ids FROM repairs WHERE state = 'begun' GROUP BY account_id`;
  return new Map(rows.map(({ accountId, ids }) => [accountId, ids]));
}

/**
 * Marks credits up to `creditSeq` as missing if the wallet lacks them although they were marked as applied. `CreditWallets` then
 * applies them again, in order and each at most once. The mark and its record are written together or not at all.
 *
 * @returns whether any credit was marked
 */
export async function unmarkCredits(
  sql: Sql,
  credits: { accountId: string; madeBy: string; walletSeq: number; creditSeq: number },
): Promise<boolean> {
  const { accountId, madeBy, walletSeq, creditSeq } = credits;
  const rows = await sql.begin(
    (tx) => tx<object[]>`
    WITH lost AS (
      UPDATE credits SET applied_at = NULL
      WHERE account_id = ${accountId} AND seq > ${walletSeq} AND seq <= ${creditSeq} AND applied_at IS NOT NULL
      RETURNING amount)
    INSERT INTO repairs (account_id, made_by, reason, change, before, after, state, ended_at)
    SELECT ${accountId}, ${madeBy}, 'Redis came back without credits that it had: the credits are applied again', sum(amount),
           json_build_object('credit_seq', ${walletSeq}::bigint), json_build_object('credit_seq', ${creditSeq}::bigint),
           'done', now()
    FROM lost HAVING count(*) > 0
    RETURNING id`,
  );
  return rows.length > 0;
}

/** Youngest first. */
export async function selectRepairs(sql: Sql, limit: number): Promise<readonly Repair[]> {
  return sql<Repair[]>`
    SELECT id, account_id AS "accountId", made_by AS "madeBy", reason, before, after, change AS "changeMicros", state, created_at AS "createdAt"
    FROM repairs ORDER BY id DESC LIMIT ${limit}`;
}

export async function saveReport(sql: Sql, report: ShardReport): Promise<void> {
  await sql`
    INSERT INTO reconciliations (shard, checked_at, report)
    VALUES (${report.shard}, ${new Date(report.checkedAtMs)}, ${JSON.stringify(report)}::text::json)
    ON CONFLICT (shard) DO UPDATE SET checked_at = excluded.checked_at, report = excluded.report`;
}

/** The last report of each shard. */
export async function selectReports(sql: Sql): Promise<readonly ShardReport[]> {
  const rows = await sql<{ report: ShardReport }[]>`SELECT report FROM reconciliations ORDER BY shard`;
  return rows.map(({ report }) => report);
}

/** The sum of all balances of all accounts and ledgers. If it is not 0, the books are wrong. */
export async function selectBooksSum(sql: Sql): Promise<number> {
  const rows = await sql<{ sum: number }[]>`SELECT coalesce(sum(balance), 0)::bigint AS sum FROM balances`;
  return rows[0]?.sum ?? 0;
}
