import { timeOfId } from '../../platform/ids.ts';
import type { PostgresSession, Sql, Tx } from '../../platform/postgres.ts';

/**
 * The horizon is the first day whose calls are kept. Calls of earlier days were dropped (`RetentionJob`): they have no record, and
 * no further call of such a day is stored.
 */

export const HORIZON_SQL = 'SELECT max(day) + 1 AS horizon FROM closed_days';

/** 00:00 UTC of the horizon in ms; null until something has been dropped. It never goes back. */
export async function readHorizonMs(from: Sql | Tx | PostgresSession): Promise<number | null> {
  const rows =
    'unsafe' in from
      ? await from.unsafe<{ horizon: Date | null }>(HORIZON_SQL)
      : await from.query<{ horizon: Date | null }>(HORIZON_SQL);
  return rows[0]?.horizon?.getTime() ?? null;
}

/** Whether the call belongs to a day that was dropped. The day of a call is that of its id, as in `calls`. */
export const isBeforeHorizon = (usageId: string, horizonMs: number | null): boolean =>
  horizonMs !== null && timeOfId(usageId) < horizonMs;
