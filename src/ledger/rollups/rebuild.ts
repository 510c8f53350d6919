import { type PostgresSession, sqlState } from '../../platform/postgres.ts';
import { StartRefused } from '../../platform/start-refused.ts';
import { FLUSH_LOCK, RETENTION_LOCK } from '../locks.ts';
import { HORIZON_SQL } from '../retention/horizon.ts';
import { sumsColumns } from './all-sums.ts';
import { exactParts } from './exact-parts.ts';
import { lockDay, unlockDay } from './key-days.ts';
import { STORED_CALL, type StoredCall, sumsOf } from './stored-calls.ts';
import { addSumsFrom, SUM_TABLES, type SumTable } from './sum-tables.ts';
import { addTagSums, TAG_DAYS, tagColumns } from './tag-sums.ts';

/**
 * Rebuilds the sums of calls, day by day, and changes the rows that are wrong.
 *
 * A day is one transaction with one snapshot (REPEATABLE READ): it adds up the day's calls into temporary tables, deletes the rows
 * that differ, and inserts those that are missing. Writers go on meanwhile. Each flush that stores a counted call also changes the
 * rows to which the call belongs. So if a flush that committed since the snapshot has changed a row that must be changed here,
 * Postgres refuses the change. Otherwise the row contains nothing that the snapshot lacks, and a later flush adds to the corrected
 * row. A refused day is done again while no flush can be under way: with all flush locks, shared, so that wallets can still be
 * loaded.
 *
 * Memory is bounded: `PAGE` calls at a time. Tested by test/ledger/rollups/rebuild.test.ts.
 */

/** Calls that are read and added up together. */
const PAGE = 10_000;
/** Prefix of the temporary tables, followed by the name of the table of sums. */
const PREFIX = 'rebuilt_';
/** `tag_months`, which says which tags have their own sums, is not a sum: it is read and left unchanged. */
const TABLES = [...SUM_TABLES, TAG_DAYS];
/** A flush has changed or inserted a row since the snapshot, or a flush and this transaction waited for each other. */
const CHANGED_MEANWHILE = /^(40001|23505|40P01)$/;

/** What a rebuild did to one day: how many rows of each table of sums were removed and written. A row that was wrong counts as both. */
export type RebuiltDay = {
  /** YYYY-MM-DD, UTC: the day in which the calls began. */
  readonly day: string;
  readonly calls: number;
  readonly changes: readonly { readonly table: string; readonly removed: number; readonly written: number }[];
};

type Options = {
  /** Called between reading a day's calls and changing its sums. Tests store calls here. */
  readonly afterReading?: () => Promise<void>;
};

/**
 * Rebuilds the sums of all days that still have all their calls. A day's calls may be stored under the previous day, since their
 * ids come from the gateway's clock. So the first day that is kept is left unchanged, like those whose calls were dropped.
 *
 * @throws StartRefused when another process drops old days or rebuilds sums
 */
export async function* rebuildSums(session: PostgresSession, options: Options = {}): AsyncGenerator<RebuiltDay> {
  // If its calls were dropped meanwhile, a day would lose its sums.
  const [lock] = await session.query<{ locked: boolean }>('SELECT pg_try_advisory_lock($1::int, 0) AS locked', [
    RETENTION_LOCK,
  ]);
  if (lock?.locked !== true) throw new StartRefused('another process drops old days or rebuilds sums: try again later');
  for (const { name } of TABLES) {
    await session.query(`CREATE TEMP TABLE ${PREFIX}${name} (LIKE ${name} INCLUDING INDEXES) ON COMMIT DELETE ROWS`);
  }
  for (const one of await session.query<Day>(DAYS_SQL)) {
    try {
      yield await rebuildDay(session, one, options);
    } catch (error) {
      if (!CHANGED_MEANWHILE.test(sqlState(error) ?? '')) throw error;
      yield await withoutFlushes(session, () => rebuildDay(session, one, options));
    }
  }
}

/** A day with calls or sums, and the days under which calls that began in it are stored. */
type Day = { readonly day: string; readonly partitions: readonly string[] };

const dayOf = ({ columns }: SumTable): string => (columns.includes('day') ? 'day' : `(hour AT TIME ZONE 'UTC')::date`);

/**
 * It reads all calls and sums. It does not find a call that is stored later under a day more than one away (a clock that is off by
 * that much).
 */
const DAYS_SQL = `
SELECT day::text AS day,
       array_agg(DISTINCT partition::text) FILTER (WHERE partition IS NOT NULL)
         || ARRAY[(day - 1)::text, day::text, (day + 1)::text] AS partitions
FROM (
  SELECT (created_at AT TIME ZONE 'UTC')::date AS day, day AS partition FROM calls GROUP BY 1, 2
  ${TABLES.map((table) => `UNION ALL SELECT DISTINCT ${dayOf(table)}, NULL::date FROM ${table.name}`).join(' ')}
) AS found
WHERE found.day > coalesce((${HORIZON_SQL}), '-infinity')
GROUP BY found.day ORDER BY found.day`;

async function rebuildDay(session: PostgresSession, of: Day, options: Options): Promise<RebuiltDay> {
  await lockDay(session, of.day);
  try {
    return await rebuildLocked(session, of, options);
  } finally {
    await unlockDay(session, of.day);
  }
}

function rebuildLocked(session: PostgresSession, { day, partitions }: Day, options: Options): Promise<RebuiltDay> {
  return session.transaction(async () => {
    const calls = await addUpCalls(session, day, partitions);
    await options.afterReading?.();
    const changes: RebuiltDay['changes'][number][] = [];
    for (const table of TABLES) {
      const [removed] = await session.query<{ rows: number }>(removeWrongSql(table), [day]);
      const [written] = await session.query<{ rows: number }>(writeMissingSql(table));
      changes.push({ table: table.name, removed: removed?.rows ?? 0, written: written?.rows ?? 0 });
    }
    return { day, calls, changes };
  }, 'ISOLATION LEVEL REPEATABLE READ');
}

const startOf = (day: string): string => `((${day})::timestamp AT TIME ZONE 'UTC')`;

/** Adds up the calls that began in the day, into the temporary tables. @returns their number */
async function addUpCalls(session: PostgresSession, day: string, partitions: readonly string[]): Promise<number> {
  // The days are texts made from Postgres' own dates. A cursor takes no parameters.
  const [from, to] = [startOf(`date '${day}'`), startOf(`date '${day}' + 1`)];
  await session.query(
    `DECLARE calls_of_day NO SCROLL CURSOR FOR SELECT ${STORED_CALL} FROM calls
     WHERE day = ANY('{${partitions.join(',')}}'::date[]) AND created_at >= ${from} AND created_at < ${to}`,
  );
  for (let calls = 0; ; ) {
    const page = await session.query<StoredCall>(`FETCH ${PAGE} FROM calls_of_day`);
    for (const part of exactParts(page, ({ amountMicros, latencyUs }) => ({ heldMicros: amountMicros, latencyUs }))) {
      const sums = sumsOf(part);
      await session.query(`WITH ${addSumsFrom(1, PREFIX)} SELECT`, sumsColumns([sums]));
      const tags = tagColumns([sums]);
      if (tags !== null) await session.query(addTagSums(PREFIX), tags);
    }
    calls += page.length;
    if (page.length < PAGE) return calls;
  }
}

/** The rows `s` of a table of sums that belong to the day $1. */
const ofDay = ({ columns }: SumTable): string =>
  columns.includes('day')
    ? 's.day = $1::date'
    : `s.hour >= ${startOf('$1::date')} AND s.hour < ${startOf('$1::date + 1')}`;

const listOf = (alias: string, columns: readonly string[]): string =>
  columns.map((name) => `${alias}.${name}`).join(', ');

const removeWrongSql = (table: SumTable): string => `
WITH removed AS (
  DELETE FROM ${table.name} AS s WHERE ${ofDay(table)} AND NOT EXISTS (
    SELECT FROM ${PREFIX}${table.name} AS r WHERE (${listOf('r', table.columns)}) = (${listOf('s', table.columns)}))
  RETURNING 1
) SELECT count(*)::int AS rows FROM removed`;

/** The rows are inserted in the order of their keys, in which flushes lock them. */
function writeMissingSql(table: SumTable): string {
  const keys = table.columns.slice(0, table.keys);
  return `
WITH written AS (
  INSERT INTO ${table.name} (${table.columns.join(', ')})
  SELECT ${listOf('r', table.columns)} FROM ${PREFIX}${table.name} AS r WHERE NOT EXISTS (
    SELECT FROM ${table.name} AS s WHERE (${listOf('s', keys)}) = (${listOf('r', keys)}))
  ORDER BY ${listOf('r', keys)}
  RETURNING 1
) SELECT count(*)::int AS rows FROM written`;
}

async function withoutFlushes<T>(session: PostgresSession, work: () => Promise<T>): Promise<T> {
  // These are session locks: a transaction would take its snapshot before it waits for a lock of its own.
  const ofAllShards = (lock: string) =>
    session.query(
      `SELECT ${lock}($1::int, shard) FROM generate_series(0, (SELECT redis_shards FROM installation) - 1) AS shard`,
      [FLUSH_LOCK],
    );
  await ofAllShards('pg_advisory_lock_shared');
  try {
    return await work();
  } finally {
    await ofAllShards('pg_advisory_unlock_shared');
  }
}
