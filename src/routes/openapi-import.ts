import { storedPairs } from '../catalog/listing-secrets.ts';
import { DocumentFault } from '../catalog/openapi-import/document-fault.ts';
import { ImporterBusy, MAX_DOCUMENT_BYTES, type OpenApiImporter } from '../catalog/openapi-import/importer.ts';
import { type Imported, type ListingContext, pricesIn, type StoredPrice } from '../catalog/openapi-import/mapping.ts';
import type { Operation } from '../catalog/operations/operation.ts';
import { selectLatestOperations } from '../catalog/sql.ts';
import { ApiError, unavailableError } from '../errors.ts';
import type { ApiRequest, ApiResponse, FromSchema, JsonSchema, Route } from '../http/route.ts';
import { ACCEPT_LANGUAGE, LANGUAGE_HEADERS } from '../openapi/headers.ts';
import { COUNT, EXAMPLE, json, list, record, TEXT, UUID } from '../openapi/schemas.ts';
import { readOperations } from './operations.ts';
import { DRY_RUN_QUERY, ownListing, writePatch } from './service-changes.ts';
import { SERVICE, SERVICE_EXAMPLE } from './service-schemas.ts';
import type { ShowDeps } from './shown-service.ts';

type OpenApiImportDeps = ShowDeps & { readonly importer: OpenApiImporter };

const IMPORTED = record('ImportedOperations', {
  operations: { ...COUNT, description: 'How many were imported' },
  tags: list(
    record('OperationTag', { tag: TEXT, operations: COUNT }),
    'Tags of the document, which `tag` takes, and how many of its operations have them; at most 200',
  ),
  skipped: list(
    record('SkippedOperation', { method: TEXT, path: TEXT, reason: TEXT }),
    'The first of those that were not imported; `*` as the method means the whole path',
  ),
  skipped_total: COUNT,
  changed: list(
    record('ChangedOperation', { method: TEXT, path: TEXT, note: TEXT }),
    'Those that differ from the document',
  ),
  service: SERVICE,
});
const IMPORTED_EXAMPLE = {
  operations: 1,
  tags: [{ tag: 'texts', operations: 2 }],
  skipped: [{ method: 'TRACE', path: '/translate', reason: 'the gateway does not forward this method' }],
  skipped_total: 1,
  changed: [],
  service: SERVICE_EXAMPLE,
};

const BODY: JsonSchema = {
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
  description: [
    'An OpenAPI 3.0 or 3.1 document as JSON or YAML 1.2, with at most 100 aliases.',
    'Paths become relative to the endpoint, behind the path of the server at its origin, or else of the first. What lies outside of the endpoint is skipped; but a server without a path, at another origin or relative, whose paths all lie outside, is taken to be the endpoint. `{user-id}` becomes `{user_id}`; braces within a segment, and segments `*`, are skipped.',
    'Of the methods those that calls may have but HEAD; the first 200 operations. No webhooks, no callbacks.',
    '`summary` is the summary, or else the first sentence of the description, `operationId`, method and path. `input` is made of parameters and body, without cookies and headers that are not passed on; of several media types JSON, or the first. It describes `security`, unless the listing adds it. `output` is the first 2xx with content. A `discriminator` becomes a `const` in each branch. A schema that contains itself is cut where it repeats; without room, outputs and examples go before inputs.',
    '`x-price` of an operation is its price in USD, and `x-max-price` the most that its service may report; without them prices stay.',
  ].join('\n\n'),
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
    ...DRY_RUN_QUERY.properties,
    only_operations: {
      type: 'boolean',
      description: 'Sets this field of the listing together with its operations; absent: it is not changed',
    },
    tag: {
      type: 'string',
      minLength: 1,
      maxLength: 500,
      description: 'Only operations with this tag, or with one of several joined by commas, are imported',
    },
  },
} as const;
type Query = FromSchema<typeof QUERY>;

/** `PUT /services/{id}/openapi`: replaces the operations of a listing by those of a document, or tells what would happen to them. */
export function openApiImportRoutes(deps: OpenApiImportDeps): Route[] {
  return [
    {
      method: 'PUT',
      path: '/api/v1/services/:id/openapi',
      summary: 'Replace the operations of an own listing by those of an OpenAPI document',
      access: ['provider'],
      query: QUERY,
      body: BODY,
      rawBody: ['application/json', 'application/yaml'],
      maxBodyBytes: MAX_DOCUMENT_BYTES,
      requestHeaders: ACCEPT_LANGUAGE,
      params: { id: { description: 'The service', schema: UUID, example: EXAMPLE.serviceId } },
      responses: {
        200: json(
          'What was imported, and the listing as it is now, or as it would be',
          IMPORTED,
          IMPORTED_EXAMPLE,
          LANGUAGE_HEADERS,
        ),
      },
      errors: ['service_not_found', 'conflict'],
      handle: (request: ApiRequest<Uint8Array, Query>) => importDocument(deps, request),
    },
  ];
}

async function importDocument(deps: OpenApiImportDeps, request: ApiRequest<Uint8Array, Query>): Promise<ApiResponse> {
  const { sql, importer } = deps;
  const before = await ownListing(sql, request);
  if (before.protocol !== 'http') throw new ApiError('invalid_request', NO_TOOLS);
  const prices = pricesOf(await selectLatestOperations(sql, before.id));
  const { only_operations: onlyOperations, tag = null } = request.query;
  const addedHeaders = storedPairs(before.upstreamHeaders).map(([name]) => name);
  const addedParameters = storedPairs(before.upstreamQuery).map(([name]) => name);
  const context = { endpoint: before.endpoint, addedHeaders, addedParameters, prices, tag };
  const imported = await read(importer, request.body, context);
  if (imported.operations.length === 0) throw nothingToTake(imported);
  const operations = readOperations(imported.operations, before.protocol);
  const patch = { operations, ...(onlyOperations === undefined ? {} : { onlyOperations }) };
  // The prices and the endpoint with which the import began must still be those of the listing.
  const shown = await writePatch(deps, request, before, { patch, version: before.updatedAtMicros });
  if (shown === null) {
    await ownListing(sql, request);
    throw new ApiError('conflict', 'The listing was changed while the document was read. Send the document again.');
  }
  const { headers = {}, body: service } = shown;
  const { tags, skipped, skippedTotal, changed } = imported;
  const body = { operations: imported.operations.length, tags, skipped, skipped_total: skippedTotal, changed, service };
  return { status: 200, body, headers };
}

const NO_TOOLS = 'protocol: the operations of an MCP listing are tools, which OpenAPI does not describe.';

function pricesOf(operations: readonly Operation[]): StoredPrice[] {
  return operations.flatMap((operation) => {
    if (!('method' in operation)) return [];
    const { method, path, ...rest } = operation;
    const prices = pricesIn(rest);
    return Object.keys(prices).length === 0 ? [] : [{ method, path, ...prices }];
  });
}

async function read(importer: OpenApiImporter, bytes: Uint8Array, listing: ListingContext): Promise<Imported> {
  try {
    return await importer.import(bytes, listing);
  } catch (error) {
    if (error instanceof DocumentFault) {
      throw new ApiError(error.isJson ? 'invalid_request' : 'invalid_json', error.message);
    }
    if (error instanceof ImporterBusy)
      throw unavailableError(error, 'Another OpenAPI document is being read. Please retry.');
    throw error;
  }
}

/** An import never leaves a listing without operations: with `only_operations` all of its calls would be refused. */
function nothingToTake({ skipped, skippedTotal }: Imported): ApiError {
  const [first] = skipped;
  const why =
    first === undefined
      ? 'The document has no operations.'
      : `None of the document's ${skippedTotal} operations can be imported. The first is ${first.method} ${first.path}: ${first.reason}.`;
  return new ApiError('invalid_request', `paths: ${why} The listing is unchanged.`);
}
