import { describe, expect, it } from 'vitest';
import type { Route } from '../../src/http/route.ts';
import { Router } from '../../src/http/router.ts';

const route = (method: Route['method'], path: string): Route => ({
  method,
  path,
  summary: '',
  responses: {},
  access: 'anyone',
  handle: async () => ({ status: 200 }),
});
const router = new Router([
  route('GET', '/api/keys/:key_id'),
  route('PATCH', '/api/keys/:key_id'),
  route('GET', '/api/keys/me'),
  route('POST', '/api/keys'),
]);

describe('the router', () => {
  it('prefers a literal segment to a parameter', () => {
    expect(router.match('GET', '/api/keys/me')).toMatchObject({ route: { path: '/api/keys/me' } });
    expect(router.match('GET', '/api/keys/x')).toMatchObject({
      route: { path: '/api/keys/:key_id' },
      params: { key_id: 'x' },
    });
  });

  it('uses the route of GET for HEAD', () => {
    expect(router.match('HEAD', '/api/keys/x')).toMatchObject({ kind: 'route', route: { method: 'GET' } });
  });

  it('lists the methods that a path has', () => {
    expect(router.match('DELETE', '/api/keys/x')).toEqual({ kind: 'method_not_allowed', allow: 'GET, HEAD, PATCH' });
  });

  it('decodes parameters, and finds nothing if their percent-encoding is invalid', () => {
    expect(router.match('GET', '/api/keys/a%20b')).toMatchObject({ params: { key_id: 'a b' } });
    expect(router.match('GET', '/api/keys/%zz')).toEqual({ kind: 'not_found' });
  });

  it.each(['/', '/api/keys/', '/api/keys/x/y', '/api/other', ''])('finds nothing at %j', (path) => {
    expect(router.match('GET', path)).toEqual({ kind: 'not_found' });
  });
});
