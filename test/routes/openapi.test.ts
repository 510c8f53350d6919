import { beforeAll, describe, expect, it } from 'vitest';
import type { Route } from '../../src/http/route.ts';
import { openApiDocument } from '../../src/openapi/document.ts';
import { tagOf } from '../../src/openapi/tags.ts';
import { accountsRoutes } from '../../src/routes/admin/accounts.ts';
import { creditsRoutes } from '../../src/routes/admin/credits.ts';
import { reconciliationRoutes } from '../../src/routes/admin/reconciliation.ts';
import { balanceRoutes } from '../../src/routes/balance.ts';
import { discoverRoutes } from '../../src/routes/discover.ts';
import { earningsRoutes } from '../../src/routes/earnings.ts';
import { healthRoutes } from '../../src/routes/health.ts';
import { keysRoutes } from '../../src/routes/keys.ts';
import { openApiRoutes } from '../../src/routes/openapi.ts';
import { servicesRoutes } from '../../src/routes/services.ts';
import { usageRoutes } from '../../src/routes/usage.ts';
import { send } from '../support/accounts.ts';

type Json = Record<string, unknown>;
type Parameter = { readonly name: string; readonly in: string; readonly required?: boolean; readonly schema: Json };
type Operation = {
  readonly operationId: string;
  readonly parameters: readonly Parameter[];
  readonly security: readonly Json[];
  readonly responses: Record<string, { readonly description: string; readonly headers?: Json }>;
};

/** Stands for every dependency: the document needs only the shapes of the routes, and no handler runs. */
const NOTHING = {} as never;
const routes: Route[] = [
  ...keysRoutes(NOTHING),
  ...discoverRoutes(NOTHING),
  ...servicesRoutes(NOTHING),
  ...usageRoutes(NOTHING),
  ...balanceRoutes(NOTHING),
  ...earningsRoutes(NOTHING),
  ...creditsRoutes(NOTHING),
  ...reconciliationRoutes(NOTHING),
  ...healthRoutes(NOTHING),
  ...accountsRoutes(NOTHING),
];

let document: Json & { paths: Record<string, Record<string, Operation>> };
let operations: { template: string; method: string; operation: Operation }[];

beforeAll(async () => {
  document = JSON.parse((await send(openApiRoutes(routes, null), 'GET /openapi.json')).body as string);
  operations = Object.entries(document.paths).flatMap(([template, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ template, method, operation })),
  );
});

/** @returns all objects in the value, at any depth */
function objectsIn(value: unknown): Json[] {
  if (typeof value !== 'object' || value === null) return [];
  return [value as Json, ...Object.values(value).flatMap(objectsIn)];
}

describe('the OpenAPI document', () => {
  it('is of version 3.1 and has every route, and the proxy with every method', () => {
    expect(document.openapi).toMatch(/^3\.1\.\d+$/);
    for (const { method, path } of routes) {
      expect(document.paths[path.replace(/:([a-z_]+)/g, '{$1}')]).toHaveProperty(method.toLowerCase());
    }
    expect(Object.keys(document.paths['/api/v1/proxy/{service_id}/{path}'] ?? {}).sort()).toEqual(
      ['get', 'head', 'post', 'put', 'patch', 'delete'].sort(),
    );
  });

  it('has a target for every reference', () => {
    const references = objectsIn(document).flatMap(({ $ref }) => (typeof $ref === 'string' ? [$ref] : []));
    expect(references.length).toBeGreaterThan(0);
    for (const reference of new Set(references)) {
      const steps = reference.replace(/^#\//, '').split('/');
      const target = steps.reduce<unknown>((at, step) => (at as Json | undefined)?.[step], document);
      expect([reference, typeof target]).toEqual([reference, 'object']);
    }
  });

  it('declares each parameter of each path once, and no others', () => {
    for (const { template, operation } of operations) {
      const declared = operation.parameters.filter((parameter) => parameter.in === 'path');
      const named = [...template.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name);
      expect([template, declared.map(({ name }) => name).sort()]).toEqual([template, named.sort()]);
      expect(declared.every(({ required }) => required === true)).toBe(true);
      const all = operation.parameters.map((parameter) => `${parameter.in} ${parameter.name}`);
      expect(new Set(all).size).toBe(all.length);
      for (const { schema } of operation.parameters) expect(schema).toBeTypeOf('object');
    }
  });

  it('gives each operation an id of its own', () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    for (const id of ids) expect(id).toMatch(/^[a-z][A-Za-z0-9]*$/);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toContain('postKeysByKeyIdRotate');
  });

  it('cannot be built if a route has an undescribed parameter, an error that is a response too, or a duplicate title', () => {
    const [route] = routes.filter(({ path, method }) => path === '/api/v1/keys/:key_id' && method === 'PATCH') as [
      Route,
    ];
    const { params: _, ...withoutParams } = route;
    expect(() => openApiDocument([withoutParams], null)).toThrow('params does not describe key_id');
    expect(() =>
      openApiDocument([{ ...route, responses: { ...route.responses, 404: { description: '' } } }], null),
    ).toThrow('404 is both an error and a response of its own');
    expect(() => openApiDocument([...routes, { ...route, body: { ...route.body, required: [] } }], null)).toThrow(
      'two different schemas have the title KeyChange',
    );
  });

  it('has the statement in the chapter of money, and cannot be built with a path that has no chapter', () => {
    const [route] = routes as [Route];
    const at = (path: string) => openApiDocument([{ ...route, path, params: {} }], null);
    expect(tagOf('/api/v1/statement/me')).toBe('Money');
    expect(tagOf('/api/v1/keys/:key_id/rotate')).toBe('Keys');
    for (const path of ['/new', '/api/v1/new', '/api/v1/keysets']) {
      expect(() => at(path)).toThrow(`${path} has no chapter in src/openapi/tags.ts`);
    }
  });

  it('has no keywords of older schema dialects', () => {
    for (const object of objectsIn(document)) {
      expect(object).not.toHaveProperty('nullable');
      for (const bound of ['exclusiveMinimum', 'exclusiveMaximum']) expect(typeof object[bound]).not.toBe('boolean');
    }
  });

  it('says where a key is required, and where it is optional', () => {
    const security = (method: string, path: string) => document.paths[path]?.[method]?.security;
    expect(security('get', '/api/v1/balance/me')).toEqual([{ key: [] }, { apiKey: [] }]);
    expect(security('post', '/api/v1/keys')).toEqual([{}, { key: [] }, { apiKey: [] }]);
    expect(security('get', '/api/v1/discover')).toEqual([]);
    expect(document.components).toMatchObject({
      securitySchemes: { key: { scheme: 'bearer' }, apiKey: { type: 'apiKey', in: 'header', name: 'X-Api-Key' } },
    });
  });

  it('declares the headers of a call: its maximum price, the amount charged and the rate limit', () => {
    for (const { operation } of operations.filter(({ template }) => template.startsWith('/api/v1/proxy/'))) {
      expect(operation.parameters.filter((parameter) => parameter.in === 'header')).toMatchObject([
        { name: 'X-ACF-Max-Amount' },
        { name: 'X-ACF-Free-Only' },
        { name: 'X-ACF-Tag' },
        { name: 'X-ACF-Usage-Event' },
        { name: 'Idempotency-Key' },
        { name: 'X-ACF-Forward' },
      ]);
      for (const status of ['200', 'default']) {
        const { $ref = '' } = operation.responses[status] as { $ref?: string };
        const { responses } = document.components as { responses: Record<string, { headers: Json }> };
        const headers = Object.keys(responses[$ref.split('/').at(-1) ?? '']?.headers ?? {});
        for (const name of ['Amount', 'Free-Tier', 'Usage-Id', 'Balance']) expect(headers).toContain(`X-ACF-${name}`);
        for (const name of ['Limit', 'Remaining', 'Reset']) expect(headers).toContain(`X-RateLimit-${name}`);
      }
    }
  });
});
