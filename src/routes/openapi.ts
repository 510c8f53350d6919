import { ERRORS } from '../errors.ts';
import type { JsonSchema, Route } from '../http/route.ts';

const ERROR_SCHEMA: JsonSchema = {
  type: 'object',
  required: ['error', 'message', 'status'],
  properties: {
    error: { type: 'string', enum: Object.keys(ERRORS) },
    message: { type: 'string' },
    status: { type: 'integer' },
  },
};

/** `GET /openapi.json`: made from the very schemas that requests are checked against, so it cannot drift. */
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

function openApiDocument(routes: readonly Route[]): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:([a-z_]+)/g, '{$1}');
    paths[path] ??= {};
    (paths[path] as Record<string, unknown>)[route.method.toLowerCase()] = operation(route);
  }
  paths['/api/v1/proxy/{service_id}/{path}'] = proxyOperations();
  return {
    openapi: '3.0.3',
    info: { title: 'Tollgate', version: '1', description: 'An agent service marketplace.' },
    components: {
      securitySchemes: { key: { type: 'http', scheme: 'bearer', bearerFormat: '{key_id}:{secret}' } },
      schemas: { Error: ERROR_SCHEMA },
    },
    paths,
  };
}

const errorResponse = {
  description: 'An error; `error` is a stable code',
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
};

function operation(route: Route): Record<string, unknown> {
  const pathParameters = [...route.path.matchAll(/:([a-z_]+)/g)].map((match) => ({
    name: match[1],
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const queryProperties = (route.query?.properties ?? {}) as Record<string, JsonSchema>;
  const queryParameters = Object.entries(queryProperties).map(([name, schema]) => ({ name, in: 'query', schema }));
  return {
    summary: route.summary,
    parameters: [...pathParameters, ...queryParameters],
    ...(route.body === undefined ? {} : { requestBody: { content: { 'application/json': { schema: route.body } } } }),
    ...(Array.isArray(route.access) ? { security: [{ key: [] }] } : {}),
    responses: { '2XX': { description: 'Success' }, default: errorResponse },
  };
}

function proxyOperations(): Record<string, unknown> {
  const parameters = ['service_id', 'path'].map((name) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const described = {
    summary: "Call a service: its answer comes back with this call's price in the X-ACF-* headers",
    parameters,
    security: [{ key: [] }],
    responses: { default: { description: "The service's own answer, or an error of the gateway" } },
  };
  return Object.fromEntries(['get', 'head', 'post', 'put', 'patch', 'delete'].map((method) => [method, described]));
}
