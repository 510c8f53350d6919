import { ANY_CALL, audienceOf, BOUGHT, BOUGHT_LIST, CALL, type CallRow, SOLD } from '../accounts/call-fields.ts';
import { type Labels, selectLabels } from '../accounts/labels-sql.ts';
import { parseTimeRange, recordsSince, utcDay } from '../accounts/time-range.ts';
import { isUsageTime, OUTCOMES, selectCall, type UsageFilter } from '../accounts/usage-sql.ts';
import { type ServiceUsage, selectCallPage, selectUsage } from '../accounts/usage-sums.ts';
import { ApiError } from '../errors.ts';
import type { ApiRequest, ApiResponse, JsonSchema, Route } from '../http/route.ts';
import { type KeyRecord, keyOf, ROLES } from '../keys/caller.ts';
import { isBeforeHorizon, readHorizonMs } from '../ledger/retention/horizon.ts';
import { COUNT, EXAMPLE, json, list, orNull, record, TEXT, UUID, usd } from '../openapi/schemas.ts';
import type { Audience } from '../platform/fields.ts';
import { isUuid } from '../platform/ids.ts';
import { microsToUsd } from '../platform/money.ts';
import type { Sql } from '../platform/postgres.ts';
import { wrongCursor } from './admin/lists.ts';
import { CsvList, type CsvListQuery } from './csv-list.ts';

/** Maximum days in `by_day`: the newest of them. A row is about 65 bytes. */
const MAX_DAYS = 366;

type Query = CsvListQuery & { readonly service_id?: string; readonly outcome?: (typeof OUTCOMES)[number] };

const MS: JsonSchema = { type: 'number', minimum: 0, description: 'Milliseconds' };
const RECORD = record('UsageRecord', BOUGHT_LIST.schemas, { optional: BOUGHT_LIST.optional });
export const RECORDS_SINCE: JsonSchema = {
  type: 'string',
  format: 'date',
  description:
    'The first day (UTC) whose calls have records. Calls of earlier days were dropped. Absent while none were',
};
const USAGE_FIELDS = {
  key_id: TEXT,
  owner_id: TEXT,
  total_calls: COUNT,
  free_calls: COUNT,
  total_spent: usd('What all calls that match have cost'),
  avg_latency_ms: MS,
  by_service: list(
    record('ServiceUsage', {
      service_id: UUID,
      service_name: TEXT,
      calls: COUNT,
      free_calls: COUNT,
      spent: usd('What they have cost'),
      avg_latency_ms: MS,
    }),
  ),
  by_day: list(
    record('DayUsage', {
      day: { type: 'string', format: 'date', description: 'In UTC' },
      calls: COUNT,
      free_calls: COUNT,
      spent: usd('What they have cost'),
    }),
    `Days with calls, newest first; at most ${MAX_DAYS}`,
  ),
  records: list(RECORD, 'Newest first'),
  next_cursor: orNull(TEXT),
  records_since: RECORDS_SINCE,
};
const USAGE = record('Usage', USAGE_FIELDS, { optional: ['records_since'] });
const only = (...by: Audience[]) => ANY_CALL.names.filter((name) => by.includes(CALL[name].audience));
const CALL_RECORD = record('Call', ANY_CALL.schemas, {
  optional: [...only('owner', 'counterpart', 'admin'), ...ANY_CALL.optional],
  description: `Its buyer sees ${only('owner').join(' and ')}, its provider ${only('counterpart').join(' and ')}, an admin all of it`,
});
const USAGE_EXAMPLE = {
  key_id: EXAMPLE.keyId,
  owner_id: 'acme-bot',
  total_calls: 1,
  free_calls: 0,
  total_spent: 0.002,
  avg_latency_ms: 17.322,
  by_service: [
    {
      service_id: EXAMPLE.serviceId,
      service_name: 'Translate',
      calls: 1,
      free_calls: 0,
      spent: 0.002,
      avg_latency_ms: 17.322,
    },
  ],
  by_day: [{ day: EXAMPLE.time.slice(0, 10), calls: 1, free_calls: 0, spent: 0.002 }],
  records: [BOUGHT_LIST.example],
  next_cursor: null,
};

const LIST = new CsvList({
  fileName: 'usage.csv',
  entries: 'records',
  columns: BOUGHT_LIST.names,
  filters: {
    service_id: { type: 'string', maxLength: 36, description: 'Only calls of this service' },
    outcome: {
      type: 'string',
      enum: [...OUTCOMES],
      description: 'Only records of this outcome, `refunded` for any reason; the sums are of all outcomes',
    },
  },
  cursor: { maxLength: 36, example: EXAMPLE.usageId },
  page: json('The usage of this key', USAGE, USAGE_EXAMPLE),
  exampleRow: BOUGHT_LIST.example,
});

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
      bucket: 'reads',
      forSuspended: true,
      query: LIST.query,
      responses: { 200: LIST.response },
      handle: (request: ApiRequest<undefined, Query>) => {
        const key = keyOf(request.caller);
        const filter = readFilter(key, request.query);
        const before = readCursor(request.query.cursor);
        const limit = LIST.limitOf(request);
        return LIST.isCsvWanted(request)
          ? csvPage(sql, filter, before, limit)
          : jsonPage(sql, key, filter, before, limit);
      },
    },
    {
      method: 'GET',
      path: '/api/v1/usage/:usage_id',
      summary: 'One call, for its buyer, its provider and admins',
      access: ROLES,
      bucket: 'reads',
      params: { usage_id: { description: 'The call', schema: UUID, example: EXAMPLE.usageId } },
      responses: { 200: json('The call', CALL_RECORD, BOUGHT.example) },
      errors: ['not_found'],
      handle: async ({ caller, params }) => {
        const id = params.usage_id ?? '';
        const call = isUuid(id) && isUsageTime(id) ? await selectCall(sql, id) : null;
        const view = call === null ? null : await viewOf(sql, call, keyOf(caller));
        if (view === null) throw await noSuchCall(sql, id);
        return { status: 200, body: view };
      },
    },
  ];
}

const NO_SUCH_CALL = 'There is no such call. A record appears up to a second after the end of its call.';

/** Says the same of a call that was dropped and of one that never was: nothing tells them apart. */
async function noSuchCall(sql: Sql, id: string): Promise<ApiError> {
  const horizonMs = isUuid(id) ? await readHorizonMs(sql) : null;
  if (!isBeforeHorizon(id, horizonMs)) return new ApiError('not_found', NO_SUCH_CALL);
  return new ApiError('not_found', `Calls before ${utcDay(horizonMs as number)} (UTC) are no longer kept one by one.`);
}

function readFilter(key: KeyRecord, query: Query): UsageFilter {
  const serviceId = query.service_id ?? null;
  if (serviceId !== null && !isUuid(serviceId)) throw new ApiError('invalid_request', 'service_id: must be a UUID.');
  return { ...parseTimeRange(query), keyId: key.keyId, serviceId, outcome: query.outcome ?? null };
}

function readCursor(cursor: string | undefined): string | null {
  if (cursor === undefined) return null;
  if (isUuid(cursor) && isUsageTime(cursor)) return cursor;
  throw wrongCursor();
}

/** Cuts off the extra row, which was read only to find out whether there is another page. */
function cutPage(found: readonly CallRow[], limit: number): { calls: readonly CallRow[]; next: string | null } {
  const calls = found.slice(0, limit);
  return { calls, next: found.length > limit ? (calls.at(-1)?.usage_id ?? null) : null };
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
  return LIST.jsonPage({
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
    by_day: usage.byDay.slice(0, MAX_DAYS).map(({ day, calls, freeCalls, spentMicros }) => ({
      day,
      calls,
      free_calls: freeCalls,
      spent: microsToUsd(spentMicros),
    })),
    records: calls.map(BOUGHT_LIST.json),
    next_cursor: next,
    ...recordsSince(usage.horizonMs),
  });
}

/** Milliseconds with 3 decimals; 0 if there is nothing to average. */
function averageMs(sumUs: number, count: number): number {
  return count === 0 ? 0 : Math.round(sumUs / count) / 1_000;
}

async function csvPage(sql: Sql, filter: UsageFilter, before: string | null, limit: number): Promise<ApiResponse> {
  const { calls, next } = cutPage(await selectCallPage(sql, filter, before, limit + 1), limit);
  return LIST.csvPage(calls.map(BOUGHT_LIST.json), next);
}

/** @param labels  of the accounts of both parties */
export function adminCallJson(call: CallRow, labels: Labels): object {
  const label = (accountId: string): string => labels.get(accountId) ?? '';
  return ANY_CALL.json({ ...call, owner_id: label(call.account_id), provider_owner_id: label(call.provider_id) });
}

/** What this key may see of the call, or null if nothing. */
async function viewOf(sql: Sql, call: CallRow, by: KeyRecord): Promise<object | null> {
  const audience = audienceOf(call, by);
  if (audience === 'admin') return adminCallJson(call, await selectLabels(sql, [call.account_id, call.provider_id]));
  if (audience === 'owner') return BOUGHT.json(call);
  return audience === 'counterpart' ? SOLD.json(call) : null;
}
