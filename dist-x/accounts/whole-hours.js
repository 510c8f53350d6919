import { ApiError } from '../errors.js';
import { LAST_MS } from './time-range.js';
const HOUR_MS = 3_600_000;
/**
 * Refuses a range that begins or ends within an hour whose calls may have been dropped: its sum is known, but not that of a part. The
 * first hour that is kept counts as such an hour, too: some of its calls may have an id of the day before.
 *
 * @param horizonMs the first day that is kept (`readHorizonMs`)
 * @throws ApiError `invalid_request` naming the parameter
 */
export function refusePartsOfDropped(range, horizonMs) {
    if (horizonMs === null)
        return;
    const firstMs = horizonMs + HOUR_MS;
    for (const [name, ms] of [['from', range.fromMs], ['to', range.toMs]]) {
        if (ms === null || ms >= firstMs || ms % HOUR_MS === 0)
            continue;
        const message = `${name}: must be a whole hour (UTC) before ${new Date(firstMs).toISOString()}: single calls are kept from there on only.`;
        throw new ApiError('invalid_request', message);
    }
}
/**
 * Divides a range. The rest is at most the begun hour at each end: with the highest rate limit, 18 000 calls of a key in each.
 *
 * Tested by test/accounts/usage-sums.test.ts.
 */
export function divideByHours(range) {
    const fromMs = range.fromMs === null ? null : Math.ceil(range.fromMs / HOUR_MS) * HOUR_MS;
    const toMs = range.toMs === null ? null : Math.floor(range.toMs / HOUR_MS) * HOUR_MS;
    // The hour after `LAST_MS` cannot be sent to Postgres.
    if (fromMs !== null && fromMs >= (toMs ?? LAST_MS))
        return { hours: null, rest: [range] };
    const ends = [
        { fromMs: range.fromMs, toMs: fromMs },
        { fromMs: toMs, toMs: range.toMs },
    ];
    return { hours: { fromMs, toMs }, rest: ends.filter((end) => end.fromMs !== end.toMs) };
}
//# sourceMappingURL=whole-hours.js.map