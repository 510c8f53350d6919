import { writeListing } from '../accounts/listing-acts.js';
import { chooseLanguage, languageHeaders } from '../catalog/languages.js';
import { DEFAULT_TIMEOUT_SECONDS } from '../catalog/listing.js';
import { refuseBeyondLimit } from '../catalog/listing-limit.js';
import { fullItem } from '../catalog/present.js';
import { insertListing, removeListing, selectLatestOperations, selectListing, selectListingsOf, updateListing, } from '../catalog/sql.js';
import { ApiError, unavailableError } from '../errors.js';
import { keyOf } from '../keys/caller.js';
import { ACCEPT_LANGUAGE, CACHE_CONTROL, LANGUAGE_HEADERS } from '../openapi/headers.js';
import { EXAMPLE, json, list, record, TEXT } from '../openapi/schemas.js';
import { isUuid, uuidv7 } from '../platform/ids.js';
import { selectFound } from '../watch/watch-sql.js';
import { idOf, mayManage, notFound, refusal, SERVICE_PARAM, writerOf } from './named-service.js';
import { readOperations, withinRules } from './operations.js';
import { CREATE_BODY, PATCH_BODY, readFields, refusePageChoosingEndpoint, } from './service-fields.js';
import { LANG, LANG_QUERY, SERVICE, SERVICE_EXAMPLE } from './service-schemas.js';
import { changeSecrets, newSigningSecret, touchesSecrets } from './service-secrets.js';
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
};
const OWN_SERVICES = record('OwnServices', { services: list(SERVICE, 'Newest first'), next_cursor: { ...TEXT, description: 'Absent on the last page' } }, { optional: ['next_cursor'] });
const shows = (description, headers = {}) => json(description, SERVICE, SERVICE_EXAMPLE, { ...LANGUAGE_HEADERS, ...headers });
/** No cache between gateway and caller may store a response that contains the only copy of a secret. */
const NO_STORE = { 'Cache-Control': 'no-store' };
const NOT_STORED = { 'Cache-Control': { ...CACHE_CONTROL('no-store'), optional: true } };
/**
 * The routes by which providers manage their listings. An admin may do to any listing what its provider may. The gateway that
 * makes a change shows it at once, the other gateways within a second.
 */
export function servicesRoutes(deps) {
    return [
        {
            method: 'POST',
            path: '/api/v1/services',
            summary: 'List a service; the listing belongs to the account of the key and is active at once',
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
            handle: (request) => create(deps, request),
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
            handle: (request) => listMine(deps, request),
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
            handle: (request) => getOne(deps, request),
        },
        {
            method: 'PATCH',
            path: '/api/v1/services/:id',
            summary: 'Change an own listing, pause it, or make it active again',
            access: ['provider'],
            body: PATCH_BODY,
            requestHeaders: ACCEPT_LANGUAGE,
            params: SERVICE_PARAM,
            responses: { 200: shows('The listing as it is now', NOT_STORED) },
            errors: ['service_not_found', 'conflict'],
            maxBodyBytes: MAX_LISTING_BODY_BYTES,
            handle: (request) => patch(deps, request),
        },
        {
            method: 'POST',
            path: '/api/v1/services/:id/signing-secret',
            summary: 'Make a new signing secret for an own listing whose calls are signed; the old one signs for a day more',
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
const DEFAULTS = {
    freeCalls: 0,
    timeoutSeconds: DEFAULT_TIMEOUT_SECONDS,
    idleSeconds: null,
    onlyOperations: false,
    docsUrl: null,
    healthPath: null,
    forwardHeaders: null,
};
async function create(deps, request) {
    const { catalog, sql, addresses, maxListings } = deps;
    const { protocol, operations = null } = request.body;
    refusePageChoosingEndpoint(request, addresses);
    // The schema guarantees that the required fields are present.
    const fields = readFields(request.body, addresses);
    const { accountId: providerId } = keyOf(request.caller);
    const id = uuidv7();
    const before = { id, endpoint: fields.endpoint, upstreamHeaders: null, signingKeys: null };
    const secrets = changeSecrets(request.body, before, deps);
    const listed = {
        ...DEFAULTS,
        ...fields,
        ...before,
        ...secrets.fields,
        protocol,
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
    deps.watch.check(listing);
    return shown;
}
async function listMine({ catalog, sql, watch }, request) {
    const { mine, limit = DEFAULT_LIMIT, cursor, lang } = request.query;
    if (mine !== true) {
        throw new ApiError('invalid_request', 'mine: must be true. To find services use GET /api/v1/discover.');
    }
    if (cursor !== undefined && !isUuid(cursor)) {
        throw new ApiError('invalid_request', 'cursor: not issued by this list.');
    }
    const language = chooseLanguage(lang, request.header('accept-language'));
    // One listing more than asked for tells whether there is another page.
    const found = await selectListingsOf(sql, keyOf(request.caller).accountId, cursor ?? null, limit + 1);
    const page = found.slice(0, limit);
    const last = found.length > limit ? page.at(-1) : undefined;
    const endpoints = await selectFound(sql, page.map(({ id }) => id));
    return {
        status: 200,
        body: {
            services: page.map((listing) => {
                const [uptime, found] = [watch.uptimeOf(listing.id), endpoints.get(listing.id)];
                return fullItem('owner', { listing, quality: catalog.qualityOf(listing.id), language, uptime, found });
            }),
            ...(last === undefined ? {} : { next_cursor: last.id }),
        },
        headers: languageHeaders(language),
    };
}
async function getOne(deps, request) {
    const { catalog, sql } = deps;
    const id = idOf(request);
    let listing = catalog.get(id);
    if (listing === undefined) {
        if (!catalog.ready())
            throw unavailableError();
        // Only the listing's provider and admins may see a removed or suspended listing. So Postgres is asked only for provider and
        // admin keys: anybody else who guesses ids costs it nothing.
        const { caller } = request;
        if (caller.kind === 'key' && caller.key.role !== 'buyer')
            listing = await selectListing(sql, id);
    }
    if (listing == null || (isGone(listing) && !mayManage(request.caller, listing)))
        throw notFound();
    return show(deps, listing, request, { status: 200, lang: request.query.lang });
}
const isGone = ({ status, isSuspended }) => status === 'removed' || isSuspended;
async function patch(deps, request) {
    const { catalog, sql, addresses, noticeSeconds } = deps;
    refusePageChoosingEndpoint(request, addresses);
    const id = idOf(request);
    const { status } = request.body;
    const operations = await changedOperations(deps, request, id);
    const changes = {
        ...readFields(request.body, addresses),
        ...(operations === undefined ? {} : { operations }),
        ...(status === undefined ? {} : { status }),
    };
    if (touchesSecrets(request.body)) {
        return changeKnown(deps, request, id, changes, (before) => changeSecrets(request.body, before, deps));
    }
    const write = (on, scope) => updateListing(on, id, changes, scope, { noticeSeconds });
    const listing = await withinRules(writeListing(sql, writerOf(request), id, write));
    if (listing === null)
        throw await refusal(sql, id);
    catalog.apply(listing);
    return show(deps, listing, request, { status: 200 });
}
async function renewSigningSecret(deps, request) {
    return changeKnown(deps, request, idOf(request), {}, (before) => {
        if (before.signingKeys === null)
            throw new ApiError('conflict', 'Calls of this service are not signed. Change it to signed: true first.');
        if (!deps.secrets.canSeal)
            throw unavailableError(undefined, 'This gateway has lost its SECRETS_KEY.', 60);
        return newSigningSecret(before, deps.secrets);
    });
}
/** Readings of a listing that others may change at the same time; then the request is refused. */
const MAX_READINGS = 5;
/** Makes a change that depends on what the listing is now: it is written only if nobody has changed the listing since it was read. */
async function changeKnown(deps, request, id, changes, change) {
    const { catalog, sql, noticeSeconds } = deps;
    for (let reading = 0; reading < MAX_READINGS; reading++) {
        const before = await selectListing(sql, id);
        if (before === null || before.status === 'removed' || !mayManage(request.caller, before))
            throw await refusal(sql, id);
        const { fields, once } = change(before);
        const based = { version: before.updatedAtMicros, noticeSeconds };
        const write = (on, scope) => updateListing(on, id, { ...changes, ...fields }, scope, based);
        const listing = await withinRules(writeListing(sql, writerOf(request), id, write));
        if (listing === null)
            continue;
        catalog.apply(listing);
        const shown = await show(deps, listing, request, { status: 200, once });
        if (changes.endpoint !== undefined)
            deps.watch.check(listing);
        return shown;
    }
    throw new ApiError('conflict', 'Other requests keep changing this listing. Nothing was changed; send this one again.');
}
/** The operations in the body, or undefined if they do not change. The listing's protocol, which never changes, decides their form. */
async function changedOperations({ catalog, sql }, { body, caller }, id) {
    if (body.operations === undefined)
        return undefined;
    const listing = catalog.get(id) ?? (await selectListing(sql, id));
    if (listing === null || !mayManage(caller, listing))
        throw await refusal(sql, id);
    return readOperations(body.operations, listing.protocol);
}
async function remove(deps, request) {
    const { catalog, sql } = deps;
    const id = idOf(request);
    const removed = await writeListing(sql, writerOf(request), id, (on, scope) => removeListing(on, id, scope));
    if (removed !== null) {
        catalog.apply(removed);
        return show(deps, removed, request, { status: 200 });
    }
    const before = await selectListing(sql, id);
    if (before === null || !mayManage(request.caller, before))
        throw await refusal(sql, id);
    return show(deps, before, request, { status: 200 });
}
export async function show({ catalog, operations, sql, watch, noticeSeconds }, listing, request, { status, lang, headers, once = {}, latest }) {
    const language = chooseLanguage(lang, request.header('accept-language'));
    const withEndpoint = mayManage(request.caller, listing);
    const found = withEndpoint ? (await selectFound(sql, [listing.id])).get(listing.id) : undefined;
    const body = fullItem(withEndpoint ? 'owner' : 'anyone', {
        listing,
        quality: catalog.qualityOf(listing.id),
        language,
        uptime: watch.uptimeOf(listing.id),
        found,
        noticeSeconds,
        once,
        operations: await operations.read(listing),
        ...(withEndpoint && hasAnnouncedOperations(listing)
            ? { announced: latest ?? (await selectLatestOperations(sql, listing.id)) }
            : {}),
    });
    const caching = 'signing_secret' in once ? NO_STORE : {};
    return { status, body, headers: { ...headers, ...languageHeaders(language), ...caching } };
}
/** What is announced are only prices; who edits operations needs the whole of them. */
const hasAnnouncedOperations = ({ next, operationTerms }) => next !== null && next.operationTerms !== operationTerms;
//# sourceMappingURL=services.js.map