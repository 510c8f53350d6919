import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mergeOperations, type OperationChange } from '../../../src/catalog/operations/merge-operations.ts';
import type { Operation } from '../../../src/catalog/operations/operation.ts';

const get = (path: string, more: object = {}): Operation => ({
  method: 'GET',
  path,
  summary: `Reads ${path}`,
  ...more,
});
const merged = (base: readonly Operation[], ...changes: readonly object[]): readonly Operation[] => {
  const stored = mergeOperations(base, changes as OperationChange[], (operation, field) => {
    if (!('summary' in operation)) throw new Error(`${field}.summary`);
  });
  return stored === null ? [] : JSON.parse(stored.json);
};
const faultOf = (base: readonly Operation[], ...changes: readonly object[]): string => {
  try {
    merged(base, ...changes);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('was merged');
};

describe('changes of operations', () => {
  const full = { price: 0.001, input: { type: 'object' }, example: { query: { a: 1 } } };
  const base = [get('/a', full), get('/users/{id}', full), { ...get('/a'), method: 'POST' }];

  it('change only the fields that they name', () => {
    expect(merged(base, { method: 'GET', path: '/a', price: 0.002 })).toEqual([
      get('/a', { ...full, price: 0.002 }),
      ...base.slice(1),
    ]);
  });

  it('clear a field by null', () => {
    const { price: _, ...rest } = full;
    expect(merged(base, { method: 'GET', path: '/a', price: null })[0]).toEqual(get('/a', rest));
    expect(merged(base, { method: 'GET', path: '/new', summary: 'New', price: null })[3]).toEqual({
      ...get('/new'),
      summary: 'New',
    });
    expect(faultOf(base, { method: 'GET', path: '/a', summary: null })).toBe('operations.0.summary');
  });

  it('match an operation even if its names in braces differ, and keep its names, because schemas refer to them', () => {
    expect(merged(base, { method: 'GET', path: '/users/{name}', price: 0 })[1]).toEqual(
      get('/users/{id}', { ...full, price: 0 }),
    );
  });

  it('remove operations, and add new ones at the end', () => {
    expect(merged(base, { method: 'GET', path: '/a', remove: true }, get('/z'))).toEqual([...base.slice(1), get('/z')]);
    expect(merged([get('/a')], { method: 'GET', path: '/a', remove: true })).toEqual([]);
  });

  it('find tools by their names', () => {
    const tools = [
      { tool: 'search', summary: 'S', price: 1 },
      { tool: 'read', summary: 'R' },
    ];
    expect(merged(tools, { tool: 'search', price: 2 }, { tool: 'read', remove: true })).toEqual([
      { ...tools[0], price: 2 },
    ]);
  });

  it.each([
    [
      [{ method: 'GET', path: '/b', remove: true }],
      /^operations\.0: cannot be removed: there is no operation GET \/b\.$/,
    ],
    [
      [{ method: 'GET', path: '/a', remove: true, price: 1 }],
      /^operations\.0\.price: is not allowed together with remove/,
    ],
    [
      [
        { method: 'GET', path: '/a', price: 1 },
        { method: 'GET', path: '/a', price: 2 },
      ],
      /^operations\.1: names the same/,
    ],
    // All rules are checked on the result.
    [[get('/A')], /^operations\.0: is the same as operations: GET \/a, or another spelling of it/],
    [[get('/q/../r')], /^operations\.0\.path: must not have dot segments/],
    [[{ method: 'GET', path: '/a', price: 1e-7 }], /^operations\.0\.price: must be/],
    [
      [{ method: 'GET', path: '/a', output: { pattern: '\0' } }],
      /^operations\.0: must not contain the character U\+0000/,
    ],
    [
      Array.from({ length: 198 }, (_, index) => get(`/n${index}`)),
      /^operations: must be at most 200, and would be 201/,
    ],
  ])('are refused with the reason: %#', (changes, fault) => {
    expect(faultOf(base, ...changes)).toMatch(fault);
  });

  it('have the same effect one by one as together, and do not touch what they do not name', () => {
    const path = fc.constantFrom('/a', '/b', '/c/{x}', '/d');
    const price = fc.option(fc.constantFrom(0, 0.5, 2));
    const change = fc.record({ path, price, remove: fc.boolean() });
    const lists = fc.uniqueArray(change, { selector: (it) => it.path, maxLength: 4 });
    fc.assert(
      fc.property(lists, lists, (first, second) => {
        const start = first.map((it) => get(it.path, it.price === null ? {} : { price: it.price }));
        const known = new Set(start.map((it) => 'path' in it && it.path));
        const changes = second
          .filter((it) => !it.remove || known.has(it.path))
          .map((it) =>
            it.remove ? { method: 'GET', path: it.path, remove: true } : get(it.path, { price: it.price }),
          );
        const together = merged(start, ...changes);
        expect(changes.reduce((operations, one) => [...merged(operations, one)], start)).toEqual(together);
        const named = new Set(changes.map((it) => (it as { path: string }).path));
        for (const operation of start)
          if ('path' in operation && !named.has(operation.path)) expect(together).toContainEqual(operation);
        for (const one of changes as { path: string; remove?: true; price?: number | null }[]) {
          const found = together.find((it) => 'path' in it && it.path === one.path);
          expect(found?.price).toBe(one.remove || one.price === null ? undefined : one.price);
          expect(found === undefined).toBe(one.remove === true);
        }
      }),
    );
  });
});
