import { selectLabels } from '../../accounts/labels-sql.ts';
import { type WriteListing, writeAsOperator } from '../../accounts/listing-acts.ts';
import { readWithDeadline } from '../../accounts/lists/deadline.ts';
import { chooseLanguage, languageHeaders } from '../../catalog/languages.ts';
import { CATEGORY_PATTERN, type ListingStatus, MAX_CATEGORY_LENGTH } from '../../catalog/listing.ts';
import { VIEWS } from '../../catalog/listing-fields.ts';
import { fullItem } from '../../catalog/present.ts';
import { removeListing, selectListing, selectListingsBy, updateListing } from '../../catalog/sql.ts';
import type { ApiRequest, ApiResponse, FromSchema, JsonSchema, Route } from '../../http/route.ts';
import { ACCEPT_LANGUAGE, LANGUAGE_HEADERS } from '../../openapi/headers.ts';
import { json, list, orNull, record, TEXT } from '../../openapi/schemas.ts';
import { isUuid } from '../../platform/ids.ts';
import { idOf, notFound, SERVICE_PARAM, writerOf } from '../named-service.ts';
import { SERVICE, SERVICE_EXAMPLE, SERVICE_OF_ANYBODY } from '../service-schemas.ts';
import { type ShowDeps, show } from '../shown-service.ts';
import { listQuery, oneOf, readPage, TEXT_FILTER, UUID_FILTER, wrongCursor } from './lists.ts';

const STATUSES = ['active', 'paused', 'removed'] as const;
const QUERY = listQuery({
  status: oneOf(STATUSES, 'Only services with this status'),
  provider_id: { ...UUID_FILTER, description: 'Only services of this account' },
  category: {
    type: 'string',
    maxLength: MAX_CATEGORY_LENGTH,
    pattern: CATEGORY_PATTERN,
    description: 'Only services of this category',
  },
  q: { ...TEXT_FILTER, description: 'A part of the name, in upper or lower case' },
});
type Query = FromSchema<typeof QUERY>;

const PATCH_BODY: JsonSchema = {
  title: 'ServiceStatusChange',
  examples: [{ status: 'paused' }],
  type: 'object',
  additionalProperties: false,
  required: ['status'],
  properties: { status: oneOf(STATUSES, '`removed` is for good') },
};

const SERVICES = record('AllServices', {
  services: list(SERVICE_OF_ANYBODY, 'Newest first, without their operations'),
  next_cursor: orNull(TEXT),
});
const { operations: _, ...LISTED_EXAMPLE } = VIEWS.admin.example;

/** `/admin/services`: listings of all accounts. */
export function adminServicesRoutes(deps: ShowDeps): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/admin/services',
      summary: 'Services of all accounts in any status, newest first, with their endpoints',
      access: ['admin'],
      query: QUERY,
      requestHeaders: ACCEPT_LANGUAGE,
      csvRows: 'services',
      responses: {
        200: json(
          'One page of services',
          SERVICES,
          { services: [LISTED_EXAMPLE], next_cursor: null },
          LANGUAGE_HEADERS,
        ),
      },
      handle: (request: ApiRequest<undefined, Query>) => listServices(deps, request),
    },
    {
      method: 'PATCH',
      path: '/api/v1/admin/services/:id',
      summary: 'Pause any service, make it active again, or remove it for good',
      access: ['admin'],
      body: PATCH_BODY,
      requestHeaders: ACCEPT_LANGUAGE,
      params: SERVICE_PARAM,
      responses: {
        200: json('The service as it is now', SERVICE, SERVICE_EXAMPLE, LANGUAGE_HEADERS),
      },
      errors: ['service_not_found'],
      handle: (request: ApiRequest<{ status: ListingStatus }, unknown>) => setStatus(deps, request),
    },
  ];
}

async function listServices(
  { catalog, sql }: ShowDeps,
  { query, header }: ApiRequest<undefined, Query>,
): Promise<ApiResponse> {
  const { status = null, provider_id: providerId = null, category = null, q: text = null, cursor = null } = query;
  if (cursor !== null && !isUuid(cursor)) throw wrongCursor();
  const filter = { status, providerId, category, text };
  const { entries, next } = await readPage(
    query,
    (limit) => readWithDeadline(sql, async (timed) => selectListingsBy(await timed(), filter, cursor, limit)),
    (listing) => listing.id,
  );
  const language = chooseLanguage(undefined, header('accept-language'));
  const labels = await selectLabels(
    sql,
    entries.map((listing) => listing.providerId),
  );
  return {
    status: 200,
    body: {
      services: entries.map((listing) => {
        const providerLabel = labels.get(listing.providerId) ?? '';
        return fullItem('admin', { listing, ...catalog.besideOf(listing), language, providerLabel });
      }),
      next_cursor: next,
    },
    headers: languageHeaders(language),
  };
}

/** A removed service stays removed: setting `removed` again gets the same answer, and any other status gets 404. */
async function setStatus(
  deps: ShowDeps,
  request: ApiRequest<{ status: ListingStatus }, unknown>,
): Promise<ApiResponse> {
  const { catalog, sql } = deps;
  const id = idOf(request);
  const { status } = request.body;
  const write: WriteListing = (on, scope) =>
    status === 'removed' ? removeListing(on, id, scope) : updateListing(on, id, { status }, scope);
  const written = await writeAsOperator(sql, writerOf(request), id, write, (before) => before.status !== status);
  if (written !== null) catalog.apply(written);
  const listing = written ?? (status === 'removed' ? await selectListing(sql, id) : null);
  if (listing === null) throw notFound();
  return show(deps, listing, request, { status: 200 });
}
