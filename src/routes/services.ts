import { writeListing } from '../accounts/listing-acts.ts';
import { chooseLanguage, languageHeaders } from '../catalog/languages.ts';
import { DEFAULT_TIMEOUT_SECONDS, type Listing, type ListingFields } from '../catalog/listing.ts';
import { refuseBeyondLimit } from '../catalog/listing-limit.ts';
import { fullItem } from '../catalog/present.ts';
import { insertListing, removeListing, selectListing, selectListingsOf } from '../catalog/sql.ts';
import { ApiError, unavailableError } from '../errors.ts';
import type { ApiRequest, ApiResponse, FromSchema, Route } from '../http/route.ts';
import { keyOf } from '../keys/caller.ts';
import { ACCEPT_LANGUAGE, LANGUAGE_HEADERS } from '../openapi/headers.ts';
import { EXAMPLE, json, list, record, TEXT } from '../openapi/schemas.ts';
import { isUuid, uuidv7 } from '../platform/ids.ts';
import { selectFound } from '../watch/watch-sql.ts';
import { idOf, mayManage, notFound, refusal, SERVICE_PARAM, writerOf } from './named-service.ts';
import { readOperations, withinRules } from './operations.ts';
import {
  type ChangeDeps,
  DRY_RUN_QUERY,
  type DryRunQuery,
  patchService,
  putOperations,
  renewSigningSecret,
} from './service-changes.ts';
import {
  CREATE_BODY,
  type CreateBody,
  PATCH_BODY,
  type PatchBody,
  PUT_OPERATIONS_BODY,
  type PutOperationsBody,
  readFields,
  refusePageChoosingEndpoint,
} from './service-fields.ts';
import { LANG, LANG_QUERY, type LangQuery, SERVICE, SERVICE_EXAMPLE } from './service-schemas.ts';
import { changeSecrets } from './service-secrets.ts';
import { NOT_STORED, show, shows } from './shown-service.ts';

type ServicesRoutesDeps = ChangeDeps & {
  /** Maximum listings of an account. */
  readonly maxListings: number;
};

const DEFAULT_LIMIT = 100;
/** Room for the operations with their schemas (`MAX_OPERATIONS_LENGTH` characters, some of several bytes) and the other fields. */
const MAX_LISTING_BODY_BYTES = 1_048_576;

const LIST_QUERY = {
  type: 'object',
  additionalProperties: false,
  properties: {
    mine: { type: 'boolean', description: 'Must be true' },
    limit: { type: 'integer', minimum: 1, maximum: 1000, default: DEFAULT_LIMIT, description: 'Services on a page' },
    cursor: { type: 'string', maxLength: 36, description: 'next_cursor of the previous page' },
    lang: LANG,
  },
} as const;
type ListQuery = FromSchema<typeof LIST_QUERY>;

const OWN_SERVICES = record(
  'OwnServices',
  { services: list(SERVICE, 'Newest first'), next_cursor: { ...TEXT, description: 'Absent on the last page' } },
  { optional: ['next_cursor'] },
);

/**
 * The routes by which providers manage their listings. An admin may do with any listing what its provider may. The gateway that
 * makes a change shows it at once, the other gateways within a second.
 */
export function servicesRoutes(deps: ServicesRoutesDeps): Route[] {
  return [
    {
      method: 'POST',
      path: '/api/v1/services',
      summary:
        'List a service; the listing belongs to the account of the key and is active at once, unless it is a draft',
      access: ['provider'],
      body: CREATE_BODY,
      requestHeaders: ACCEPT_LANGUAGE,
      responses: {
        201: json('The listing', SERVICE, SERVICE_EXAMPLE, {
          Location: {
            description: 'Where the listing is',
            schema: { type: 'string', format: 'uri-reference' },
            example: `/api/v1/services/${EXAMPLE.serviceId}`,
          },
          ...LANGUAGE_HEADERS,
          ...NOT_STORED,
        }),
      },
      errors: ['conflict'],
      maxBodyBytes: MAX_LISTING_BODY_BYTES,
      handle: (request: ApiRequest<CreateBody>) => create(deps, request),
    },
    {
      method: 'GET',
      path: '/api/v1/services',
      summary: "The account's own listings, newest first: active and paused ones, but no removed ones",
      access: ['provider'],
      query: LIST_QUERY,
      requestHeaders: ACCEPT_LANGUAGE,
      responses: {
        200: json('One page of listings', OWN_SERVICES, { services: [SERVICE_EXAMPLE] }, LANGUAGE_HEADERS),
      },
      handle: (request: ApiRequest<undefined, ListQuery>) => listMine(deps, request),
    },
    {
      method: 'GET',
      path: '/api/v1/services/:id',
      summary: 'One listing with its whole description; the endpoint is shown to its provider and admins only',
      access: 'anyone',
      query: LANG_QUERY,
      requestHeaders: ACCEPT_LANGUAGE,
      params: SERVICE_PARAM,
      responses: { 200: shows('The listing') },
      errors: ['service_not_found'],
      handle: (request: ApiRequest<undefined, LangQuery>) => getOne(deps, request),
    },
    {
      method: 'PATCH',
      path: '/api/v1/services/:id',
      summary: 'Change an own listing, pause it, or make it active again',
      access: ['provider'],
      query: DRY_RUN_QUERY,
      body: PATCH_BODY,
      requestHeaders: ACCEPT_LANGUAGE,
      params: SERVICE_PARAM,
      responses: { 200: shows('The listing as it is now, or as it would be', NOT_STORED) },
      errors: ['service_not_found', 'conflict'],
      maxBodyBytes: MAX_LISTING_BODY_BYTES,
      handle: (request: ApiRequest<PatchBody, DryRunQuery>) => patchService(deps, request),
    },
    {
      method: 'PUT',
      path: '/api/v1/services/:id/operations',
      summary: 'Replace all operations of an own listing; PATCH /services/{id} changes single ones',
      access: ['provider'],
      query: DRY_RUN_QUERY,
      body: PUT_OPERATIONS_BODY,
      requestHeaders: ACCEPT_LANGUAGE,
      params: SERVICE_PARAM,
      responses: { 200: shows('The listing as it is now, or as it would be') },
      errors: ['service_not_found', 'conflict'],
      maxBodyBytes: MAX_LISTING_BODY_BYTES,
      handle: (request: ApiRequest<PutOperationsBody, DryRunQuery>) => putOperations(deps, request),
    },
    {
      method: 'POST',
      path: '/api/v1/services/:id/signing-secret',
      summary: 'Make a new signing secret for an own listing whose calls are signed; the old one signs for another day',
      access: ['provider'],
      requestHeaders: ACCEPT_LANGUAGE,
      params: SERVICE_PARAM,
      responses: { 200: shows('The listing, with its new signing_secret', NOT_STORED) },
      errors: ['service_not_found', 'conflict'],
      handle: (request) => renewSigningSecret(deps, request),
    },
    {
      method: 'DELETE',
      path: '/api/v1/services/:id',
      summary: 'Remove an own listing for good; its history stays. A repeated request gets the same answer',
      access: ['provider'],
      requestHeaders: ACCEPT_LANGUAGE,
      params: SERVICE_PARAM,
      responses: { 200: shows('The listing, removed now or before') },
      errors: ['service_not_found'],
      handle: (request) => remove(deps, request),
    },
  ];
}

type Required = 'name' | 'description' | 'endpoint' | 'priceMicros' | 'category';
const DEFAULTS = {
  maxPriceMicros: null,
  freeCalls: 0,
  timeoutSeconds: DEFAULT_TIMEOUT_SECONDS,
  idleSeconds: null,
  onlyOperations: false,
  docsUrl: null,
  healthPath: null,
  forwardHeaders: null,
} as const;

async function create(deps: ServicesRoutesDeps, request: ApiRequest<CreateBody>): Promise<ApiResponse> {
  const { catalog, sql, addresses, maxListings } = deps;
  const { protocol, status, operations = null } = request.body;
  refusePageChoosingEndpoint(request, addresses);
  // The schema guarantees that the required fields are present.
  const fields = readFields(request.body, addresses) as Pick<ListingFields, Required>;
  const { accountId: providerId } = keyOf(request.caller);
  const id = uuidv7();
  const before = { id, endpoint: fields.endpoint, upstreamHeaders: null, upstreamQuery: null, signingKeys: null };
  const secrets = changeSecrets(request.body, before, deps);
  const listed = {
    ...DEFAULTS,
    ...fields,
    ...before,
    ...secrets.fields,
    protocol,
    status,
    operations: readOperations(operations, protocol),
    providerId,
  };
  const written = sql.begin(async (tx) => {
    await refuseBeyondLimit(tx, providerId, maxListings);
    return insertListing(tx, listed);
  });
  const listing = await withinRules(written);
  catalog.apply(listing);
  const headers = { Location: `/api/v1/services/${listing.id}` };
  const shown = await show(deps, listing, request, { status: 201, headers, once: secrets.once });
  deps.watch.check(listing, 'all');
  return shown;
}

async function listMine(
  { catalog, sql }: ServicesRoutesDeps,
  request: ApiRequest<undefined, ListQuery>,
): Promise<ApiResponse> {
  const { mine, limit = DEFAULT_LIMIT, cursor, lang } = request.query;
  if (mine !== true) {
    throw new ApiError('invalid_request', 'mine: must be true. To find services use GET /api/v1/discover.');
  }
  if (cursor !== undefined && !isUuid(cursor)) {
    throw new ApiError('invalid_request', 'cursor: not issued by this list.');
  }
  const language = chooseLanguage(lang, request.header('accept-language'));
  // One additional listing tells whether there is another page.
  const found = await selectListingsOf(sql, keyOf(request.caller).accountId, cursor ?? null, limit + 1);
  const page = found.slice(0, limit);
  const last = found.length > limit ? page.at(-1) : undefined;
  const endpoints = await selectFound(
    sql,
    page.map(({ id }) => id),
  );
  return {
    status: 200,
    body: {
      services: page.map((listing) => {
        const found = endpoints.get(listing.id);
        return fullItem('owner', { listing, ...catalog.besideOf(listing), language, found });
      }),
      ...(last === undefined ? {} : { next_cursor: last.id }),
    },
    headers: languageHeaders(language),
  };
}

async function getOne(deps: ServicesRoutesDeps, request: ApiRequest<undefined, LangQuery>): Promise<ApiResponse> {
  const { catalog, sql } = deps;
  const id = idOf(request);
  let listing: Listing | null | undefined = catalog.get(id);
  if (listing === undefined) {
    if (!catalog.ready()) throw unavailableError();
    // Only the listing's provider and admins may see a removed or suspended listing. So Postgres is asked only for provider and
    // admin keys: others who guess ids cost it nothing.
    const { caller } = request;
    if (caller.kind === 'key' && caller.key.role !== 'buyer') listing = await selectListing(sql, id);
  }
  if (listing == null || (isGone(listing) && !mayManage(request.caller, listing))) throw notFound();
  return show(deps, listing, request, { status: 200, lang: request.query.lang });
}

const isGone = ({ status, isSuspended }: Listing): boolean => status === 'removed' || isSuspended;

async function remove(deps: ServicesRoutesDeps, request: ApiRequest): Promise<ApiResponse> {
  const { catalog, sql } = deps;
  const id = idOf(request);
  const removed = await writeListing(sql, writerOf(request), id, (on, scope) => removeListing(on, id, scope));
  if (removed !== null) {
    catalog.apply(removed);
    return show(deps, removed, request, { status: 200 });
  }
  const before = await selectListing(sql, id);
  if (before === null || !mayManage(request.caller, before)) throw await refusal(sql, id);
  return show(deps, before, request, { status: 200 });
}
