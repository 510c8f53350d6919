import { formatCsv } from '../accounts/csv.js';
import { prefers } from '../http/accept.js';
import { VARY } from '../openapi/headers.js';
import { text } from '../openapi/schemas.js';
import { DEFAULT_LIMIT, MAX_LIMIT, TIME_FILTERS } from './admin/lists.js';
/** Maximum rows of a CSV file if no `limit` is given (about 2 MB). If there are more, NEXT_CURSOR_HEADER leads to the next file. */
const CSV_ROWS = 10_000;
const NEXT_CURSOR_HEADER = 'X-ACF-Next-Cursor';
/** A list of what happened within a range of time, newest first: in pages of JSON, or in CSV files for callers who prefer those. */
export class CsvList {
    query;
    response;
    #columns;
    #disposition;
    /**
     * @param list.entries  what its entries are called in sentences
     * @param list.filters  the schemas of the query parameters that only this list has
     * @param list.page  a page in JSON
     */
    constructor(list) {
        const { entries, cursor, page } = list;
        this.#columns = list.columns;
        this.#disposition = `attachment; filename="${list.fileName}"`;
        const limit = `Maximum ${entries} on a page; ${DEFAULT_LIMIT} if absent, in a CSV file ${CSV_ROWS}`;
        this.query = {
            type: 'object',
            additionalProperties: false,
            properties: {
                ...TIME_FILTERS,
                ...list.filters,
                limit: { type: 'integer', minimum: 1, maximum: MAX_LIMIT, description: limit },
                cursor: { type: 'string', maxLength: cursor.maxLength, description: 'next_cursor of the previous page' },
            },
        };
        const ofFile = (description, example) => ({ description: `Of a CSV file: ${description}`, schema: { type: 'string' }, example, optional: true });
        const csv = text(this.#csvOf([list.exampleRow]), `The ${entries}, with a line of column names`);
        this.response = {
            ...page,
            headers: {
                ...page.headers,
                Vary: VARY('Accept'),
                [NEXT_CURSOR_HEADER]: ofFile('the cursor of the next one. Absent on the last', cursor.example),
                'Content-Disposition': ofFile('its name', this.#disposition),
            },
            content: { ...page.content, 'text/csv': csv },
        };
    }
    isCsvWanted(request) {
        return prefers(request.header('accept'), 'text/csv', 'application/json');
    }
    limitOf(request) {
        return request.query.limit ?? (this.isCsvWanted(request) ? CSV_ROWS : DEFAULT_LIMIT);
    }
    jsonPage(body) {
        return { status: 200, headers: { Vary: 'Accept' }, body };
    }
    /** @param next  the cursor of the next file; null: there is none */
    csvPage(rows, next) {
        return {
            status: 200,
            headers: {
                'Content-Type': 'text/csv; charset=utf-8; header=present',
                'Content-Disposition': this.#disposition,
                Vary: 'Accept',
                ...(next === null ? {} : { [NEXT_CURSOR_HEADER]: next }),
            },
            body: this.#csvOf(rows),
        };
    }
    #csvOf(rows) {
        const cells = rows.map((row) => this.#columns.map((column) => row[column] ?? ''));
        return formatCsv(this.#columns, cells);
    }
}
//# sourceMappingURL=csv-list.js.map