import { SOLD_LIST } from '../accounts/call-fields.ts';
import { OUTCOMES, type Position, selectServiceCalls } from '../accounts/service-calls-sql.ts';
import { MAX_TIME_MS, parseTimeRange, recordsSince } from '../accounts/time-range.ts';
import { selectListing } from '../catalog/sql.ts';
import type { ApiRequest, ApiResponse, Route } from '../http/route.ts';
import { readHorizonMs } from '../ledger/retention/horizon.ts';
import { EXAMPLE, json, list, orNull, record, TEXT, UUID } from '../openapi/schemas.ts';
import { isUuid } from '../platform/ids.ts';
import type { Sql } from '../platform/postgres.ts';
import { wrongCursor } from './admin/lists.ts';
import { CsvList, type CsvListQuery } from './csv-list.ts';
import { idOf, mayManage, refusal } from './named-service.ts';
import { RECORDS_SINCE } from './usage-page.ts';

type ServiceCallsDeps = {
  readonly sql: Sql;
  /** The buyer as its provider knows it: the same name as in `X-ACF-Buyer`. */
  readonly pseudonymOf: (accountId: string, providerId: string) => string;
};

const HOUR_MS = 3_600_000;

type Query = CsvListQuery & { readonly outcome?: (typeof OUTCOMES)[number] };

const PAGE = record(
  'ServiceCalls',
  {
    records: list(
      record('ServiceCall', SOLD_LIST.schemas, { optional: SOLD_LIST.optional }),
      'Newest first. A page may have fewer than `limit` although more follow',
    ),
    next_cursor: orNull(TEXT),
    records_since: RECORDS_SINCE,
  },
  { optional: ['records_since'] },
);
const LIST = new CsvList({
  fileName: 'calls.csv',
  entries: 'records',
  columns: SOLD_LIST.names,
  filters: {
    outcome: {
      type: 'string',
      enum: [...OUTCOMES],
      description:
        'failed: calls that the service failed and calls that were given back whole, as the stats count them. completed: calls with this outcome',
    },
  },
  cursor: { maxLength: 45, example: `494000.${EXAMPLE.usageId}` },
  page: json('Calls that count', PAGE, { records: [SOLD_LIST.example], next_cursor: null }),
  exampleRow: SOLD_LIST.example,
});

/** `GET /services/{id}/calls`: what a provider sees of the calls of its own service. Nothing in it identifies a buyer. */
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
  // This includes removed listings: their history stays.
  const listing = await selectListing(sql, id);
  if (listing === null || !mayManage(request.caller, listing)) throw await refusal(sql, id);
  const horizonMs = await readHorizonMs(sql);
  // The sums by hour include hours whose calls were dropped: these must not be searched.
  const kept = horizonMs === null ? filter : { ...filter, fromMs: Math.max(filter.fromMs ?? 0, horizonMs) };
  const page = await selectServiceCalls(sql, kept, after, LIST.limitOf(request));
  const records = page.calls.map((call) =>
    SOLD_LIST.json({ ...call, buyer: pseudonymOf(call.account_id, call.provider_id) }),
  );
  const next = page.next === null ? null : writeCursor(page.next);
  if (LIST.isCsvWanted(request)) return LIST.csvPage(records, next);
  return LIST.jsonPage({ records, next_cursor: next, ...recordsSince(horizonMs) });
}

const writeCursor = ({ hourMs, usageId }: Position): string => `${hourMs / HOUR_MS}.${usageId}`;

function readCursor(cursor: string | undefined): Position | null {
  if (cursor === undefined) return null;
  const [, hour, usageId = ''] = /^(\d{1,8})\.(.*)$/.exec(cursor) ?? [];
  const hourMs = Number(hour) * HOUR_MS;
  if (isUuid(usageId) && hourMs <= MAX_TIME_MS) return { hourMs, usageId };
  throw wrongCursor();
}
