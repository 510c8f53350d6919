import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  bodyOf,
  hasDotSegment,
  mediaTypeOf,
  parametersOf,
  pathNames,
  pathOf,
  pathSamples,
  queryOf,
} from '../../web/src/site/service-request.ts';

const operation = { price: 0, price_label: '$0', method: 'GET', path: '/users/{id}/*' };

describe('the request of an operation', () => {
  it('has the values of its path encoded, and what was typed behind the star as it is', () => {
    expect(pathNames('/users/{id}/*')).toEqual(['id', '*']);
    expect(pathOf('/users/{id}/*', { id: 'a/b c', '*': 'x/%20/y?' })).toBe('/users/a%2Fb%20c/x/%20/y%3F');
    expect(queryOf([{ name: "it's", value: 'a&b=c' }])).toBe('it%27s=a%26b%3Dc');
  });

  it('is sent by a browser byte for byte as it was made', () => {
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.string());
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

  it('never climbs', () => {
    for (const path of ['/..', '/a/../b', '/%2e%2E/x', '/a/.', '/a\\..']) expect(hasDotSegment(path)).toBe(true);
    for (const path of ['/...', '/a..b', '/.well-known/x']) expect(hasDotSegment(path)).toBe(false);
  });

  it('begins with the example, or else with what the schema demands', () => {
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

  it('takes any schema that a provider may write', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (input, example) => {
        const strange = { ...operation, input, example } as unknown as Parameters<typeof bodyOf>[0];
        for (const place of ['path', 'query', 'headers'] as const) parametersOf(strange, place);
        pathSamples(strange);
        bodyOf(strange);
      }),
    );
  });
});
