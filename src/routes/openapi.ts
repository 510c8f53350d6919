import { ERRORS } from '../errors.ts';
import type { JsonSchema, Route } from '../http/route.ts';

type Json = Readonly<Record<string, unknown>>;

const ERROR_SCHEMA: JsonSchema = {
  type: 'object',
  required: ['error', 'message', 'status'],
  properties: {
    error: { type: 'string', enum: Object.keys(ERRORS) },
    message: { type: 'string' },
    status: { type: 'integer' },
  },
};

const integerHeader = (description: string): Json => ({ description, schema: { type: 'integer' } });
const textHeader = (description: string): Json => ({ description, schema: { type: 'string' } });
const RATE_HEADERS = {
  'X-RateLimit-Limit': integerHeader('Requests per minute'),
  'X-RateLimit-Remaining': integerHeader('Whole requests that would pass now'),
  'X-RateLimit-Reset': integerHeader('Seconds until the full allowance is back'),
  'X-Request-Id': textHeader('Identifies this request when you ask the operator about it'),
};
const CALL_HEADERS = {
  'X-ACF-Amount': textHeader('USD charged for this call, a decimal; 0 when free or not billed'),
  'X-ACF-Free-Tier': {
    description: 'Whether this call used one of the free calls',
    schema: { type: 'string', enum: ['true', 'false'] },
  },
  'X-ACF-Usage-Id': textHeader('Identifies the record of this call: GET /api/v1/usage/{usage_id}'),
  'X-ACF-Balance': textHeader('USD left after this call, a decimal'),
};
const referencesTo = (headers: Json): Json =>
  Object.fromEntries(Object.keys(headers).map((name) => [name, { $ref: `#/components/headers/${name}` }]));
const ON_EVERY_RESPONSE = referencesTo(RATE_HEADERS);

const ERROR_RESPONSE = {
  description: 'An error; `error` is a stable code',
  headers: ON_EVERY_RESPONSE,
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
};

const PROXY_PATH = '/api/v1/proxy/:service_id/:path';
const PROXY_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** `GET /openapi.json`: made from the same schemas that requests are checked against, so the two cannot differ. */
export function openApiRoutes(routes: readonly Route[]): Route[] {
  const document = JSON.stringify(openApiDocument(routes));
  return [
    {
      method: 'GET',
      path: '/api/v1/openapi.json',
      summary: 'This document',
      access: 'anyone',
      handle: async () => ({
        status: 200,
        body: document,
        headers: { 'Content-Type': 'application/json; charset=utf-8' },
      }),
    },
  ];
}

/**
 * OpenAPI 3.1, because its schemas are plain JSON Schema: those with which ajv validates requests go in unchanged. The schemas
 * of OpenAPI 3.0 are a dialect of their own.
 */
function openApiDocument(routes: readonly Route[]): Json {
  const paths: Record<string, Record<string, unknown>> = {};
  const add = (path: string, method: string, operation: Json): void => {
    const template = path.replace(/:([a-z_]+)/g, '{$1}');
    paths[template] ??= {};
    (paths[template] as Record<string, unknown>)[method.toLowerCase()] = operation;
  };
  for (const route of routes) add(route.path, route.method, operation(route));
  for (const method of PROXY_METHODS) add(PROXY_PATH, method, proxyOperation(method));
  return {
    openapi: '3.1.0',
    info: { title: 'Tollgate', version: '1', description: 'An agent service marketplace.' },
    components: {
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', bearerFormat: '{key_id}:{secret}' },
        apiKey: { type: 'apiKey', in: 'header', name: 'X-Api-Key', description: 'The same: {key_id}:{secret}' },
      },
      schemas: { Error: ERROR_SCHEMA },
      headers: { ...RATE_HEADERS, ...CALL_HEADERS },
    },
    paths,
  };
}

function operation(route: Route): Json {
  const { query, body } = route;
  const isRequired = (name: string): boolean => (query?.required as string[] | undefined)?.includes(name) ?? false;
  const queryParameters = Object.entries((query?.properties ?? {}) as Record<string, JsonSchema>).map(
    ([name, schema]) => ({ name, in: 'query', required: isRequired(name), schema }),
  );
  return {
    operationId: operationId(route.method, route.path),
    summary: route.summary,
    parameters: [...pathParameters(route.path), ...queryParameters],
    ...(body === undefined
      ? {}
      : { requestBody: { required: Array.isArray(body.required), content: { 'application/json': { schema: body } } } }),
    security: securityOf(route),
    responses: {
      '2XX': { description: 'Success', ...(route.unmetered ? {} : { headers: ON_EVERY_RESPONSE }) },
      default: ERROR_RESPONSE,
    },
  };
}

function proxyOperation(method: string): Json {
  const maxAmount = {
    name: 'X-ACF-Max-Amount',
    in: 'header',
    description: 'Maximum price of this call in USD: if the price is higher, the answer is 412 and nothing is charged',
    schema: { type: 'string', pattern: '^(0|[1-9][0-9]{0,9})(\\.[0-9]{1,6})?$' },
  };
  const takesBody = method === 'POST' || method === 'PUT' || method === 'PATCH';
  return {
    operationId: operationId(method, PROXY_PATH),
    summary: "Call a service: its answer comes back with this call's price in the X-ACF-* headers",
    description: '`path` may have several segments; it reaches the service byte for byte, as does any query.',
    parameters: [...pathParameters(PROXY_PATH), maxAmount],
    ...(takesBody ? { requestBody: { content: { '*/*': {} } } } : {}),
    security: WITH_KEY,
    responses: {
      default: {
        description: "The service's own answer, or an error of the gateway (then without some X-ACF-* headers)",
        headers: { ...ON_EVERY_RESPONSE, ...referencesTo(CALL_HEADERS) },
        content: {
          'application/json': { schema: { anyOf: [{ $ref: '#/components/schemas/Error' }, {}] } },
          '*/*': {},
        },
      },
    },
  };
}

/** The caller may send its key in either of two headers: Authorization or X-Api-Key. */
const WITH_KEY: Json[] = [{ key: [] }, { apiKey: [] }];

/** In OpenAPI, the empty requirement `{}` beside others means that the request may also come without a key. */
function securityOf({ access }: Route): Json[] {
  if (access === 'anyone') return [];
  return access === 'optional' ? [{}, ...WITH_KEY] : WITH_KEY;
}

const pathParameters = (path: string): Json[] =>
  [...path.matchAll(/:([a-z_]+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));

/** 'GET', '/api/v1/keys/:key_id' → 'getKeysByKeyId'. Client generators name their functions after it. */
function operationId(method: string, path: string): string {
  const words = path
    .replace('/api/v1', '')
    .replaceAll('/:', '/by_')
    .split(/[/_]/)
    .filter((word) => word !== '');
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}
