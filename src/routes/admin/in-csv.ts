import { type CsvCell, formatCsv } from '../../accounts/csv.ts';
import { ApiError } from '../../errors.ts';
import { admits, prefers } from '../../http/accept-headers.ts';
import type { ApiRequest, ApiResponse, JsonSchema, ResponseDescription, Route } from '../../http/route.ts';
import { isForPages, VARY } from '../../openapi/headers.ts';
import { EXAMPLE } from '../../openapi/schemas.ts';
import { csvFileHeaders, csvHeaders } from '../csv-list.ts';
import { CSV_ROWS } from './lists.ts';

/**
 * Also offers each operators' list (`Route.csvRows`) as a CSV file, to callers who prefer that. The columns are the fields of its
 * entries; a value that is an object or an array is written as JSON. An operators' page without rows answers 406 to a caller who
 * accepts only CSV, so that no file named `.csv` contains JSON. Other routes are not changed.
 */
export function inCsv(route: Route): Route {
  const { method, path, csvRows, responses } = route;
  const described = responses[200];
  const types = Object.keys(described?.content ?? {});
  if (method !== 'GET' || isForPages(path) || types.includes('text/csv')) return route;
  if (csvRows === undefined || described === undefined) {
    return {
      ...route,
      errors: [...(route.errors ?? []), 'not_acceptable'],
      handle: async (request) => {
        refuseCsv(request, types);
        return route.handle(request);
      },
    };
  }
  const columns = columnsOf(described, csvRows);
  const fileName = `${path.split('/').at(-1)}.csv`;
  return {
    ...route,
    responses: { ...responses, 200: withCsv(described, csvRows, columns, fileName) },
    handle: async (request) => {
      if (!wantsCsv(request)) return varying(await route.handle(request));
      const { limit = CSV_ROWS, ...query } = request.query as { readonly limit?: number };
      const isPaged = Object.hasOwn((route.query?.properties ?? {}) as object, 'limit');
      const page = await route.handle({ ...request, query: isPaged ? { ...query, limit } : query });
      const body = page.body as Readonly<Record<string, unknown>>;
      const next = (body.next_cursor ?? null) as string | null;
      const rows = body[csvRows] as readonly Readonly<Record<string, unknown>>[];
      return varying({
        status: page.status,
        headers: { ...page.headers, ...csvHeaders(fileName, next) },
        body: csvOf(columns, rows),
      });
    },
  };
}

const wantsCsv = (request: ApiRequest): boolean => prefers(request.header('accept'), 'text/csv', 'application/json');

function refuseCsv(request: ApiRequest, types: readonly string[]): void {
  if (!wantsCsv(request) || types.some((type) => admits(request.header('accept'), type))) return;
  throw new ApiError(
    'not_acceptable',
    `Accept: this page has no rows, so it is not available as CSV. It is available as ${types.join(' or ')}.`,
  );
}

const varying = (page: ApiResponse): ApiResponse => ({
  ...page,
  headers: { ...page.headers, Vary: varyOf(page.headers) },
});

const varyOf = (headers: ApiResponse['headers'] = {}): string =>
  headers.Vary === undefined ? 'Accept' : `${headers.Vary}, Accept`;

type Properties<Of> = { readonly properties: Readonly<Record<string, Of>> };

function columnsOf({ content }: ResponseDescription, rows: string): readonly string[] {
  const schema = content?.['application/json']?.schema as Properties<{ items: Properties<JsonSchema> }>;
  return Object.keys(schema.properties[rows]?.items.properties ?? {});
}

function withCsv(
  described: ResponseDescription,
  rows: string,
  columns: readonly string[],
  fileName: string,
): ResponseDescription {
  const { headers = {}, content } = described;
  const page = content?.['application/json']?.example as Readonly<Record<string, []>>;
  const vary = headers.Vary === undefined ? 'Accept' : `${headers.Vary.example}, Accept`;
  const schema = { type: 'string', description: `The ${rows}, with a line of column names. Nested values are JSON` };
  return {
    ...described,
    headers: { ...headers, Vary: VARY(vary), ...csvFileHeaders(fileName, EXAMPLE.usageId) },
    content: { ...content, 'text/csv': { schema, example: csvOf(columns, page[rows] ?? []) } },
  };
}

const csvOf = (columns: readonly string[], rows: readonly Readonly<Record<string, unknown>>[]): string =>
  formatCsv(
    columns,
    rows.map((row) => columns.map((column) => cellOf(row[column]))),
  );

function cellOf(value: unknown): CsvCell {
  if (value === undefined || value === null) return '';
  return typeof value === 'object' ? JSON.stringify(value) : (value as CsvCell);
}
