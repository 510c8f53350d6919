import { timeOfId } from '../../platform/ids.js';
/**
 * The horizon is the first day whose calls are kept. Calls of the days before it were dropped (`RetentionJob`): they have no record,
 * and no call of such a day is stored any more.
 */
export const HORIZON_SQL = 'SELECT max(day) + 1 AS horizon FROM closed_days';
/** 00:00 UTC of the horizon in ms; null as long as nothing was dropped. It never goes back. */
export async function readHorizonMs(from) {
    const rows = 'unsafe' in from
        ? await from.unsafe(HORIZON_SQL)
        : await from.query(HORIZON_SQL);
    return rows[0]?.horizon?.getTime() ?? null;
}
/** Whether the call belongs to a day that was dropped. The day of a call is that of its id, as in `calls`. */
export const isBeforeHorizon = (usageId, horizonMs) => horizonMs !== null && timeOfId(usageId) < horizonMs;
//# sourceMappingURL=horizon.js.map