import { tryListing, writeListing } from '../accounts/listing-acts.js';
import { DocumentFault } from '../catalog/openapi-import/document-fault.js';
import { ImporterBusy, MAX_DOCUMENT_BYTES } from '../catalog/openapi-import/importer.js';
import { selectLatestOperations, selectListing, selectOperationsText, updateListing } from '../catalog/sql.js';
import { ApiError, unavailableError } from '../errors.js';
import { ACCEPT_LANGUAGE, LANGUAGE_HEADERS } from '../openapi/headers.js';
import { COUNT, EXAMPLE, json, list, record, TEXT, UUID } from '../openapi/schemas.js';
import { idOf, mayManage, refusal, writerOf } from './named-service.js';
import { readOperations, withinRules } from './operations.js';
import { SERVICE, SERVICE_EXAMPLE } from './service-schemas.js';
import { show } from './services.js';
const IMPORTED = record('ImportedOperations', {
    operations: { ...COUNT, description: 'How many were taken over' },
    skipped: list(record('SkippedOperation', { method: TEXT, path: TEXT, reason: TEXT }), 'The first of those that were not taken over; `*` as the method means the whole path'),
    skipped_total: COUNT,
    changed: list(record('ChangedOperation', { method: TEXT, path: TEXT, note: TEXT }), 'Those that differ from the document'),
    service: SERVICE,
});
const IMPORTED_EXAMPLE = {
    operations: 1,
    skipped: [{ method: 'TRACE', path: '/translate', reason: 'the gateway does not forward this method' }],
    skipped_total: 1,
    changed: [],
    service: SERVICE_EXAMPLE,
};
const BODY = {
    title: 'ProviderOpenApiDocument',
    examples: [
        {
            openapi: '3.1.0',
            info: { title: 'Translate', version: '1' },
            paths: { '/translate': { post: { summary: 'Translates a text', 'x-price': 0.002 } } },
        },
    ],
    type: 'object',
    required: ['openapi', 'info'],
    description: 'An OpenAPI 3.0 or 3.1 document as JSON; `x-price` of an operation is its price in USD',
    properties: {
        openapi: { type: 'string', pattern: '^3\\.[01]\\.' },
        info: { type: 'object' },
        paths: { type: 'object' },
    },
};
const QUERY = {
    type: 'object',
    additionalProperties: false,
    properties: {
        dry_run: { type: 'boolean', default: false, description: 'true: answers the same, and changes nothing' },
    },
};
/** `PUT /services/{id}/openapi`: replaces the operations of a listing by those of a document, or tells what would become of them. */
export function openApiImportRoutes(deps) {
    return [
        {
            method: 'PUT',
            path: '/api/v1/services/:id/openapi',
            summary: 'Make the operations of an own listing from an OpenAPI document, in place of those it has',
            access: ['provider'],
            query: QUERY,
            body: BODY,
            rawBody: true,
            maxBodyBytes: MAX_DOCUMENT_BYTES,
            requestHeaders: ACCEPT_LANGUAGE,
            params: { id: { description: 'The service', schema: UUID, example: EXAMPLE.serviceId } },
            responses: {
                200: json('What was taken over, and the listing as it is now, or as it would be', IMPORTED, IMPORTED_EXAMPLE, LANGUAGE_HEADERS),
            },
            errors: ['service_not_found', 'conflict'],
            handle: (request) => importDocument(deps, request),
        },
    ];
}
async function importDocument(deps, request) {
    const { sql, importer, noticeSeconds } = deps;
    const before = await listingOf(sql, request);
    const prices = pricesOf(await selectLatestOperations(sql, before.id));
    const imported = await read(importer, request.body, { endpoint: before.endpoint, prices });
    if (imported.operations.length === 0)
        throw nothingToTake(imported);
    const operations = readOperations(imported.operations, before.protocol);
    // The prices and the endpoint that the import began with must still be those of the listing.
    const based = { version: before.updatedAtMicros, noticeSeconds };
    const write = (on, scope) => updateListing(on, before.id, { operations }, scope, based);
    const shown = await (request.query.dry_run ? dryRun : store)(deps, request, before.id, write);
    if (shown === null) {
        await listingOf(sql, request);
        throw new ApiError('conflict', 'The listing was changed while the document was read. Send the document again.');
    }
    const { headers = {}, body: service } = shown;
    const { skipped, skippedTotal, changed } = imported;
    const body = { operations: imported.operations.length, skipped, skipped_total: skippedTotal, changed, service };
    return { status: 200, body, headers };
}
/** The listing as it is after the change; null if somebody else changed it meanwhile. */
const store = async (deps, request, id, write) => {
    const written = await withinRules(writeListing(deps.sql, writerOf(request), id, write));
    if (written === null)
        return null;
    deps.catalog.apply(written);
    return show(deps, written, request, { status: 200 });
};
/** The listing as it would be. */
const dryRun = async (deps, request, id, write) => {
    const tried = tryListing(deps.sql, writerOf(request), write, async (tx, listing) => ({
        listing,
        operations: JSON.parse(await selectOperationsText(tx, id)),
        latest: await selectLatestOperations(tx, id),
    }));
    const found = await withinRules(tried);
    if (found === null)
        return null;
    // The reader would keep them beside the version of a row that nobody else ever sees.
    const operations = { read: async () => found.operations };
    return show({ ...deps, operations }, found.listing, request, { status: 200, latest: found.latest });
};
/** The listing as Postgres has it now: another gateway may have changed it a moment ago. */
async function listingOf(sql, request) {
    const id = idOf(request);
    const listing = await selectListing(sql, id);
    if (listing === null || listing.status === 'removed' || !mayManage(request.caller, listing))
        throw await refusal(sql, id);
    if (listing.protocol === 'http')
        return listing;
    throw new ApiError('invalid_request', 'protocol: the operations of an MCP listing are tools, which OpenAPI does not describe.');
}
function pricesOf(operations) {
    return operations.flatMap((operation) => 'method' in operation && operation.price !== undefined
        ? [{ method: operation.method, path: operation.path, price: operation.price }]
        : []);
}
async function read(importer, bytes, listing) {
    try {
        return await importer.import(bytes, listing);
    }
    catch (error) {
        if (error instanceof DocumentFault) {
            throw new ApiError(error.isJson ? 'invalid_request' : 'invalid_json', error.message);
        }
        if (error instanceof ImporterBusy)
            throw unavailableError(error, 'Another OpenAPI document is being read. Please retry.');
        throw error;
    }
}
/** An import never leaves a listing without operations: with `only_operations` all of its calls would be refused. */
function nothingToTake({ skipped, skippedTotal }) {
    const [first] = skipped;
    const why = first === undefined
        ? 'The document has no operations.'
        : `None of the document's ${skippedTotal} operations can be taken over. The first is ${first.method} ${first.path}: ${first.reason}.`;
    return new ApiError('invalid_request', `paths: ${why} The listing is unchanged.`);
}
//# sourceMappingURL=openapi-import.js.map