import { formatCsv } from '../accounts/csv.ts';
import { parseTimeRange } from '../accounts/time-range.ts';
import {
  type CallRecord,
  isUsageTime,
  type ServiceUsage,
  selectCall,
  selectCalls,
  selectUsage,
  type UsageFilter,
} from '../accounts/usage-sql.ts';
import { ApiError } from '../errors.ts';
import type { ApiRequest, ApiResponse, JsonSchema, Route } from '../http/route.ts';
import { type KeyRecord, keyOf, ROLES } from '../keys/caller.ts';
import { isUuid } from '../platform/ids.ts';
import { microsToUsd } from '../platform/money.ts';
import type { Sql } from '../platform/postgres.ts';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;
/**
 * Maximum rows of a CSV file if no `limit` is given (about 2 MB). If there are more, X-ACF-Next-Cursor is the cursor for the next
 * file.
 */
const CSV_ROWS = 10_000;
const NEXT_CURSOR_HEADER = 'X-ACF-Next-Cursor';

const QUERY: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    from: { type: 'string', maxLength: 40, description: 'First moment: YYYY-MM-DD (00:00 UTC) or RFC 3339' },
    to: { type: 'string', maxLength: 40, description: 'End, not included: YYYY-MM-DD (00:00 UTC) or RFC 3339' },
    service_id: { type: 'string', maxLength: 36 },
    limit: { type: 'integer', minimum: 1, maximum: MAX_LIMIT },
    cursor: { type: 'string', maxLength: 36, description: 'next_cursor of the previous page' },
  },
};
type Query = {
  readonly from?: string;
  readonly to?: string;
  readonly service_id?: string;
  readonly limit?: number;
  readonly cursor?: string;
};

/** The pages that show recorded calls; a call is recorded within a second of its end. Amounts in USD, latencies in ms. */
export function usageRoutes(deps: { readonly sql: Sql }): Route[] {
  const { sql } = deps;
  return [
    {
      method: 'GET',
      path: '/api/v1/usage/me',
      summary:
        'Calls of this key: sums over all that match, and their records, newest first; `Accept: text/csv` exports',
      access: ROLES,
      query: QUERY,
      handle: (request: ApiRequest<undefined, Query>) => {
        const key = keyOf(request.caller);
        const filter = readFilter(key, request.query);
        const before = readCursor(request.query.cursor);
        return prefersCsv(request.header('accept'))
          ? csvPage(sql, filter, before, request.query.limit ?? CSV_ROWS)
          : jsonPage(sql, key, filter, before, request.query.limit ?? DEFAULT_LIMIT);
      },
    },
    {
      method: 'GET',
      path: '/api/v1/usage/:usage_id',
      summary: 'One call, for its buyer, its provider and admins',
      access: ROLES,
      handle: async ({ caller, params }) => {
        const id = params.usage_id ?? '';
        const call = isUuid(id) && isUsageTime(id) ? await selectCall(sql, id) : null;
        const view = call === null ? null : viewOf(call, keyOf(caller));
        if (view === null) throw new ApiError('not_found', 'There is no such call.');
        return { status: 200, body: view };
      },
    },
  ];
}

function readFilter(key: KeyRecord, query: Query): UsageFilter {
  const serviceId = query.service_id ?? null;
  if (serviceId !== null && !isUuid(serviceId)) throw new ApiError('invalid_request', 'service_id: must be a UUID.');
  return { ...parseTimeRange(query), keyId: key.keyId, serviceId };
}

function readCursor(cursor: string | undefined): string | null {
  if (cursor === undefined) return null;
  if (isUuid(cursor) && isUsageTime(cursor)) return cursor;
  throw new ApiError('invalid_request', 'cursor: not issued by this list.');
}

/**
 * Whether `Accept` gives text/csv a higher weight than JSON. Wildcards are ignored, so with wildcards alone a caller gets JSON.
 */
function prefersCsv(accept: string | undefined): boolean {
  let csv = 0;
  let json = 0;
  for (const range of (accept ?? '').split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const q = Number(parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1);
    if (type === 'text/csv') csv = q;
    if (type === 'application/json') json = q;
  }
  return csv > json;
}

/** Cuts off the extra row, which was read only to find out whether there is another page. */
function cutPage(found: readonly CallRecord[], limit: number): { calls: readonly CallRecord[]; next: string | null } {
  const calls = found.slice(0, limit);
  return { calls, next: found.length > limit ? (calls.at(-1)?.usageId ?? null) : null };
}

async function jsonPage(
  sql: Sql,
  key: KeyRecord,
  filter: UsageFilter,
  before: string | null,
  limit: number,
): Promise<ApiResponse> {
  const usage = await selectUsage(sql, filter, before, limit + 1);
  const { calls, next } = cutPage(usage.calls, limit);
  const total = (pick: (service: ServiceUsage) => number): number =>
    usage.byService.reduce((sum, service) => sum + pick(service), 0);
  return {
    status: 200,
    headers: { Vary: 'Accept' },
    body: {
      key_id: key.keyId,
      owner_id: key.ownerId,
      total_calls: total((service) => service.calls),
      free_calls: total((service) => service.freeCalls),
      total_spent: microsToUsd(total((service) => service.spentMicros)),
      avg_latency_ms: averageMs(
        total((service) => service.latencySumUs),
        total((service) => service.latencyCount),
      ),
      by_service: usage.byService.map((service) => ({
        service_id: service.serviceId,
        service_name: service.serviceName,
        calls: service.calls,
        free_calls: service.freeCalls,
        spent: microsToUsd(service.spentMicros),
        avg_latency_ms: averageMs(service.latencySumUs, service.latencyCount),
      })),
      records: calls.map(recordJson),
      next_cursor: next,
    },
  };
}

/** Milliseconds with 3 decimals; 0 if there is nothing to average. */
function averageMs(sumUs: number, count: number): number {
  return count === 0 ? 0 : Math.round(sumUs / count) / 1_000;
}

function recordJson(call: CallRecord) {
  return {
    usage_id: call.usageId,
    service_id: call.serviceId,
    service_name: call.serviceName,
    method: call.method,
    path: call.path,
    status: call.status,
    amount: microsToUsd(call.amountMicros),
    free_tier: call.freeTier,
    outcome: call.outcome,
    latency_ms: call.latencyUs / 1_000,
    request_bytes: call.requestBytes,
    response_bytes: call.responseBytes,
    created_at: call.createdAt.toISOString(),
  };
}

const CSV_COLUMNS = [
  'usage_id',
  'service_id',
  'service_name',
  'method',
  'path',
  'status',
  'amount',
  'free_tier',
  'outcome',
  'latency_ms',
  'request_bytes',
  'response_bytes',
  'created_at',
] as const satisfies readonly (keyof ReturnType<typeof recordJson>)[];

async function csvPage(sql: Sql, filter: UsageFilter, before: string | null, limit: number): Promise<ApiResponse> {
  const { calls, next } = cutPage(await selectCalls(sql, filter, before, limit + 1), limit);
  const rows = calls.map((call) => {
    const record = recordJson(call);
    return CSV_COLUMNS.map((column) => record[column]);
  });
  return {
    status: 200,
    headers: {
      'Content-Type': 'text/csv; charset=utf-8; header=present',
      'Content-Disposition': 'attachment; filename="usage.csv"',
      Vary: 'Accept',
      ...(next === null ? {} : { [NEXT_CURSOR_HEADER]: next }),
    },
    body: formatCsv(CSV_COLUMNS, rows),
  };
}

/**
 * What this key may see of the call, or null if nothing. An admin sees all. The buyer sees which of its keys paid, but not how
 * the platform and the provider divide the money. The provider sees its own share, but nothing that identifies the buyer.
 */
function viewOf(call: CallRecord, by: KeyRecord): Record<string, unknown> | null {
  const record = recordJson(call);
  const forBuyer = { key_id: call.keyId };
  const forProvider = {
    fee: microsToUsd(call.feeMicros),
    earned: microsToUsd(call.amountMicros - call.feeMicros),
  };
  if (by.role === 'admin') {
    return { ...record, ...forBuyer, ...forProvider, account_id: call.accountId, provider_id: call.providerId };
  }
  if (call.accountId === by.accountId) return { ...record, ...forBuyer };
  if (call.providerId === by.accountId) return { ...record, ...forProvider };
  return null;
}
