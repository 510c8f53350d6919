import { ANY_CALL, audienceOf, BOUGHT, BOUGHT_LIST, CALL, type CallRow, SOLD } from '../accounts/call-fields.ts';
import { hasKey, type KeyScope, onlyKey, seenBy } from '../accounts/key-scope.ts';
import { type Labels, selectLabels } from '../accounts/labels-sql.ts';
import { selectRefundsOfCall } from '../accounts/refunds/refund-sql.ts';
import { selectRefused } from '../accounts/refused-calls.ts';
import { parseTimeRange, utcDay } from '../accounts/time-range.ts';
import { isUsageTime, type OUTCOMES, selectCall, type UsageFilter } from '../accounts/usage-sql.ts';
import { selectCallPage, selectUsage } from '../accounts/usage-sums.ts';
import { ApiError } from '../errors.ts';
import type { ApiRequest, ApiResponse, Route } from '../http/route.ts';
import { type KeyRecord, keyOf, ROLES } from '../keys/caller.ts';
import { isBeforeHorizon, readHorizonMs } from '../ledger/retention/horizon.ts';
import { EXAMPLE, json, record, UUID } from '../openapi/schemas.ts';
import type { Audience } from '../platform/fields.ts';
import { isUuid } from '../platform/ids.ts';
import type { Sql } from '../platform/postgres.ts';
import { wrongCursor } from './admin/lists.ts';
import type { CsvListQuery } from './csv-list.ts';
import { ACCOUNT_LIST, accountUsageJson, type CallPage, KEY_LIST, keyUsageJson } from './usage-page.ts';

type Query = CsvListQuery & { readonly service_id?: string; readonly outcome?: (typeof OUTCOMES)[number] };
type AccountQuery = Query & { readonly key_id?: string; readonly tag?: string };

const only = (...by: Audience[]) => ANY_CALL.names.filter((name) => by.includes(CALL[name].audience));
const CALL_RECORD = record('Call', ANY_CALL.schemas, {
  optional: [...only('owner', 'counterpart', 'admin'), ...ANY_CALL.optional],
  description: `Its buyer sees ${only('owner').join(' and ')}, its provider ${only('counterpart').join(' and ')}, an admin all of it`,
});

/** The pages that show recorded calls; a call is recorded within a second of its end. Amounts in USD, latencies in ms. */
export function usageRoutes(deps: { readonly sql: Sql }): Route[] {
  const { sql } = deps;
  const page = { access: ROLES, forChildren: true, bucket: 'reads', forSuspended: true } as const;
  return [
    {
      ...page,
      method: 'GET',
      path: '/api/v1/usage/me',
      summary:
        'Calls of this key: sums over all that match, and their records, newest first; `Accept: text/csv` exports',
      query: KEY_LIST.query,
      responses: { 200: KEY_LIST.response },
      handle: (request: ApiRequest<undefined, Query>) => {
        const key = keyOf(request.caller);
        return usagePage(sql, KEY_LIST, request, onlyKey(key.keyId), (...read) => keyUsageJson(key, ...read));
      },
    },
    {
      ...page,
      method: 'GET',
      path: '/api/v1/usage',
      summary:
        'Calls of all keys of the account; of a key with a parent, its own and those of the keys below it. As `/usage/me`, with sums by key and by tag',
      query: ACCOUNT_LIST.query,
      responses: { 200: ACCOUNT_LIST.response },
      errors: ['not_found'],
      handle: async (request: ApiRequest<undefined, AccountQuery>) => {
        const key = keyOf(request.caller);
        const keyId = request.query.key_id ?? null;
        const scope = keyId === null ? seenBy(key) : await scopeOfKey(sql, key, keyId);
        const refused = ACCOUNT_LIST.isCsvWanted(request)
          ? []
          : await selectRefused(sql, readFilter(scope, request.query));
        return usagePage(sql, ACCOUNT_LIST, request, scope, (...read) =>
          accountUsageJson(key, keyId, refused, ...read),
        );
      },
    },
    {
      method: 'GET',
      path: '/api/v1/usage/:usage_id',
      summary: 'One call, for its buyer, its provider and admins',
      access: ROLES,
      forChildren: true,
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

/** Says the same about a call that was dropped and one that never existed: nothing distinguishes them. */
export async function noSuchCall(sql: Sql, id: string): Promise<ApiError> {
  const horizonMs = isUuid(id) ? await readHorizonMs(sql) : null;
  if (!isBeforeHorizon(id, horizonMs)) return new ApiError('not_found', NO_SUCH_CALL);
  return new ApiError('not_found', `Calls before ${utcDay(horizonMs as number)} (UTC) are no longer kept one by one.`);
}

async function scopeOfKey(sql: Sql, by: KeyRecord, keyId: string): Promise<KeyScope> {
  if (await hasKey(sql, seenBy(by), keyId)) return onlyKey(keyId);
  throw new ApiError('not_found', 'There is no such key among those whose calls this key sees.');
}

async function usagePage(
  sql: Sql,
  list: typeof KEY_LIST,
  request: ApiRequest<undefined, AccountQuery>,
  scope: KeyScope,
  jsonOf: (usage: Awaited<ReturnType<typeof selectUsage>>, page: CallPage) => object,
): Promise<ApiResponse> {
  const filter = readFilter(scope, request.query);
  const before = readCursor(request.query.cursor);
  const limit = list.limitOf(request);
  if (list.isCsvWanted(request)) {
    const { calls, next } = cutPage(await selectCallPage(sql, filter, before, limit + 1), limit);
    return list.csvPage(calls.map(BOUGHT_LIST.json), next);
  }
  const usage = await selectUsage(sql, filter, before, limit + 1);
  return list.jsonPage(jsonOf(usage, cutPage(usage.calls, limit)));
}

function readFilter(scope: KeyScope, query: AccountQuery): UsageFilter {
  const serviceId = query.service_id ?? null;
  if (serviceId !== null && !isUuid(serviceId)) throw new ApiError('invalid_request', 'service_id: must be a UUID.');
  const { outcome = null, tag = null } = query;
  return { ...parseTimeRange(query), scope, serviceId, outcome, tag };
}

function readCursor(cursor: string | undefined): string | null {
  if (cursor === undefined) return null;
  if (isUuid(cursor) && isUsageTime(cursor)) return cursor;
  throw wrongCursor();
}

/** Cuts off the extra row, which was read only to find out whether there is another page. */
function cutPage(found: readonly CallRow[], limit: number): CallPage {
  const calls = found.slice(0, limit);
  return { calls, next: found.length > limit ? (calls.at(-1)?.usage_id ?? null) : null };
}

/** @param labels the labels of both parties' accounts */
export function labelsOfCall({ account_id, provider_id }: CallRow, labels: Labels) {
  return { owner_id: labels.get(account_id) ?? '', provider_owner_id: labels.get(provider_id) ?? '' };
}

/** The part of the call's record that this key may see; null: none. */
async function viewOf(sql: Sql, call: CallRow, by: KeyRecord): Promise<object | null> {
  // A child key sees neither what its account sold nor what the keys beside and above it bought.
  const isChild = by.ancestors.length > 0;
  const audience = isChild ? ((await hasKey(sql, seenBy(by), call.key_id)) ? 'owner' : null) : audienceOf(call, by);
  if (audience === null) return null;
  const shown = { ...call, refunds: call.refunded === null ? null : await selectRefundsOfCall(sql, call.usage_id) };
  if (audience === 'owner') return BOUGHT.json(shown);
  if (audience === 'counterpart') return SOLD.json(shown);
  const labels = await selectLabels(sql, [call.account_id, call.provider_id]);
  return ANY_CALL.json({ ...shown, ...labelsOfCall(call, labels) });
}
