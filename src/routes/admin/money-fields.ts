import { actorOf } from '../../accounts/audit.ts';
import { cursorText, type Position, readCursor } from '../../accounts/cursor.ts';
import { selectLabels } from '../../accounts/labels-sql.ts';
import type { Listed, MovementFilter } from '../../accounts/money-lists-sql.ts';
import { parseTimeRange } from '../../accounts/time-range.ts';
import { ApiError } from '../../errors.ts';
import type { ApiRequest, FromSchema, JsonSchema, ResponseDescription } from '../../http/route.ts';
import { keyOf } from '../../keys/caller.ts';
import { json, list, ONE_LINE, orNull, record, TEXT } from '../../openapi/schemas.ts';
import { usdToMicros } from '../../platform/money.ts';
import type { Sql } from '../../platform/postgres.ts';
import { CSV_ROWS, DEFAULT_LIMIT, MAX_LIMIT, TIME_FILTERS } from './lists.ts';

// The common part of the pages that move money by hand, and of their lists.

export const ACCOUNT_ID = { type: 'string', pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' } as const;
export const AMOUNT = {
  type: 'number',
  exclusiveMinimum: 0,
  maximum: 1_000_000_000,
  description: 'USD, at most 6 decimals',
} as const;
/** A single line of text. */
export const line = (maxLength: number, description: string) =>
  ({
    type: 'string',
    minLength: 1,
    maxLength,
    pattern: ONE_LINE,
    description,
  }) as const;
export const REFERENCE = line(
  200,
  'Makes the request safe to repeat: a second one with the same reference moves nothing',
);

/** @throws ApiError `invalid_request` for an amount finer than a micro-dollar */
export function readAmount(amount: number): number {
  const micros = usdToMicros(amount);
  if (micros !== null && micros > 0) return micros;
  throw new ApiError('invalid_request', 'amount: must be USD above 0 with at most 6 decimals.');
}

/** The admin who sent this request. */
export const actorOfRequest = ({ caller, requestId }: ApiRequest) => actorOf(keyOf(caller), requestId);

export const noAccount = () => new ApiError('not_found', 'account_id: there is no such account.');

export const LIST_QUERY = {
  type: 'object',
  additionalProperties: false,
  properties: {
    account_id: { ...ACCOUNT_ID, description: 'Only those of this account' },
    reference: line(200, 'Only the one with this reference'),
    ...TIME_FILTERS,
    limit: {
      type: 'integer',
      minimum: 1,
      maximum: MAX_LIMIT,
      description: `Rows on a page; ${DEFAULT_LIMIT} if absent, in a CSV file ${CSV_ROWS}`,
    },
    cursor: { type: 'string', maxLength: 60, description: 'next_cursor of the previous page' },
  },
} as const;
export type ListQuery = FromSchema<typeof LIST_QUERY>;

const readFilter = (query: ListQuery): MovementFilter => ({
  ...parseTimeRange(query),
  accountId: query.account_id ?? null,
  reference: query.reference ?? null,
});

/**
 * The response of a list: `{<name>: […], next_cursor}`.
 *
 * @param title  of a row
 * @param fields of a row; the label of its account is added
 */
export function listResponse(
  title: string,
  name: string,
  fields: Readonly<Record<string, JsonSchema>>,
  example: object,
): ResponseDescription {
  const row = record(title, { ...fields, owner_id: { ...TEXT, description: 'The label of the account' } });
  const page = record(`${title.replace('Listed', '')}s`, {
    [name]: list(row, 'Newest first'),
    next_cursor: orNull(TEXT),
  });
  return json('A page, newest first', page, {
    [name]: [{ ...example, owner_id: 'acme-bot' }],
    next_cursor: '1763798400000000-4711',
  });
}

/**
 * Reads one row more than the page has, to find out whether another page follows.
 *
 * @param select reads at most `limit` rows after the position `before`; null: from the newest
 */
export async function listPage<Row extends { readonly accountId: string }>(
  sql: Sql,
  query: ListQuery,
  name: string,
  select: (sql: Sql, filter: MovementFilter, before: Position | null, limit: number) => Promise<readonly Listed<Row>[]>,
  rowJson: (row: Row) => object,
) {
  const limit = query.limit ?? DEFAULT_LIMIT;
  const found = await select(sql, readFilter(query), readCursor(query.cursor), limit + 1);
  const rows = found.slice(0, limit);
  const last = rows.at(-1);
  const next = found.length > limit && last !== undefined ? cursorText(last.position) : null;
  const labels = await selectLabels(
    sql,
    rows.map(({ accountId }) => accountId),
  );
  const entries = rows.map((row) => ({ ...rowJson(row), owner_id: labels.get(row.accountId) ?? '' }));
  return { status: 200, body: { [name]: entries, next_cursor: next } };
}
