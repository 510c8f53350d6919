import { assert } from '../../assert.ts';
import type { PostgresSession } from '../../platform/postgres.ts';

/**
 * A day leaves `calls` in two steps, each one transaction.
 *
 *   in `calls` ──► closed: its calls are in a table of their own ──► dropped
 *
 * Closing makes 'stored once' hold without the calls: the same transaction takes them out of `calls`, notes the day, and makes
 * `calls_default`, where a late event of the day would go, refuse it. So there is no moment at which such an event could be stored
 * again (docs/decisions/0048-a-closed-day-takes-no-calls.md).
 *
 * Tested by test/ledger/retention/.
 */

/**
 * Longest wait for the locks of `closeDay`. Flushes and pages that use `calls` wait behind it meanwhile; calls of buyers never do.
 * Until it has the locks it has changed nothing, so giving up costs nothing.
 */
const LOCK_WAIT_MS = 100;

/** A day as YYYY-MM-DD, and its partition. Null: its calls are in the default partition. */
type DueDay = { readonly day: string; readonly partition: string | null };

/** Sums over the calls of a day. Amounts in micro-USD. */
export type DaySums = { readonly calls: number; readonly amount: number; readonly fees: number };

/** Days that have calls or a partition, with the name of the partition. */
const DAYS_SQL = `
SELECT day, partition FROM (
  SELECT bounds[1]::date AS day, bounds[2]::date AS upper, partition
  FROM pg_inherits i
  JOIN pg_class c ON c.oid = i.inhrelid
  CROSS JOIN LATERAL regexp_match(pg_get_expr(c.relpartbound, c.oid), $$FROM \\('([0-9-]+)'\\) TO \\('([0-9-]+)'\\)$$) AS bounds
  CROSS JOIN LATERAL (SELECT c.oid::regclass::text AS partition) AS named
  WHERE i.inhparent = 'calls'::regclass
  UNION ALL SELECT min(day), min(day) + 1, NULL FROM calls_default
) AS days WHERE upper = day + 1`;

/**
 * The `count`-th newest day that has calls in `calls`, as YYYY-MM-DD; null when fewer days have any. It counts rows of `calls`, not
 * sums by hour: free MCP messages are calls, too, and are in no sum. Each partition is asked whether it has a row, from the newest
 * on, so it reads some 40 rows, or as many as there are partitions.
 */
export async function newestDayWithCalls(session: PostgresSession, count: number): Promise<string | null> {
  const days = await session.query<DueDay>(
    `WITH RECURSIVE unprepared AS (
       SELECT max(day) AS day FROM calls_default
       UNION ALL SELECT (SELECT max(day) FROM calls_default WHERE day < u.day) FROM unprepared u WHERE day IS NOT NULL)
     SELECT to_char(day, 'YYYY-MM-DD') AS day, partition FROM (
       SELECT day, partition FROM (${DAYS_SQL}) AS days WHERE partition IS NOT NULL
       UNION ALL (SELECT day, NULL FROM unprepared WHERE day IS NOT NULL LIMIT $1::int)
     ) AS days ORDER BY 1 DESC`,
    [count],
  );
  const found = new Set<string>();
  for (const { day, partition } of days) {
    if (partition === null || (await hasRow(session, partition))) found.add(day);
    if (found.size === count) return day;
  }
  return null;
}

async function hasRow(session: PostgresSession, partition: string): Promise<boolean> {
  const rows = await session.query<{ used: boolean }>(`SELECT EXISTS (SELECT FROM ${partition}) AS used`);
  return rows[0]?.used === true;
}

/** The oldest day before `limitDay` that is still in `calls`. */
export async function nextDueDay(session: PostgresSession, limitDay: string): Promise<DueDay | null> {
  const rows = await session.query<DueDay>(
    `SELECT to_char(day, 'YYYY-MM-DD') AS day, partition FROM (${DAYS_SQL}) AS days
     WHERE day < $1::date ORDER BY day, partition LIMIT 1`,
    [limitDay],
  );
  return rows[0] ?? null;
}

/** How many days before `limitDay` are still stored: in `calls`, or closed and not dropped. */
export async function countOverdueDays(session: PostgresSession, limitDay: string): Promise<number> {
  const rows = await session.query<{ days: number }>(
    `SELECT count(DISTINCT day)::int AS days
     FROM (SELECT day FROM (${DAYS_SQL}) AS days UNION ALL SELECT day FROM closed_days WHERE dropped_at IS NULL) AS stored
     WHERE day < $1::date`,
    [limitDay],
  );
  return rows[0]?.days ?? 0;
}

/** Days that are closed and not dropped, oldest first. */
export async function selectClosedDays(session: PostgresSession): Promise<string[]> {
  const rows = await session.query<{ day: string }>(
    `SELECT to_char(day, 'YYYY-MM-DD') AS day FROM closed_days WHERE dropped_at IS NULL ORDER BY day`,
  );
  return rows.map(({ day }) => day);
}

/** The table that has the calls of a closed day. */
function closedTable(day: string): string {
  assert(/^\d{4}-\d{2}-\d{2}$/.test(day), 'a day is YYYY-MM-DD');
  return `calls_closed_${day.replaceAll('-', '')}`;
}

/**
 * Closes a day.
 *
 * @throws PostgresError 55P03 when the locks were not free within `LOCK_WAIT_MS`
 */
export async function closeDay(session: PostgresSession, { day, partition }: DueDay): Promise<void> {
  await session.transaction(async () => {
    await session.query(`SET LOCAL lock_timeout = ${LOCK_WAIT_MS}`);
    if (partition === null) await makeClosedTable(session, day);
    else {
      // CONCURRENTLY is not possible: Postgres refuses it for a table that has a default partition.
      await session.query(`ALTER TABLE calls DETACH PARTITION ${partition}`);
      await session.query(`ALTER TABLE ${partition} RENAME TO ${closedTable(day)}`);
    }
    // From here on, no flush under way has stored, or could store, a call of the day.
    await takeFromDefault(session, day);
    await session.query(
      `INSERT INTO closed_days (day) VALUES ($1::date)
       ON CONFLICT (day) DO UPDATE SET closed_at = now(), file_sha256 = NULL, dropped_at = NULL`,
      [day],
    );
    await refuseBeforeHorizon(session);
  });
}

/** Makes the table of a day whose calls are in the default partition, and takes the lock that stops others from adding to them. */
async function makeClosedTable(session: PostgresSession, day: string): Promise<void> {
  await session.query(`CREATE TABLE ${closedTable(day)} (LIKE calls INCLUDING DEFAULTS, PRIMARY KEY (day, usage_id))`);
  // Most of the work is done before the lock, which is then held only briefly.
  await takeFromDefault(session, day);
  await session.query('LOCK TABLE calls_default IN ACCESS EXCLUSIVE MODE');
}

async function takeFromDefault(session: PostgresSession, day: string): Promise<void> {
  await session.query(
    `WITH taken AS (DELETE FROM calls_default WHERE day = '${day}' RETURNING *)
     INSERT INTO ${closedTable(day)} SELECT * FROM taken`,
  );
}

async function refuseBeforeHorizon(session: PostgresSession): Promise<void> {
  const rows = await session.query<{ horizon: string }>(
    `SELECT to_char(max(day) + 1, 'YYYY-MM-DD') AS horizon FROM closed_days`,
  );
  // NOT VALID: existing rows need not be read while the lock is held.
  await session.query(
    `ALTER TABLE calls_default DROP CONSTRAINT IF EXISTS calls_default_kept,
       ADD CONSTRAINT calls_default_kept CHECK (day >= '${rows[0]?.horizon}') NOT VALID`,
  );
}

/** Sums over the calls of a closed day. It reads all of them. */
export async function sumClosedDay(session: PostgresSession, day: string): Promise<DaySums> {
  const rows = await session.query<DaySums>(
    `SELECT count(*)::bigint AS calls, coalesce(sum(amount), 0)::bigint AS amount, coalesce(sum(fee), 0)::bigint AS fees
     FROM ${closedTable(day)}`,
  );
  return rows[0] as DaySums;
}

/** The calls of a closed day in the order of their ids, as JSON texts with all columns, in pages of at most `size`. */
export async function* readClosedDay(session: PostgresSession, day: string, size: number): AsyncGenerator<string[]> {
  let last = '00000000-0000-0000-0000-000000000000';
  for (;;) {
    const rows = await session.query<{ id: string; line: string }>(
      `SELECT usage_id AS id, row_to_json(c)::text AS line FROM ${closedTable(day)} c
       WHERE day = $1::date AND usage_id > $2::uuid ORDER BY day, usage_id LIMIT $3::int`,
      [day, last, size],
    );
    if (rows.length > 0) yield rows.map(({ line }) => line);
    if (rows.length < size) return;
    last = rows.at(-1)?.id as string;
  }
}

/**
 * Sums by tag are deleted with the calls: tags may name somebody. Those of the closed day stay until the next day is dropped,
 * because the clocks of gateways may have given ids of this day to calls of the neighbouring days.
 */
async function dropTagSums(session: PostgresSession, day: string): Promise<void> {
  await session.query('DELETE FROM tag_days WHERE day < $1::date', [day]);
  await session.query(`DELETE FROM tag_months WHERE month < date_trunc('month', $1::timestamp)`, [day]);
}

/** Late counts of earlier days are deleted, too. */
async function dropReplays(session: PostgresSession, day: string): Promise<void> {
  await session.query('DELETE FROM call_replays WHERE day <= $1::date', [day]);
}

/** Drops the calls of a closed day for good, and records their sums. @param fileSha256 of their export; null: there is none */
export async function dropDay(
  session: PostgresSession,
  { day, sums, fileSha256 }: { readonly day: string; readonly sums: DaySums; readonly fileSha256: string | null },
): Promise<void> {
  await session.transaction(async () => {
    await session.query(
      `UPDATE closed_days SET calls = $2::bigint, amount = $3::bigint, fees = $4::bigint, file_sha256 = $5::text,
         dropped_at = now(), last_journal_id = (SELECT coalesce(max(journal_id), 0) FROM ${closedTable(day)})
       WHERE day = $1::date AND dropped_at IS NULL`,
      [day, sums.calls, sums.amount, sums.fees, fileSha256],
    );
    await session.query(`DROP TABLE ${closedTable(day)}`);
    await dropTagSums(session, day);
    await dropReplays(session, day);
  });
}
