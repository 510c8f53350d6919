import { ApiError } from '../../errors.js';
// What the operators' lists have in common: newest first, `limit` and `cursor`. `../csv-list.ts` has the same bounds.
export const DEFAULT_LIMIT = 100;
export const MAX_LIMIT = 1_000;
/** The schema of a list's query. @param filters  the schemas of its filters, all optional */
export const listQuery = (filters) => ({
    type: 'object',
    additionalProperties: false,
    properties: {
        ...filters,
        limit: {
            type: 'integer',
            minimum: 1,
            maximum: MAX_LIMIT,
            default: DEFAULT_LIMIT,
            description: 'Entries on a page',
        },
        cursor: { type: 'string', maxLength: 36, description: 'next_cursor of the previous page' },
    },
});
export const UUID_FILTER = { type: 'string', pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' };
export const KEY_FILTER = { type: 'string', pattern: '^acf_[0-9A-Za-z]{22}$' };
/** Postgres refuses NUL; other control characters are in no label or name. */
export const TEXT_FILTER = {
    type: 'string',
    minLength: 1,
    maxLength: 200,
    pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f]*$',
};
export const TIME_FILTERS = {
    from: { type: 'string', maxLength: 40, description: 'First moment: YYYY-MM-DD (00:00 UTC) or RFC 3339' },
    to: { type: 'string', maxLength: 40, description: 'End, not included: YYYY-MM-DD (00:00 UTC) or RFC 3339' },
};
export const oneOf = (values, description) => ({ type: 'string', enum: values, description });
export const wrongCursor = () => new ApiError('invalid_request', 'cursor: not issued by this list.');
/** One page of a list: `read` is asked for one entry more than a page has, which tells whether there is another page. */
export async function readPage({ limit = DEFAULT_LIMIT }, read, cursorOf) {
    const found = await read(limit + 1);
    const entries = found.slice(0, limit);
    const last = found.length > limit ? entries.at(-1) : undefined;
    return { entries, next: last === undefined ? null : cursorOf(last) };
}
//# sourceMappingURL=lists.js.map