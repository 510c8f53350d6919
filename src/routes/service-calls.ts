import { OUTCOMES, type Place, type ServiceCall, selectServiceCalls } from '../accounts/service-calls-sql.ts';
import { MAX_TIME_MS, parseTimeRange, recordsSince } from '../accounts/time-range.ts';
import { selectListing } from '../catalog/sql.ts';
import type { ApiRequest, ApiResponse, Route } from '../http/route.ts';
import { readHorizonMs } from '../ledger/retention/horizon.ts';
import { COUNT, EXAMPLE, json, list, orNull, record, TEXT, TIME, UUID, usd } from '../openapi/schemas.ts';
import { isUuid } from '../platform/ids.ts';
import { microsToUsd } from '../platform/money.ts';
import type { Sql } from '../platform/postgres.ts';
import { wrongCursor } from './admin/lists.ts';
import { CsvList, type CsvListQuery } from './csv-list.ts';
import { idOf, mayManage, refusal } from './services.ts';
import { RECORDS_SINCE } from './usage.ts';

export type ServiceCallsDeps = {
  readonly sql: Sql;
  /** The buyer as its provider knows it: the same name as in `X-ACF-Buyer`. */
  readonly pseudonymOf: (accountId: string, providerId: string) => string;
};

const HOUR_MS = 3_600_000;

type Query = CsvListQuery & { readonly outcome?: (typeof OUTCOMES)[number] };

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
const PAGE = record(
  'ServiceCalls',
  {
    records: list(RECORD, 'Newest first. A page may have fewer than `limit` although more follow'),
    next_cursor: orNull(TEXT),
    records_since: RECORDS_SINCE,
  },
  { optional: ['records_since'] },
);
const EXAMPLE_RECORD = {
  ...{ usage_id: EXAMPLE.usageId, buyer: '5f2c9a1be07d4c3398a6f1d2b4e8c07a', method: 'POST', path: '/translate' },
  ...{ status: 200, amount: 0.002, fee: 0.0002, earned: 0.0018, free_tier: false, outcome: 'completed' },
  ...{ latency_ms: 17.322, request_bytes: 41, response_bytes: 52, created_at: EXAMPLE.time },
};

const LIST = new CsvList({
  fileName: 'calls.csv',
  entries: 'records',
  columns: Object.keys(EXAMPLE_RECORD) as (keyof typeof EXAMPLE_RECORD)[],
  filters: {
    outcome: {
      type: 'string',
      enum: [...OUTCOMES],
      description:
        'failed: only calls that the service failed, which were refunded. completed: only calls that were not',
    },
  },
  cursor: { maxLength: 45, example: `494000.${EXAMPLE.usageId}` },
  page: json('Calls that count', PAGE, { records: [EXAMPLE_RECORD], next_cursor: null }),
  exampleRow: EXAMPLE_RECORD,
});

/** `GET /services/{id}/calls`: what a provider sees of the calls of an own service. Nothing in it identifies a buyer. */
export function serviceCallsRoutes(deps: ServiceCallsDeps): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/services/:id/calls',
      summary: 'Calls of an own service, newest first, with buyers as pseudonyms; `Accept: text/csv` exports',
      access: ['provider'],
      query: LIST.query,
      params: { id: { description: 'The service', schema: UUID, example: EXAMPLE.serviceId } },
      responses: { 200: LIST.response },
      errors: ['service_not_found'],
      handle: (request: ApiRequest<undefined, Query>) => calls(deps, request),
    },
  ];
}

async function calls(
  { sql, pseudonymOf }: ServiceCallsDeps,
  request: ApiRequest<undefined, Query>,
): Promise<ApiResponse> {
  const id = idOf(request);
  const { query } = request;
  const filter = { ...parseTimeRange(query), serviceId: id, outcome: query.outcome ?? null };
  const after = readCursor(query.cursor);
  // Also a listing that was removed: its history stays.
  const listing = await selectListing(sql, id);
  if (listing === null || !mayManage(request.caller, listing)) throw await refusal(sql, id);
  const horizonMs = await readHorizonMs(sql);
  // The sums by hour know hours with calls that were dropped: they must not be looked for.
  const kept = horizonMs === null ? filter : { ...filter, fromMs: Math.max(filter.fromMs ?? 0, horizonMs) };
  const page = await selectServiceCalls(sql, kept, after, LIST.limitOf(request));
  const records = page.calls.map((call) => recordOf(call, pseudonymOf(call.accountId, call.providerId)));
  const next = page.next === null ? null : writeCursor(page.next);
  if (LIST.isCsvWanted(request)) return LIST.csvPage(records, next);
  return LIST.jsonPage({ records, next_cursor: next, ...recordsSince(horizonMs) });
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
  throw wrongCursor();
}
