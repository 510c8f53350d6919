import { docsUrlFault, healthPathFault, MAX_HEALTH_PATH_LENGTH } from '../catalog/links.ts';
import {
  CATEGORY_PATTERN,
  DEFAULT_TIMEOUT_SECONDS,
  descriptionFault,
  endpointFault,
  type ListingFields,
  MAX_CATEGORY_LENGTH,
  MAX_DESCRIPTION_LENGTH,
  MAX_ENDPOINT_LENGTH,
  MAX_FREE_CALLS,
  MAX_IDLE_SECONDS,
  nameFault,
} from '../catalog/listing.ts';
import { MAX_PRICE_USD, parsePrice } from '../catalog/price.ts';
import { ApiError } from '../errors.ts';
import { refuseForeignPage } from '../http/own-origin.ts';
import type { ApiRequest, FromSchema } from '../http/route.ts';
import { type AddressPolicy, isForbiddenLiteral } from '../upstream/index.ts';
import { OPERATION_CHANGES, OPERATIONS } from './operations.ts';
import { forwardHeadersOf, SECRET_FIELDS } from './service-secrets.ts';

const FIELDS = {
  name: { type: 'string', minLength: 1, maxLength: 100, description: 'Spaces around it are removed' },
  description: { type: 'string', maxLength: MAX_DESCRIPTION_LENGTH, description: 'What the service does' },
  endpoint: { type: 'string', minLength: 1, maxLength: MAX_ENDPOINT_LENGTH, description: 'http or https URL' },
  price: { type: 'number', minimum: 0, maximum: MAX_PRICE_USD, description: 'USD per call, at most 6 decimals' },
  category: {
    type: 'string',
    maxLength: MAX_CATEGORY_LENGTH,
    pattern: CATEGORY_PATTERN,
    description: 'Lower-case words joined by hyphens',
  },
  timeout_seconds: {
    type: 'integer',
    minimum: 1,
    maximum: 300,
    description: `How long a call may wait for the response head; ${DEFAULT_TIMEOUT_SECONDS} if absent`,
  },
  only_operations: { type: 'boolean', description: 'Refuse calls that match no operation' },
  ...SECRET_FIELDS,
} as const;
const IDLE_SECONDS = {
  type: 'integer',
  minimum: 1,
  maximum: MAX_IDLE_SECONDS,
  description: 'The longest silence within a response',
} as const;
const DOCS_URL = {
  type: 'string',
  minLength: 1,
  maxLength: MAX_ENDPOINT_LENGTH,
  description: 'http or https URL of a page about the service, for people',
} as const;
const HEALTH_PATH = {
  type: 'string',
  minLength: 1,
  maxLength: MAX_HEALTH_PATH_LENGTH,
  description:
    'Path below the endpoint that the gateway requests every minute; 2xx and 3xx mean that the service is up',
} as const;
const MAX_PRICE = {
  type: 'number',
  minimum: 0,
  maximum: MAX_PRICE_USD,
  description: 'USD: the service reports what a call cost, up to this amount; at least the price',
} as const;
const FREE_CALLS = { type: 'integer', minimum: 1, maximum: MAX_FREE_CALLS, description: 'Per buyer' } as const;

/** The body of POST /services. */
export const CREATE_BODY = {
  title: 'NewService',
  examples: [
    {
      name: 'Translate',
      description: 'Translates text into 30 languages.',
      category: 'language',
      endpoint: 'https://translate.example.com/v1',
      price: 0.002,
      free_calls: 100,
    },
  ],
  type: 'object',
  additionalProperties: false,
  required: ['name', 'description', 'endpoint', 'price', 'category'],
  properties: {
    ...FIELDS,
    operations: { ...OPERATIONS, type: ['array', 'null'] },
    max_price: MAX_PRICE,
    free_calls: FREE_CALLS,
    idle_seconds: IDLE_SECONDS,
    docs_url: DOCS_URL,
    health_path: HEALTH_PATH,
    protocol: { type: 'string', enum: ['http', 'mcp'], default: 'http', description: 'It cannot be changed later' },
    status: {
      type: 'string',
      enum: ['active', 'paused'],
      default: 'active',
      description: 'paused: a draft, which no search shows and which serves only its provider until it is made active',
    },
  },
} as const;
export type CreateBody = FromSchema<typeof CREATE_BODY>;

/** The body of PATCH /services/{id}. */
export const PATCH_BODY = {
  title: 'ServiceChange',
  examples: [{ price: 0.003, status: 'active' }],
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: {
    ...FIELDS,
    operations: OPERATION_CHANGES,
    max_price: {
      ...MAX_PRICE,
      type: ['number', 'null'],
      description: `${MAX_PRICE.description}; null: calls cost the price`,
    },
    free_calls: { ...FREE_CALLS, type: ['integer', 'null'], description: 'Per buyer; null ends the free calls' },
    idle_seconds: { ...IDLE_SECONDS, type: ['integer', 'null'], description: 'null: as long as the gateway allows' },
    docs_url: { ...DOCS_URL, type: ['string', 'null'], description: 'null: no page' },
    health_path: { ...HEALTH_PATH, type: ['string', 'null'], description: 'null: it is not asked' },
    status: { type: 'string', enum: ['active', 'paused'] },
  },
} as const;
export type PatchBody = FromSchema<typeof PATCH_BODY>;

/** The body of PUT /services/{id}/operations. */
export const PUT_OPERATIONS_BODY = {
  title: 'ServiceOperations',
  examples: [{ operations: [{ method: 'GET', path: '/forecast', summary: 'The forecast of a place', price: 0.001 }] }],
  type: 'object',
  additionalProperties: false,
  required: ['operations'],
  properties: {
    operations: OPERATIONS,
    only_operations: { ...FIELDS.only_operations, description: 'As in PATCH; absent: it is not changed' },
  },
} as const;
export type PutOperationsBody = FromSchema<typeof PUT_OPERATIONS_BODY>;

/** Reads the fields in the body, with the checks that a schema cannot express. Throws `invalid_request` naming the field. */
export function readFields(body: Omit<PatchBody, 'operations'>, addresses: AddressPolicy): Partial<ListingFields> {
  const { name, description, endpoint, price, max_price, free_calls, category, timeout_seconds, idle_seconds } = body;
  return {
    ...(name === undefined ? {} : { name: checked('name', name.trim(), nameFault) }),
    ...(description === undefined ? {} : { description: checked('description', description, descriptionFault) }),
    ...(endpoint === undefined ? {} : { endpoint: readEndpoint(endpoint, addresses) }),
    ...(price === undefined ? {} : { priceMicros: readPrice('price', price) }),
    ...(max_price === undefined
      ? {}
      : { maxPriceMicros: max_price === null ? null : readPrice('max_price', max_price) }),
    ...(free_calls === undefined ? {} : { freeCalls: free_calls ?? 0 }),
    ...(category === undefined ? {} : { category }),
    ...(timeout_seconds === undefined ? {} : { timeoutSeconds: timeout_seconds }),
    ...(idle_seconds === undefined ? {} : { idleSeconds: idle_seconds }),
    ...(body.docs_url === undefined ? {} : { docsUrl: checkedOrNull('docs_url', body.docs_url, docsUrlFault) }),
    ...(body.health_path === undefined
      ? {}
      : { healthPath: checkedOrNull('health_path', body.health_path, healthPathFault) }),
    ...(body.only_operations === undefined ? {} : { onlyOperations: body.only_operations }),
    ...(body.forward_headers === undefined ? {} : { forwardHeaders: forwardHeadersOf(body.forward_headers) }),
  };
}

function checked(field: string, value: string, faultOf: (value: string) => string | null): string {
  const fault = faultOf(value);
  if (fault !== null) throw new ApiError('invalid_request', `${field}: ${fault}.`);
  return value;
}

const checkedOrNull = (
  field: string,
  value: string | null,
  faultOf: (value: string) => string | null,
): string | null => (value === null ? null : checked(field, value, faultOf));

function readEndpoint(endpoint: string, addresses: AddressPolicy): string {
  checked('endpoint', endpoint, endpointFault);
  if (!isForbiddenLiteral(endpoint, addresses)) return endpoint;
  throw new ApiError('invalid_request', 'endpoint: must be on the public internet; this address is not.');
}

function readPrice(field: string, usd: number): number {
  const price = parsePrice(usd);
  if ('fault' in price) throw new ApiError('invalid_request', `${field}: ${price.fault}.`);
  return price.micros;
}

/**
 * If the operator allows private addresses, no page of another site may choose an endpoint. Otherwise a page could read any service
 * there, past the browser's same-origin policy: it could open the accounts that it needs, list the service, and call it. A name may
 * lead to a private address at any time, so the endpoint itself does not matter.
 */
export function refusePageChoosingEndpoint(
  request: ApiRequest<{ readonly endpoint?: string }>,
  addresses: AddressPolicy,
): void {
  if (request.body.endpoint === undefined || !addresses.allowsMore) return;
  refuseForeignPage(request, 'endpoint: a web page of another origin cannot set it on this gateway.');
}
