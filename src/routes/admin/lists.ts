import { ApiError } from '../../errors.ts';
import type { JsonSchema } from '../../http/route.ts';
import { ONE_LINE } from '../../openapi/schemas.ts';

// The common part of the operators' lists: newest first, `limit` and `cursor`. `../csv-list.ts` has the same bounds.

/**
 * Maximum rows of a CSV file if no `limit` is given (about 2 MB). If there are more, `X-ACF-Next-Cursor` has the cursor of the next
 * file.
 */
export const CSV_ROWS = 10_000;
export const DEFAULT_LIMIT = 100;
export const MAX_LIMIT = 1_000;

type PageQuery = { readonly limit?: number; readonly cursor?: string };

/**
 * The schema of a list's query.
 *
 * @param filters  the schemas of its filters, all optional
 * @param cursorLength  maximum characters of its cursors
 */
export const listQuery = <const Filters extends Readonly<Record<string, JsonSchema>>>(
  filters: Filters,
  cursorLength = 36,
) =>
  ({
    type: 'object',
    additionalProperties: false,
    properties: {
      ...filters,
      limit: {
        type: 'integer',
        minimum: 1,
        maximum: MAX_LIMIT,
        description: `Entries on a page; ${DEFAULT_LIMIT} if absent, in a CSV file ${CSV_ROWS}`,
      },
      cursor: { type: 'string', maxLength: cursorLength, description: 'next_cursor of the previous page' },
    },
  }) as const;

export const UUID_FILTER = { type: 'string', pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' } as const;
export const KEY_FILTER = { type: 'string', pattern: '^acf_[0-9A-Za-z]{22}$' } as const;
/** Postgres refuses NUL; other control characters occur in no label or name. */
export const TEXT_FILTER = {
  type: 'string',
  minLength: 1,
  maxLength: 200,
  pattern: ONE_LINE,
} as const;
export const TIME_FILTERS = {
  from: { type: 'string', maxLength: 40, description: 'First moment: YYYY-MM-DD (00:00 UTC) or RFC 3339' },
  to: { type: 'string', maxLength: 40, description: 'End, not included: YYYY-MM-DD (00:00 UTC) or RFC 3339' },
} as const;
export const oneOf = <const Values extends readonly string[]>(values: Values, description: string) =>
  ({ type: 'string', enum: values, description }) as const;

export const wrongCursor = (): ApiError => new ApiError('invalid_request', 'cursor: not issued by this list.');

/** One page of a list: `read` is asked for one entry more than fits the page, to find out whether there is another page. */
export async function readPage<Entry>(
  { limit = DEFAULT_LIMIT }: PageQuery,
  read: (limit: number) => Promise<readonly Entry[]>,
  cursorOf: (entry: Entry) => string,
): Promise<{ readonly entries: readonly Entry[]; readonly next: string | null }> {
  const found = await read(limit + 1);
  const entries = found.slice(0, limit);
  const last = found.length > limit ? entries.at(-1) : undefined;
  return { entries, next: last === undefined ? null : cursorOf(last) };
}
