import { ANY_LIST } from '../../accounts/call-fields.ts';
import { selectLabels } from '../../accounts/labels-sql.ts';
import { selectAllCalls } from '../../accounts/lists/calls-sql.ts';
import { readWithDeadline } from '../../accounts/lists/deadline.ts';
import { FIRST_MS, LAST_MS, parseTimeRange, recordsSince } from '../../accounts/time-range.ts';
import { isUsageTime } from '../../accounts/usage-sql.ts';
import { ApiError } from '../../errors.ts';
import type { ApiRequest, ApiResponse, FromSchema, Route } from '../../http/route.ts';
import { readHorizonMs } from '../../ledger/retention/horizon.ts';
import { json, list, orNull, record, TEXT } from '../../openapi/schemas.ts';
import { isUuid } from '../../platform/ids.ts';
import type { Sql } from '../../platform/postgres.ts';
import { labelsOfCall } from '../usage.ts';
import { RECORDS_SINCE } from '../usage-page.ts';
import { KEY_FILTER, listQuery, oneOf, readPage, TIME_FILTERS, UUID_FILTER, wrongCursor } from './lists.ts';

const DAY_MS = 86_400_000;
/** Maximum time range in days, because they are read one after the other. */
const MAX_DAYS = 31;
/** `created_at` comes from Redis, whose clock may be ahead of this one. */
const CLOCK_SLACK_MS = 3_600_000;

const QUERY = listQuery({
  usage_id: { ...UUID_FILTER, description: 'Only this call, whenever it was: X-Request-Id and X-ACF-Usage-Id name it' },
  account_id: { ...UUID_FILTER, description: 'Only calls that this account paid for' },
  key_id: { ...KEY_FILTER, description: 'Only calls of this key' },
  service_id: { ...UUID_FILTER, description: 'Only calls of this service' },
  provider_id: { ...UUID_FILTER, description: 'Only calls of services of this account' },
  outcome: oneOf(['completed', 'refunded', 'abandoned'], '`refunded`: for any reason'),
  from: { ...TIME_FILTERS.from, description: `${TIME_FILTERS.from.description}. 24 hours before \`to\` if absent` },
  to: { ...TIME_FILTERS.to, description: `${TIME_FILTERS.to.description}. Now if absent` },
});
type Query = FromSchema<typeof QUERY>;

const CALLS = record(
  'AllCalls',
  {
    calls: list(record('AdminCall', ANY_LIST.schemas, { optional: ANY_LIST.optional }), 'Newest first'),
    next_cursor: orNull(TEXT),
    records_since: RECORDS_SINCE,
  },
  { optional: ['records_since'] },
);

/** `GET /admin/calls`: calls of all accounts. */
export function adminCallsRoutes({ sql }: { readonly sql: Sql }): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/admin/calls',
      summary: `Calls of all accounts, newest first: of the last 24 hours, or of up to ${MAX_DAYS} days`,
      access: ['admin'],
      query: QUERY,
      csvRows: 'calls',
      responses: { 200: json('One page of calls', CALLS, { calls: [ANY_LIST.example], next_cursor: null }) },
      handle: (request: ApiRequest<undefined, Query>) => listCalls(sql, request.query),
    },
  ];
}

async function listCalls(sql: Sql, query: Query): Promise<ApiResponse> {
  const { cursor = null } = query;
  if (cursor !== null && (!isUuid(cursor) || !isUsageTime(cursor))) throw wrongCursor();
  const usageId = query.usage_id ?? null;
  // No list reaches the day of such an id.
  if (usageId !== null && !isUsageTime(usageId))
    throw new ApiError('invalid_request', 'usage_id: not the id of a call.');
  const filter = {
    usageId,
    ...(usageId === null ? boundedRange(query) : anyTime(query)),
    accountId: query.account_id ?? null,
    keyId: query.key_id ?? null,
    serviceId: query.service_id ?? null,
    providerId: query.provider_id ?? null,
    outcome: query.outcome ?? null,
  };
  const { entries, next } = await readPage(
    query,
    (limit) => readWithDeadline(sql, (timed) => selectAllCalls(timed, filter, cursor, limit)),
    (call) => call.usage_id,
  );
  const labels = await selectLabels(
    sql,
    entries.flatMap((call) => [call.account_id, call.provider_id]),
  );
  const calls = entries.map((call) => ANY_LIST.json({ ...call, ...labelsOfCall(call, labels) }));
  return { status: 200, body: { calls, next_cursor: next, ...recordsSince(await readHorizonMs(sql)) } };
}

/** The id tells the day, so no range is needed. A given range is only compared with the call. */
function anyTime(query: Query): { readonly fromMs: number; readonly toMs: number } {
  const { fromMs, toMs } = parseTimeRange(query);
  return { fromMs: fromMs ?? FIRST_MS, toMs: toMs ?? LAST_MS };
}

function boundedRange(query: Query): { readonly fromMs: number; readonly toMs: number } {
  const range = parseTimeRange(query);
  const toMs = range.toMs ?? Math.max(Date.now(), range.fromMs ?? 0) + CLOCK_SLACK_MS;
  const fromMs = range.fromMs ?? (range.toMs ?? Date.now()) - DAY_MS;
  if (toMs - fromMs > MAX_DAYS * DAY_MS + CLOCK_SLACK_MS) {
    throw new ApiError('invalid_request', `from: must be at most ${MAX_DAYS} days before to (now, if it is absent).`);
  }
  // A missing end may lie outside the years that Postgres can read.
  return { fromMs: Math.max(fromMs, FIRST_MS), toMs: Math.min(toMs, LAST_MS) };
}
