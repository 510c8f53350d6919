import type { Tx } from '../../platform/postgres.ts';
import { ROLLUP_LOCK } from '../locks.ts';
import { addSumsOf } from './all-sums.ts';
import { SUMMED_COLUMNS } from './hours-sql.ts';

/**
 * Calls that a writer of the version before stored are missing from the hours. Their journal rows are in `rollup_backlog`: row 0
 * for all that were there before migration 0008, and one row, which a trigger adds, for each later flush of such a writer.
 *
 * A pass adds them. It takes what is in the backlog when it begins, walks through all calls by day and id, once, and adds those
 * of its journal rows. It goes by the primary key of `calls`, because an index on `journal_id` would cost every flush, and making
 * one would stop flushes for as long as it takes to read every call. Each step commits its sums together with its place, so a
 * call is added once, whenever the process dies. When the pass is over, its rows leave the backlog.
 *
 * Tested by test/ledger/rollups/backlog.test.ts.
 */

/** The row of the backlog that stands for all journal rows that are older than `journal.with_hours`. */
const ROWS_BEFORE = 0;
const FIRST_ID = '00000000-0000-0000-0000-000000000000';

/**
 * Whether the hours have all calls that are stored. Read it in the same snapshot as the hours: while it is false, only `calls` has
 * the right sums.
 */
export async function isRolledUp(tx: Tx): Promise<boolean> {
  const rows = await tx<{ isRolledUp: boolean }[]>`
    SELECT NOT EXISTS (SELECT FROM rollup_backlog) AS "isRolledUp"`;
  return rows[0]?.isRolledUp === true;
}

/** `day`: YYYY-MM-DD. */
type Pass = { readonly journalIds: number[]; readonly day: string; readonly usageId: string };

export type Step = {
  /** 'busy': another process is at it. 'done': the backlog is empty. 'over': a pass has ended. */
  readonly state: 'busy' | 'done' | 'more' | 'over';
  /** The day that the step looked at. */
  readonly day?: string;
  readonly added: number;
};

/**
 * Makes one step, within the transaction `tx`.
 *
 * @param size how many calls to look at, at most
 */
export async function rollUpStep(tx: Tx, size: number): Promise<Step> {
  const locks = await tx<
    { isLocked: boolean }[]
  >`SELECT pg_try_advisory_xact_lock(${ROLLUP_LOCK}::int, 0) AS "isLocked"`;
  if (locks[0]?.isLocked !== true) return { state: 'busy', added: 0 };
  const pass = (await readPass(tx)) ?? (await beginPass(tx));
  if (pass === null) return { state: 'done', added: 0 };
  const { looked, last, added } = await addChunk(tx, pass, size);
  if (last !== null) await tx`UPDATE rollup_pass SET usage_id = ${last}`;
  if (looked < size && !(await moveToNextDay(tx, pass.day))) {
    await endPass(tx, pass);
    return { state: 'over', day: pass.day, added };
  }
  return { state: 'more', day: pass.day, added };
}

async function readPass(tx: Tx): Promise<Pass | null> {
  const rows = await tx<Pass[]>`
    SELECT journal_ids::text[] AS "journalIds", day::text AS "day", usage_id AS "usageId" FROM rollup_pass`;
  return rows[0] ?? null;
}

async function beginPass(tx: Tx): Promise<Pass | null> {
  await tx`
    INSERT INTO rollup_pass (journal_ids, day, usage_id)
    SELECT array_agg(journal_id), (SELECT coalesce(min(day), 'epoch') FROM calls), ${FIRST_ID}
    FROM rollup_backlog HAVING count(*) > 0`;
  return readPass(tx);
}

async function moveToNextDay(tx: Tx, day: string): Promise<boolean> {
  const rows = await tx<object[]>`
    UPDATE rollup_pass SET day = next.day, usage_id = ${FIRST_ID}
    FROM (SELECT min(day) AS day FROM calls WHERE day > ${day}::date) AS next
    WHERE next.day IS NOT NULL RETURNING next.day`;
  return rows.length > 0;
}

async function endPass(tx: Tx, { journalIds }: Pass): Promise<void> {
  await tx`DELETE FROM rollup_backlog WHERE journal_id = ANY(${journalIds}::bigint[])`;
  await tx`DELETE FROM rollup_pass`;
}

/**
 * $1 day, $2 the last id that was looked at, $3 how many calls, $4 whether the rows before the migration are meant, $5 other
 * journal rows. The journal rows are looked up by an array of ids, so that no plan reads the whole journal.
 */
const ADD_CHUNK_SQL = `
WITH chunk AS MATERIALIZED (
  SELECT usage_id, journal_id, ${SUMMED_COLUMNS} FROM calls
  WHERE day = $1::date AND usage_id > $2::uuid ORDER BY usage_id LIMIT $3::int
), missing AS MATERIALIZED (
  SELECT ${SUMMED_COLUMNS} FROM chunk WHERE journal_id IN (
    SELECT id FROM journal WHERE id = ANY(ARRAY(SELECT DISTINCT journal_id FROM chunk))
      AND (with_hours IS NULL AND $4::boolean OR id = ANY($5::bigint[])))
), ${addSumsOf('missing')}
SELECT (SELECT count(*)::int FROM chunk) AS looked, (SELECT count(*)::int FROM missing) AS added,
       (SELECT usage_id FROM chunk ORDER BY usage_id DESC LIMIT 1) AS last`;

async function addChunk(tx: Tx, { journalIds, day, usageId }: Pass, size: number) {
  const ids = journalIds.map(Number);
  const parameters = [day, usageId, size, ids.includes(ROWS_BEFORE), `{${ids.join(',')}}`];
  type Chunk = { readonly looked: number; readonly added: number; readonly last: string | null };
  const rows = await tx.unsafe<Chunk>(ADD_CHUNK_SQL, parameters, { isPlannedAnew: true });
  const [chunk] = rows;
  if (chunk === undefined) throw new Error('a step through calls has no result');
  return chunk;
}
