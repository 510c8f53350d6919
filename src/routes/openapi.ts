import type { JsonSchema, Route } from '../http/route.ts';
import { openApiDocument } from '../openapi/document.ts';
import { TEXT } from '../openapi/schemas.ts';
import type { OperatorDetails } from '../platform/operator.ts';

const ANY: JsonSchema = { type: 'object', additionalProperties: true };

/**
 * `GET /openapi.json`: the document of these routes and of this one. It is made at the first request, because every gateway would pay
 * for it at its start. That the routes do not contradict each other is for tests: test/openapi/contract.test.ts.
 */
export function openApiRoutes(routes: readonly Route[], operator: OperatorDetails | null): Route[] {
  let document: string | null = null;
  const own: Route = {
    method: 'GET',
    path: '/api/v1/openapi.json',
    summary: 'This document',
    access: 'anyone',
    fromMemory: true,
    responses: {
      200: {
        description: 'An OpenAPI 3.1 document',
        content: {
          'application/json': {
            schema: {
              title: 'OpenApiDocument',
              type: 'object',
              required: ['openapi', 'info', 'paths'],
              properties: { openapi: TEXT, info: ANY, paths: ANY },
              additionalProperties: true,
            },
            example: { openapi: '3.1.0', info: { title: 'Tollgate', version: '1' }, paths: {} },
          },
        },
      },
    },
    handle: async () => {
      document ??= JSON.stringify(openApiDocument([...routes, own], operator));
      return { status: 200, body: document, headers: { 'Content-Type': 'application/json; charset=utf-8' } };
    },
  };
  return [own];
}
