import { ApiError } from '../errors.ts';
import type { Sql, Tx } from '../platform/postgres.ts';

/**
 * A position in a list that is ordered by time. Several rows may have the same time, so a number or text that is unique among them
 * follows it. The cursor is `<microseconds since 1970>-<the rest>`; an empty rest is before everything at that time. Postgres keeps
 * microseconds; `Date` would cut them off.
 */
export type Position = { readonly micros: number; readonly rest: string };

const CURSOR = /^(\d{1,16})-([0-9a-z-]{0,42})$/;

export const cursorText = ({ micros, rest }: Position): string => `${micros}-${rest}`;

/**
 * @param rest the pattern of the part after the time
 * @throws ApiError `invalid_request` for a text that cannot be a cursor of this list
 */
export function readCursor(cursor: string | undefined, rest = /^\d{1,15}$/): Position | null {
  if (cursor === undefined) return null;
  const match = CURSOR.exec(cursor);
  const micros = Number(match?.[1]);
  if (match === null || !Number.isSafeInteger(micros) || !rest.test(match[2] as string)) {
    throw new ApiError('invalid_request', 'cursor: not issued by this list.');
  }
  return { micros, rest: match[2] as string };
}

/** A time with its microseconds as a number, which `Date` cannot keep. Exact until the year 2255. */
export const microsOf = (sql: Sql | Tx, column: ReturnType<Sql>) =>
  sql`(extract(epoch FROM ${column}) * 1000000)::bigint`;

/** The time of a position, for comparison with a column. */
export const timeOf = (sql: Sql | Tx, micros: number) =>
  sql`(timestamptz '1970-01-01 00:00:00Z' + ${micros}::bigint * interval '1 microsecond')`;
