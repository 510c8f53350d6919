import { type CsvCell, formatCsv } from '../accounts/csv.ts';
import { prefers } from '../http/accept-headers.ts';
import type { ApiRequest, ApiResponse, JsonSchema, ResponseDescription } from '../http/route.ts';
import { VARY } from '../openapi/headers.ts';
import { text } from '../openapi/schemas.ts';
import { CSV_ROWS, DEFAULT_LIMIT, MAX_LIMIT, TIME_FILTERS } from './admin/lists.ts';

const NEXT_CURSOR_HEADER = 'X-ACF-Next-Cursor';

/** The headers of a CSV file. @param next  the cursor of the next file; null: there is none */
export const csvHeaders = (fileName: string, next: string | null): Readonly<Record<string, string>> => ({
  'Content-Type': 'text/csv; charset=utf-8; header=present',
  'Content-Disposition': dispositionOf(fileName),
  ...(next === null ? {} : { [NEXT_CURSOR_HEADER]: next }),
});

/** The same for the OpenAPI document. */
export const csvFileHeaders = (fileName: string, cursor: string): NonNullable<ResponseDescription['headers']> => {
  const ofFile = (description: string, example: string) =>
    ({ description: `Of a CSV file: ${description}`, schema: { type: 'string' }, example, optional: true }) as const;
  return {
    [NEXT_CURSOR_HEADER]: ofFile('the cursor of the next one. Absent on the last', cursor),
    'Content-Disposition': ofFile('its name', dispositionOf(fileName)),
  };
};

const dispositionOf = (fileName: string): string => `attachment; filename="${fileName}"`;

/** The query of every such list, to which its filters are added. */
export type CsvListQuery = {
  readonly from?: string;
  readonly to?: string;
  readonly limit?: number;
  readonly cursor?: string;
};

/** A row by column. Columns that it lacks stay empty. */
type CsvRow<Column extends string> = { readonly [column in Column]?: CsvCell | undefined };

/** A list of what happened in a time range, newest first: as pages of JSON, or as CSV files for callers who prefer those. */
export class CsvList<Column extends string> {
  readonly query: JsonSchema;
  readonly response: ResponseDescription;
  readonly #columns: readonly Column[];
  readonly #fileName: string;

  /**
   * @param list.entries the name of its entries, for sentences
   * @param list.filters  the schemas of the query parameters that only this list has
   * @param list.page  a page in JSON
   */
  constructor(list: {
    readonly fileName: string;
    readonly entries: 'records' | 'movements';
    readonly columns: readonly Column[];
    readonly filters: Readonly<Record<string, JsonSchema>>;
    readonly cursor: { readonly maxLength: number; readonly example: string };
    /** If pages do not end at their limit: where they end. */
    readonly pagesEnd?: string;
    readonly page: ResponseDescription;
    readonly exampleRow: CsvRow<Column>;
  }) {
    const { entries, cursor, page } = list;
    this.#columns = list.columns;
    this.#fileName = list.fileName;
    const pagesEnd = list.pagesEnd === undefined ? '' : `; ${list.pagesEnd}`;
    const limit = `Maximum ${entries} on a page; ${DEFAULT_LIMIT} if absent, in a CSV file ${CSV_ROWS}${pagesEnd}`;
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
    const csv = text(this.#csvOf([list.exampleRow]), `The ${entries}, with a line of column names`);
    this.response = {
      ...page,
      headers: {
        ...page.headers,
        Vary: VARY('Accept'),
        ...csvFileHeaders(list.fileName, cursor.example),
      },
      content: { ...page.content, 'text/csv': csv },
    };
  }

  isCsvWanted(request: Pick<ApiRequest, 'header'>): boolean {
    return prefers(request.header('accept'), 'text/csv', 'application/json');
  }

  limitOf(request: ApiRequest<undefined, CsvListQuery>): number {
    return request.query.limit ?? (this.isCsvWanted(request) ? CSV_ROWS : DEFAULT_LIMIT);
  }

  jsonPage(body: object): ApiResponse {
    return { status: 200, headers: { Vary: 'Accept' }, body };
  }

  /** @param next  the cursor of the next file; null: there is none */
  csvPage(rows: readonly CsvRow<Column>[], next: string | null): ApiResponse {
    return {
      status: 200,
      headers: {
        ...csvHeaders(this.#fileName, next),
        Vary: 'Accept',
      },
      body: this.#csvOf(rows),
    };
  }

  #csvOf(rows: readonly CsvRow<Column>[]): string {
    const cells = rows.map((row) => this.#columns.map((column) => row[column] ?? ''));
    return formatCsv(this.#columns, cells);
  }
}
