import { describe, expect, test } from 'vitest';
import type { Operation } from '../../src/catalog/operations/operation.ts';
import { readyCall } from '../../src/catalog/ready-call.ts';
import { makeListing } from '../support/listings.ts';

const GATEWAY = 'https://gateway.test';
const listing = makeListing();
const OURS = { Authorization: 'Bearer {key_id}:{secret}', 'X-ACF-Max-Amount': '0.002' };
const url = (rest: string, id = listing.id): string => `${GATEWAY}/api/v1/proxy/${id}${rest}`;
const callOf = (...operations: Operation[]) => readyCall(listing, operations, GATEWAY);

describe('the ready call of a listing', () => {
  test('uses the first operation, with its example and price', () => {
    const example = { query: { to: 'fr', list: 'a b' }, body: { text: 'hello' } };
    const first = { method: 'POST', path: '/v1/translate', summary: '', price: 0.01, example };
    expect(callOf(first, { method: 'GET', path: '/', summary: '' })).toEqual({
      method: 'POST',
      url: url('/v1/translate?to=fr&list=a%20b'),
      headers: { ...OURS, 'X-ACF-Max-Amount': '0.01', 'Content-Type': 'application/json' },
      body: { text: 'hello' },
    });
  });

  test('accepts the maximum cost of a call if the service reports the cost', () => {
    const ceilingOf = (...operations: Operation[]) =>
      readyCall(makeListing({ maxPriceMicros: 50_000 }), operations, GATEWAY).headers['X-ACF-Max-Amount'];
    const first = { method: 'GET', path: '/', summary: '' };
    expect([ceilingOf(), ceilingOf(first), ceilingOf({ ...first, price: 0 })]).toEqual(['0.05', '0.05', '0']);
  });

  test('leaves names in braces if nobody has suggested a value, and uses values that the schema suggests', () => {
    const input = {
      properties: {
        path: { properties: { city: { default: 'São Paulo' } } },
        query: { properties: { day: {}, unit: {}, scale: { enum: ['c', 'f'] } }, required: ['day'] },
      },
    };
    expect(callOf({ method: 'GET', path: '/weather/{city}/{hour}/*', summary: '', input })).toEqual({
      method: 'GET',
      url: url('/weather/S%C3%A3o%20Paulo/{hour}/?day={day}&scale=c'),
      headers: OURS,
    });
  });

  test('has the headers that the operation requires, but none that the gateway or the caller sets anyway', () => {
    const headers = {
      properties: {
        'X-Version': { default: '2026-01-01' },
        'X-Tenant': { type: 'string' },
        x_tenant: { default: 'the same header again' },
        'X-City': { example: 'São Paulo' },
        'X-Optional': { default: 'a' },
        'Idempotency-Key': { example: 'k1' },
        Authorization: { default: 'Bearer theirs' },
        'X-ACF-Max-Amount': { default: '10000' },
        x_acf_max_amount: { default: '10000' },
        'Content-Length': { default: '0' },
        'X-Split: a': { default: 'b' },
        __proto__x: { default: 'b' },
      },
      required: [] as string[],
    };
    headers.required = Object.keys(headers.properties).filter((name) => name !== 'X-Optional');
    expect(callOf({ method: 'GET', path: '/', summary: '', input: { properties: { headers } } }).headers).toEqual({
      ...OURS,
      'X-Version': '2026-01-01',
      'X-Tenant': '{X-Tenant}',
      'X-City': '{X-City}',
      'Idempotency-Key': '{Idempotency-Key}',
    });
  });

  test('builds a body from the schema, and omits a body that is longer than a call needs', () => {
    const input = { properties: { body: { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } } } };
    expect(callOf({ method: 'PUT', path: '/', summary: '', input })).toMatchObject({ body: { n: 1 } });
    const long = callOf({ method: 'PUT', path: '/', summary: '', example: { body: 'x'.repeat(4_001) } });
    expect(long).toEqual({ method: 'PUT', url: url('/'), headers: OURS });
    const text = callOf({ method: 'PUT', path: '/', summary: '', example: { body: 'a,b' } });
    expect(text).toMatchObject({ headers: { 'Content-Type': 'text/plain' }, body: 'a,b' });
  });

  test('is a GET if nothing is described, and only a path if the address is not known', () => {
    expect(callOf()).toEqual({ method: 'GET', url: url('/'), headers: OURS });
    expect(readyCall(listing, [], '').url).toBe(`/api/v1/proxy/${listing.id}/`);
  });

  test('is a message for an MCP server: a call of its first tool, or a request for its tools', () => {
    const server = makeListing({ protocol: 'mcp', priceMicros: 0 });
    const call = readyCall(server, [{ tool: 'search', price: 0.5 }], GATEWAY);
    expect(call).toEqual({
      method: 'POST',
      // Many servers tell `/mcp/` from `/mcp`.
      url: url('', server.id),
      headers: {
        ...OURS,
        'X-ACF-Max-Amount': '0.5',
        Accept: 'application/json, text/event-stream',
        'Content-Type': 'application/json',
      },
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'search', arguments: {} } },
    });
    const unknown = readyCall(server, [], GATEWAY);
    expect(unknown.body).toEqual({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
  });

  test('agrees to forward credentials that the service requires, and sends the key in the other header', () => {
    const headersOf = (forwardHeaders: string) => readyCall(makeListing({ forwardHeaders }), [], GATEWAY).headers;
    const own = '{your own, for this service}';
    expect(headersOf('x-api-key,cookie')).toEqual({
      ...OURS,
      'X-ACF-Forward': 'x-api-key, cookie',
      'x-api-key': own,
      cookie: own,
    });
    expect(headersOf('authorization,x-api-key')).toEqual({
      'X-Api-Key': '{key_id}:{secret}',
      'X-ACF-Max-Amount': '0.002',
      'X-ACF-Forward': 'authorization',
      authorization: own,
    });
  });
});
