import type { PostgresSession, Tx } from '../../platform/postgres.ts';
import { HOUR_LOCK } from '../locks.ts';
import type { Hours } from './hour-sums.ts';
import { KEY_DAYS, keyDayRows, mergedRow } from './sum-tables.ts';

/**
 * `key_days` has the sums of all hours before `installation.days_summed_to`. Each flush adds its calls to `key_hours`. When an hour is
 * over, `addHour` adds its rows to `key_days` once, and moves the time ahead. A flush with calls of an earlier hour adds them to both.
 * Who reads sums by day adds the rows of later hours (`keyDays` of src/accounts/sums-sql.ts).
 *
 * Locks (`HOUR_LOCK`) make that exact. A flush has those of its calls' hours, shared, before the statement that reads the time, and
 * keeps them until its commit. `addHour` has that of its hour alone: each flush of that hour was committed before, so its rows are
 * read, or reads the new time.
 *
 * Tested by test/ledger/rollups/key-days.test.ts and hours.test.ts.
 */

/** Takes the locks of the hours of these calls until the end of the transaction. It waits at most for one `addHour`. */
export async function lockHours(session: PostgresSession, pages: readonly Pick<Hours, 'keys'>[]): Promise<void> {
  const hours = new Set(pages.flatMap(({ keys }) => keys.map(({ hour }) => hour)));
  if (hours.size === 0) return;
  await session.query(
    `SELECT count(pg_advisory_xact_lock_shared($1::int, hour))
     FROM (SELECT unnest($2::int[]) AS hour ORDER BY 1) AS hours`,
    [HOUR_LOCK, `{${Array.from(hours).join(',')}}`],
  );
}

/** Most of an hour's calls are stored within this time of its end. It is not about being right: a later flush costs a little more. */
const LATE = '5 minutes';

/** By way of `service_hours`, which has an index by hour: each flush adds to both tables. Planned anew, because both tables grow. */
const ADD_HOUR = `
INSERT INTO ${KEY_DAYS.name} AS s (${KEY_DAYS.columns.join(', ')})
${keyDayRows(`FROM (
  SELECT k.* FROM service_hours h JOIN key_hours k ON k.service_id = h.service_id AND k.hour = h.hour
  WHERE h.hour = to_timestamp($1::bigint * 3600::float8)
) AS hours`)}
ORDER BY 1, 2, 3
ON CONFLICT (key_id, day, service_id) DO UPDATE SET ${mergedRow(KEY_DAYS)}`;

const hourOf = (time: string): string => `(extract(epoch FROM ${time}) / 3600)::int`;

/** 'none': all hours that are over are added. 'busy': a flush or a rebuild works on the next one. */
type HourAdded = 'one' | 'none' | 'busy';

/**
 * Adds the next hour that is over to `key_days`, in the open transaction. One alone, because flushes of its calls wait meanwhile; and it
 * waits for nobody, because others wait behind it.
 */
export async function addHour(tx: Tx): Promise<HourAdded> {
  const [next] = await tx<{ hour: number; end: number }[]>`
    SELECT ${tx.text(hourOf('days_summed_to'))} AS hour, ${tx.text(hourOf(`date_trunc('hour', now() - interval '${LATE}', 'UTC')`))} AS "end"
    FROM installation WHERE only_row FOR NO KEY UPDATE`;
  if (next === undefined || next.hour >= next.end) return 'none';
  const { hour } = next;
  const [lock] = await tx<{ isFree: boolean }[]>`
    SELECT pg_try_advisory_xact_lock(${HOUR_LOCK}::int, ${hour}::int) AS "isFree"`;
  if (lock?.isFree !== true) return 'busy';
  await tx.unsafe(ADD_HOUR, [String(hour)], { isPlannedAnew: true });
  await tx`UPDATE installation SET days_summed_to = to_timestamp(${hour + 1}::bigint * 3600::float8) WHERE only_row`;
  return 'one';
}

/** All 24 locks of a day (YYYY-MM-DD), shared, until `unlockDay`: meanwhile none of its hours is added. They belong to the session. */
export const lockDay = (session: PostgresSession, day: string): Promise<unknown> =>
  ofDay(session, 'pg_advisory_lock_shared', day);

export const unlockDay = (session: PostgresSession, day: string): Promise<unknown> =>
  ofDay(session, 'pg_advisory_unlock_shared', day);

const ofDay = (session: PostgresSession, lock: string, day: string): Promise<unknown> =>
  session.query(`SELECT count(${lock}($1::int, hour)) FROM generate_series($2::int, $2::int + 23) AS hour`, [
    HOUR_LOCK,
    Date.parse(day) / 3_600_000,
  ]);
