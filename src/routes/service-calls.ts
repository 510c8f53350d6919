import { formatCsv } from '../accounts/csv.ts';
import { OUTCOMES, type Place, type ServiceCall, selectServiceCalls } from '../accounts/service-calls-sql.ts';
import { MAX_TIME_MS, parseTimeRange } from '../accounts/time-range.ts';
import { selectListing } from '../catalog/sql.ts';
import { ApiError } from '../errors.ts';
import { prefers } from '../http/accept.ts';
import type { ApiRequest, ApiResponse, JsonSchema, ResponseDescription, Route } from '../http/route.ts';
import { VARY } from '../openapi/headers.ts';
import { COUNT, EXAMPLE, json, list, orNull, record, TEXT, TIME, text, UUID, usd } from '../openapi/schemas.ts';
import { isUuid } from '../platform/ids.ts';
import { microsToUsd } from '../platform/money.ts';
import type { Sql } from '../platform/postgres.ts';
import { idOf, mayManage, refusal } from './services.ts';

export type ServiceCallsDeps = {
  readonly sql: Sql;
  /** The buyer as its provider knows it: the same name as in `X-ACF-Buyer`. */
  readonly pseudonymOf: (accountId: string, providerId: string) => string;
};

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;
/** Maximum rows of a CSV file if no `limit` is given, as in `GET /usage/me`. */
const CSV_ROWS = 10_000;
const NEXT_CURSOR_HEADER = 'X-ACF-Next-Cursor';
const HOUR_MS = 3_600_000;

const QUERY: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    from: { type: 'string', maxLength: 40, description: 'First moment: YYYY-MM-DD (00:00 UTC) or RFC 3339' },
    to: { type: 'string', maxLength: 40, description: 'End, not included: YYYY-MM-DD (00:00 UTC) or RFC 3339' },
    outcome: {
      type: 'string',
      enum: [...OUTCOMES],
      description:
        'failed: only calls that the service failed, which were refunded. completed: only calls that were not',
    },
    limit: {
      type: 'integer',
      minimum: 1,
      maximum: MAX_LIMIT,
      description: `Maximum records on a page; ${DEFAULT_LIMIT} if absent, in a CSV file ${CSV_ROWS}`,
    },
    cursor: { type: 'string', maxLength: 45, description: 'next_cursor of the previous page' },
  },
};
type Query = {
  readonly from?: string;
  readonly to?: string;
  readonly outcome?: (typeof OUTCOMES)[number];
  readonly limit?: number;
  readonly cursor?: string;
};

const RECORD = record('ServiceCall', {
  usage_id: UUID,
  buyer: { type: 'string', description: 'The buyer as X-ACF-Buyer names it to the service' },
  method: TEXT,
  path: { type: 'string', description: 'Without its query, cut after 512 characters' },
  status: { type: 'integer', description: '499: the caller left before an answer. 0: nobody knows' },
  amount: usd('What the call cost'),
  fee: usd("The platform's share"),
  earned: usd("The provider's share"),
  free_tier: { type: 'boolean' },
  outcome: {
    type: 'string',
    pattern: '^(completed|abandoned|refunded:[a-z0-9_]+)$',
    description: '`completed`, `refunded:<reason>` or `abandoned`',
  },
  latency_ms: { type: 'number', minimum: 0, description: 'Milliseconds' },
  request_bytes: COUNT,
  response_bytes: COUNT,
  created_at: TIME,
});
const PAGE = record('ServiceCalls', {
  records: list(RECORD, 'Newest first. A page may have fewer than `limit` although more follow'),
  next_cursor: orNull(TEXT),
});
const EXAMPLE_RECORD = {
  ...{ usage_id: EXAMPLE.usageId, buyer: '5f2c9a1be07d4c3398a6f1d2b4e8c07a', method: 'POST', path: '/translate' },
  ...{ status: 200, amount: 0.002, fee: 0.0002, earned: 0.0018, free_tier: false, outcome: 'completed' },
  ...{ latency_ms: 17.322, request_bytes: 41, response_bytes: 52, created_at: EXAMPLE.time },
};
const COLUMNS = Object.keys(EXAMPLE_RECORD) as (keyof typeof EXAMPLE_RECORD)[];

/** `GET /services/{id}/calls`: what a provider sees of the calls of an own service. Nothing in it identifies a buyer. */
export function serviceCallsRoutes(deps: ServiceCallsDeps): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/services/:id/calls',
      summary: 'Calls of an own service, newest first, with buyers as pseudonyms; `Accept: text/csv` exports',
      access: ['provider'],
      query: QUERY,
      params: { id: { description: 'The service', schema: UUID, example: EXAMPLE.serviceId } },
      responses: { 200: response() },
      errors: ['service_not_found'],
      handle: (request: ApiRequest<undefined, Query>) => calls(deps, request),
    },
  ];
}

function response(): ResponseDescription {
  const csv = formatCsv(COLUMNS, [COLUMNS.map((column) => EXAMPLE_RECORD[column])]);
  const { content, ...page } = json(
    'Calls that count',
    PAGE,
    { records: [EXAMPLE_RECORD], next_cursor: null },
    {
      Vary: VARY('Accept'),
      [NEXT_CURSOR_HEADER]: {
        description: 'Of a CSV file: the cursor of the next one. Absent on the last',
        schema: { type: 'string' },
        example: `494000.${EXAMPLE.usageId}`,
        optional: true,
      },
      'Content-Disposition': {
        description: 'Of a CSV file: its name',
        schema: { type: 'string' },
        example: 'attachment; filename="calls.csv"',
        optional: true,
      },
    },
  );
  return { ...page, content: { ...content, 'text/csv': text(csv, 'The records, with a line of column names') } };
}

async function calls(
  { sql, pseudonymOf }: ServiceCallsDeps,
  request: ApiRequest<undefined, Query>,
): Promise<ApiResponse> {
  const id = idOf(request);
  const { query } = request;
  const isCsv = prefers(request.header('accept'), 'text/csv', 'application/json');
  const filter = { ...parseTimeRange(query), serviceId: id, outcome: query.outcome ?? null };
  const after = readCursor(query.cursor);
  // Also a listing that was removed: its history stays.
  const listing = await selectListing(sql, id);
  if (listing === null || !mayManage(request.caller, listing)) throw await refusal(sql, id);
  const page = await selectServiceCalls(sql, filter, after, query.limit ?? (isCsv ? CSV_ROWS : DEFAULT_LIMIT));
  const records = page.calls.map((call) => recordOf(call, pseudonymOf(call.accountId, call.providerId)));
  const next = page.next === null ? null : writeCursor(page.next);
  return isCsv
    ? csvPage(records, next)
    : { status: 200, headers: { Vary: 'Accept' }, body: { records, next_cursor: next } };
}

function csvPage(records: readonly ReturnType<typeof recordOf>[], next: string | null): ApiResponse {
  const rows = records.map((record) => COLUMNS.map((column) => record[column]));
  return {
    status: 200,
    headers: {
      'Content-Type': 'text/csv; charset=utf-8; header=present',
      'Content-Disposition': 'attachment; filename="calls.csv"',
      Vary: 'Accept',
      ...(next === null ? {} : { [NEXT_CURSOR_HEADER]: next }),
    },
    body: formatCsv(COLUMNS, rows),
  };
}

/** Each field is named here, so that a new one of the buyer's record does not reach providers. */
function recordOf(call: ServiceCall, buyer: string) {
  return {
    usage_id: call.usageId,
    buyer,
    method: call.method,
    path: call.path,
    status: call.status,
    amount: microsToUsd(call.amountMicros),
    fee: microsToUsd(call.feeMicros),
    earned: microsToUsd(call.amountMicros - call.feeMicros),
    free_tier: call.freeTier,
    outcome: call.outcome,
    latency_ms: call.latencyUs / 1_000,
    request_bytes: call.requestBytes,
    response_bytes: call.responseBytes,
    created_at: call.createdAt.toISOString(),
  };
}

const writeCursor = ({ hourMs, usageId }: Place): string => `${hourMs / HOUR_MS}.${usageId}`;

function readCursor(cursor: string | undefined): Place | null {
  if (cursor === undefined) return null;
  const [, hour, usageId = ''] = /^(\d{1,8})\.(.*)$/.exec(cursor) ?? [];
  const hourMs = Number(hour) * HOUR_MS;
  if (isUuid(usageId) && hourMs <= MAX_TIME_MS) return { hourMs, usageId };
  throw new ApiError('invalid_request', 'cursor: not issued by this list.');
}
