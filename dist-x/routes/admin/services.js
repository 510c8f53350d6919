import { selectLabels } from '../../accounts/labels-sql.js';
import { writeAsOperator } from '../../accounts/listing-acts.js';
import { readWithDeadline } from '../../accounts/lists/deadline.js';
import { chooseLanguage, languageHeaders } from '../../catalog/languages.js';
import { CATEGORY_PATTERN, MAX_CATEGORY_LENGTH } from '../../catalog/listing.js';
import { VIEWS } from '../../catalog/listing-fields.js';
import { fullItem } from '../../catalog/present.js';
import { removeListing, selectListing, selectListingsBy, updateListing } from '../../catalog/sql.js';
import { ACCEPT_LANGUAGE, LANGUAGE_HEADERS } from '../../openapi/headers.js';
import { json, list, orNull, record, TEXT } from '../../openapi/schemas.js';
import { isUuid } from '../../platform/ids.js';
import { idOf, notFound, SERVICE_PARAM, writerOf } from '../named-service.js';
import { SERVICE, SERVICE_EXAMPLE, SERVICE_OF_ANYBODY } from '../service-schemas.js';
import { show } from '../services.js';
import { listQuery, oneOf, readPage, TEXT_FILTER, UUID_FILTER, wrongCursor } from './lists.js';
const STATUSES = ['active', 'paused', 'removed'];
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
const PATCH_BODY = {
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
export function adminServicesRoutes(deps) {
    return [
        {
            method: 'GET',
            path: '/api/v1/admin/services',
            summary: 'Services of all accounts in any status, newest first, with their endpoints',
            access: ['admin'],
            query: QUERY,
            requestHeaders: ACCEPT_LANGUAGE,
            responses: {
                200: json('One page of services', SERVICES, { services: [LISTED_EXAMPLE], next_cursor: null }, LANGUAGE_HEADERS),
            },
            handle: (request) => listServices(deps, request),
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
            handle: (request) => setStatus(deps, request),
        },
    ];
}
async function listServices({ catalog, sql }, { query, header }) {
    const { status = null, provider_id: providerId = null, category = null, q: text = null, cursor = null } = query;
    if (cursor !== null && !isUuid(cursor))
        throw wrongCursor();
    const filter = { status, providerId, category, text };
    const { entries, next } = await readPage(query, (limit) => readWithDeadline(sql, async (timed) => selectListingsBy(await timed(), filter, cursor, limit)), (listing) => listing.id);
    const language = chooseLanguage(undefined, header('accept-language'));
    const labels = await selectLabels(sql, entries.map((listing) => listing.providerId));
    return {
        status: 200,
        body: {
            services: entries.map((listing) => {
                const providerLabel = labels.get(listing.providerId) ?? '';
                return fullItem('admin', { listing, quality: catalog.qualityOf(listing.id), language, providerLabel });
            }),
            next_cursor: next,
        },
        headers: languageHeaders(language),
    };
}
/** A removed service stays removed: setting it `removed` again gets the same answer, and any other status is 404. */
async function setStatus(deps, request) {
    const { catalog, sql } = deps;
    const id = idOf(request);
    const { status } = request.body;
    const write = (on, scope) => status === 'removed' ? removeListing(on, id, scope) : updateListing(on, id, { status }, scope);
    const written = await writeAsOperator(sql, writerOf(request), id, write, (before) => before.status !== status);
    if (written !== null)
        catalog.apply(written);
    const listing = written ?? (status === 'removed' ? await selectListing(sql, id) : null);
    if (listing === null)
        throw notFound();
    return show(deps, listing, request, { status: 200 });
}
//# sourceMappingURL=services.js.map