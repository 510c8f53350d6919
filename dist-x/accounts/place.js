import { ApiError } from '../errors.js';
const CURSOR = /^(\d{1,16})-([0-9a-z-]{1,42})$/;
export const placeText = ({ micros, rest }) => `${micros}-${rest}`;
/**
 * @param rest what the second part has to look like
 * @throws ApiError `invalid_request` for a text that cannot be a cursor of this list
 */
export function readPlace(cursor, rest = /^\d{1,15}$/) {
    if (cursor === undefined)
        return null;
    const match = CURSOR.exec(cursor);
    const micros = Number(match?.[1]);
    if (match === null || !Number.isSafeInteger(micros) || !rest.test(match[2])) {
        throw new ApiError('invalid_request', 'cursor: not issued by this list.');
    }
    return { micros, rest: match[2] };
}
/** A time with its microseconds as a number, which `Date` cannot keep. Exact until the year 2255. */
export const microsOf = (sql, column) => sql `(extract(epoch FROM ${column}) * 1000000)::bigint`;
/** The time of a place, for comparison with a column. */
export const timeOf = (sql, micros) => sql `(timestamptz '1970-01-01 00:00:00Z' + ${micros}::bigint * interval '1 microsecond')`;
//# sourceMappingURL=place.js.map