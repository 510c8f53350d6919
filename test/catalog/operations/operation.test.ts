import { describe, expect, it } from 'vitest';
import {
  MAX_DEPTH,
  MAX_OPERATIONS_LENGTH,
  type Operation,
  parseTerms,
  storeOperations,
} from '../../../src/catalog/operations/operation.ts';
import { parseTemplate } from '../../../src/catalog/operations/template.ts';

const get = (path: string, price?: number): Operation => ({
  method: 'GET',
  path,
  summary: 'Reads',
  ...(price === undefined ? {} : { price }),
});
const faultOf = (operations: readonly Operation[]): string => {
  try {
    storeOperations(operations);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('was stored');
};

describe('a path template', () => {
  const good = ['/', '/users', '/users/', '/users/{id}', '/{a}/b/{c_1}', '/files/*', '/*', '/v1.1/a:b@c', '/caf%C3%A9'];
  it.each(good)('%s is accepted', (path) => expect(parseTemplate(path)).toHaveProperty('segments'));

  const bad: [string, string][] = [
    ['users', 'must begin with a slash'],
    ['/a//b', 'must not have two slashes in a row'],
    ['/*/a', 'may have * only as its last segment'],
    ['/{id}/{id}', 'must not have {id} twice'],
    ['/a/..', 'must not have dot segments'],
    ['/./a', 'must not have dot segments'],
    ['/a{id}', 'other characters must be percent-encoded'],
    ['/{id}.json', 'other characters must be percent-encoded'],
    ['/a;b', 'other characters must be percent-encoded'],
    ['/a b', 'other characters must be percent-encoded'],
    ['/café', 'other characters must be percent-encoded'],
    ['/%61', 'other characters must be percent-encoded'],
    ['/%c3%a9', 'in upper case'],
    [`/${'a/'.repeat(40)}`, 'must have at most 32 segments'],
    [`/${'a'.repeat(512)}`, 'must be at most 512 characters'],
  ];
  it.each(bad)('%s is refused: %s', (path, fault) => {
    expect(parseTemplate(path)).toEqual({ fault: expect.stringContaining(fault) });
  });
});

describe('operations', () => {
  it('are stored with their prices in micro-USD, and as the provider wrote them', () => {
    const operations = [get('/a', 0.000001), get('/b'), { tool: 'search', price: 0, max_price: 0.5 }];
    const stored = storeOperations(operations);
    expect(parseTerms(stored.terms)).toEqual([
      ['GET', '/a', 1, null],
      ['GET', '/b', null, null],
      ['search', 0, 500_000],
    ]);
    expect(JSON.parse(stored.json)).toEqual(operations);
  });

  it('are refused with the name of the field that is at fault', () => {
    expect(faultOf([get('/a'), get('b')])).toBe('operations.1.path: must begin with a slash.');
    expect(faultOf([get('/a', 0.0000001)])).toMatch(/^operations\.0\.price: must be a number of USD/);
    expect(faultOf([{ ...get('/a', 0.5), max_price: 0.4 }])).toBe(
      'operations.0.max_price: must be at least its price.',
    );
  });

  it('may name the character U+0000 in a regular expression, but not contain it', () => {
    const allowed = { type: 'string', pattern: '^[^\\u0000-\\u001f]*$', description: '\\\\u0000' };
    expect(JSON.parse(storeOperations([{ ...get('/a'), input: allowed } as Operation]).json)[0].input).toEqual(allowed);
    for (const input of [{ pattern: '[^\0]' }, { 'a\0': 1 }, { enum: [['\0']] }]) {
      expect(faultOf([get('/b'), { ...get('/a'), input } as Operation])).toBe(
        'operations.1: must not contain the character U+0000.',
      );
    }
  });

  it('are refused when two are equal or are two spellings of one path', () => {
    const repeated = /^operations\.1: is the same as operations\.0, or another spelling of it/;
    for (const [first, second] of [
      ['/a', '/a'],
      ['/a', '/A'],
      ['/{id}/b', '/{name}/B'],
      ['/*', '/*'],
      ['/caf%C3%A9', '/CAF%C3%89'],
    ]) {
      expect(faultOf([get(first as string), get(second as string)])).toMatch(repeated);
    }
    expect(faultOf([{ tool: 'a' }, { tool: 'a' }])).toMatch(repeated);
    expect(() => storeOperations([get('/a'), { ...get('/a'), method: 'POST' }, get('/a/'), get('/{a}')])).not.toThrow();
  });

  it('are refused when they are nested too deeply or are too long in total', () => {
    let schema: unknown = true;
    for (let depth = 0; depth < MAX_DEPTH; depth++) schema = { items: schema };
    expect(faultOf([{ ...get('/a'), input: schema }])).toMatch(/^operations\.0: must not be nested deeper than/);
    const long = { ...get('/a'), input: { description: 'x'.repeat(MAX_OPERATIONS_LENGTH) } };
    expect(faultOf([long])).toMatch(/^operations: must be at most 262144 characters of JSON together/);
    expect(faultOf([{ ...get('/a'), example: { body: '\0' } }])).toMatch(/must not contain the character U\+0000/);
  });
});
