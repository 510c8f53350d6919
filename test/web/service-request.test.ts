import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  bodyOf,
  hasDotSegment,
  headersOf,
  mediaTypeOf,
  type Operation,
  parametersOf,
  pathNames,
  pathOf,
  pathSamples,
  queryOf,
} from '../../web/src/site/service-request.ts';
import { snippetsOf } from '../../web/src/site/service-snippets.ts';
import { anyText } from '../support/any-text.ts';

const operation = { price: 0, price_label: '$0', method: 'GET', path: '/users/{id}/*' };

describe('the request of an operation', () => {
  it('has encoded path values, and keeps what was typed for the star unencoded', () => {
    expect(pathNames('/users/{id}/*')).toEqual(['id', '*']);
    expect(pathOf('/users/{id}/*', { id: 'a/b c', '*': 'x/%20/y?' })).toBe('/users/a%2Fb%20c/x/%20/y%3F');
    expect(queryOf([{ name: "it's", value: 'a&b=c' }])).toBe('it%27s=a%26b%3Dc');
  });

  it('is sent by a browser byte for byte', () => {
    const text = fc.oneof(anyText(), fc.string());
    fc.assert(
      fc.property(text, text, text, text, (id, rest, name, value) => {
        const path = pathOf('/v1/{id}/x/*', { id, '*': rest });
        const target = `${path}?${queryOf([{ name, value }])}`;
        if (hasDotSegment(path)) return;
        const url = new URL(`http://gateway.test/api/v1/proxy/id${target}`);
        expect(url.pathname + url.search).toBe(`/api/v1/proxy/id${target}`);
        expect(url.hash).toBe('');
      }),
      {
        numRuns: 2_000,
        examples: [
          ['..', '../..', '#', '?'],
          ['%2e', '\\..\\', "'", '\ud800'],
          ['a', '//b', '', ''],
        ],
      },
    );
  });

  it('never contains a dot segment', () => {
    for (const path of ['/..', '/a/../b', '/%2e%2E/x', '/a/.', '/a\\..']) expect(hasDotSegment(path)).toBe(true);
    for (const path of ['/...', '/a..b', '/.well-known/x']) expect(hasDotSegment(path)).toBe(false);
  });

  it('starts with the example, or otherwise with what the schema requires', () => {
    const query = { type: 'object', required: ['q'], properties: { q: { type: 'string', default: 'cats' } } };
    const input = { properties: { query, path: { properties: { id: { type: 'integer' } } } } };
    const known = { ...operation, input, example: { query: { page: 2 } } };
    expect(parametersOf(known, 'query')).toEqual([
      { name: 'q', description: '', type: 'string', required: true, value: 'cats' },
      { name: 'page', description: '', type: '', required: false, value: '2' },
    ]);
    expect(pathSamples(known)).toEqual({ id: '1', '*': '' });
    const body = { type: 'object', required: ['a', 'b'], properties: { a: { enum: ['x'] }, b: { type: 'array' } } };
    expect(bodyOf({ ...operation, input: { properties: { body } } })).toEqual({ a: 'x', b: [] });
    expect(bodyOf({ ...operation, example: { body: 'as it is' } })).toBe('as it is');
    expect(bodyOf(operation)).toBeUndefined();
    expect(mediaTypeOf(operation, 'x')).toBe('text/plain');
    expect(mediaTypeOf(operation, {})).toBe('application/json');
    const told = { ...operation, input: { properties: { body: { contentMediaType: 'text/csv' } } } };
    expect(mediaTypeOf(told, 'a,b')).toBe('text/csv');
  });

  it('shows an agent the required headers, and passes an idempotency key as the argument of that name', () => {
    const names = { 'X-Tenant': {}, 'Idempotency-Key': {} };
    const input = { properties: { headers: { properties: names, required: Object.keys(names) } } };
    const service = { id: 'id', name: 'n', protocol: 'http', price: 0 };
    const shown = snippetsOf({ origin: 'http://gateway.test', service, operation: { ...operation, input }, key: null });
    const text = shown.find(({ kind }) => kind === 'agent')?.text ?? '';
    expect(JSON.parse(text.slice(text.indexOf('call_service {') + 'call_service '.length))).toMatchObject({
      headers: { 'X-Tenant': '{X-Tenant}' },
      idempotency_key: '{Idempotency-Key}',
    });
    expect(text).not.toContain('"Idempotency-Key"');
  });

  it('accepts any schema that a provider may write', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (input, example) => {
        const strange = { ...operation, input, example } as unknown as Parameters<typeof bodyOf>[0];
        for (const place of ['path', 'query', 'headers'] as const) parametersOf(strange, place);
        pathSamples(strange);
        bodyOf(strange);
        headersOf(strange);
      }),
    );
  });
});

describe('input with which a provider could make a page slow', () => {
  // As large as a listing may have them: up to 262 144 characters, 64 levels deep.
  const nested = (levels: number, numbers: number): unknown =>
    JSON.parse(`${'['.repeat(levels)}${Array(numbers).fill('1').join(',')}${']'.repeat(levels)}`);
  const required = (names: readonly string[], levels: number): object =>
    levels === 0 ? {} : { type: 'object', required: names, properties: { a: required(names, levels - 1) } };

  it('a name that is required twice on every level is created once', () => {
    const schema = { properties: { body: required(Array(500).fill('a'), 6) } };
    expect(bodyOf({ ...operation, input: schema })).toEqual({ a: { a: { a: { a: { a: { a: '' } } } } } });
  });

  it.each<readonly [string, Partial<Operation>]>([
    ['a deep body', { example: { body: nested(60, 125_000) } }],
    ['a long body', { example: { body: { [`'${'x'.repeat(100_000)}`]: ['<'.repeat(100_000)] } } }],
    ['a long query', { example: { query: { a: '\u5b57'.repeat(250_000) } } }],
    ['many parameters', { example: { query: Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [i, 'x'])) } }],
    [
      'a long value in the path',
      { input: { properties: { path: { properties: { id: { default: 'x'.repeat(9e4) } } } } } },
    ],
    ['a long media type', { input: { properties: { body: { contentMediaType: `a/${'x'.repeat(200_000)}` } } } }],
    [
      'many names',
      { input: { properties: { body: { required: Array.from({ length: 25_000 }, (_, i) => `n${i}`) } } } },
    ],
  ])('the programs of an operation with %s are short', (_, parts) => {
    const called: Operation = { ...operation, method: 'POST', path: '/users/{id}/v1/chat/completions', ...parts };
    const service = { id: 'id', name: 'name', protocol: 'http', price: 0.002 };
    const snippets = snippetsOf({ origin: 'http://gateway.test', service, operation: called, key: null });
    expect(snippets.map(({ kind }) => kind)).toContain('openai');
    for (const { text } of snippets) expect(text.length).toBeLessThan(40_000);
  });

  it('a body that was cut ends with an ellipsis, and a body of normal length is complete', () => {
    const curl = (body: unknown): string =>
      snippetsOf({
        origin: 'http://gateway.test',
        service: { id: 'id', name: 'name', protocol: 'http', price: 0.002 },
        key: null,
        operation: { ...operation, method: 'POST', example: { body } },
      })[0]?.text ?? '';
    const usual = { model: 'parrot', messages: [{ role: 'user', content: 'x'.repeat(1_000) }] };
    expect(curl(usual)).toContain(JSON.stringify(usual, null, 2));
    expect(curl({ ...usual, more: 'x'.repeat(10_000) })).toContain('\u2026');
  });
});
