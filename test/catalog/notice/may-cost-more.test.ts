import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Terms } from '../../../src/catalog/listing.ts';
import { mayCostMore } from '../../../src/catalog/notice/may-cost-more.ts';
import { type HttpTerms, ownPriceOf, type ToolTerms } from '../../../src/catalog/operations/operation.ts';
import { PriceTable, ToolPrices } from '../../../src/catalog/operations/price-table.ts';
import { mayExceed, mostOf, priceOf } from '../../../src/catalog/price.ts';

/** What a caller pays that has used all free calls, without a report and at most, and how many are free; null if the call is refused. */
function costs(terms: Terms, method: string, path: string): { later: number; most: number; free: number } | null {
  const entries = JSON.parse(terms.operationTerms ?? '[]') as HttpTerms[];
  const priced =
    entries.length === 0 && !terms.onlyOperations ? terms : new PriceTable(entries, terms).priceOf(method, path);
  if ('refused' in priced) return null;
  const { priceMicros } = priced;
  const most = mostOf(priced);
  const free = most > 0 && !mayExceed(priced, terms) ? terms.freeCalls : 0;
  return { later: priceMicros, most, free: most === 0 ? Infinity : free };
}

const price = fc.constantFrom(0, 1, 2, 3, 4);
/** How much more than the price a service may report. */
const more = fc.option(fc.constantFrom(0, 1, 3), { freq: 1 });
const PATHS = ['/a', '/a/b', '/a/{x}', '/a/{x}/c', '/a/*', '/*', '/{x}', '/b/', '/b'];
const operations = fc
  .uniqueArray(fc.record({ path: fc.constantFrom(...PATHS), price: fc.option(price), more }), {
    maxLength: 4,
    selector: ({ path }) => path,
  })
  .map((list) =>
    list.map(({ path, price: own, more }): HttpTerms => ['GET', path, own, more === null ? null : (own ?? 4) + more]),
  );
/** Terms that Postgres would take: without `only_operations` no operation costs more than the listing. */
const terms: fc.Arbitrary<Terms> = fc
  .record({
    priceMicros: price,
    more,
    freeCalls: fc.constantFrom(0, 0, 5, 9),
    onlyOperations: fc.boolean(),
    operations,
  })
  .map(({ more, ...rest }) => ({ ...rest, maxPriceMicros: more === null ? null : rest.priceMicros + more }))
  .filter(({ onlyOperations, operations: list, ...listing }) =>
    onlyOperations ? list.length > 0 : list.every((term) => !mayExceed(priceOf(ownPriceOf(term), listing), listing)),
  )
  .map(({ operations: list, ...rest }) => ({
    ...rest,
    operationTerms: list.length === 0 ? null : JSON.stringify(list),
  }));
const calls = fc.constantFrom(
  '',
  '/',
  '/a',
  '/a/',
  '/a/b',
  '/a/q',
  '/a/b/c',
  '/a/q/c',
  '/a/%62',
  '/A/b',
  '/b',
  '/b/',
  '/z',
  '/a//b',
  '/a/q;x',
);

describe('a change that applies at once', () => {
  it('makes no call more expensive for anybody', () => {
    let atOnce = 0;
    fc.assert(
      fc.property(terms, terms, fc.array(calls, { minLength: 1 }), (before, after, paths) => {
        if (mayCostMore(before, after)) return;
        atOnce++;
        for (const path of paths) {
          const [was, is] = [costs(before, 'GET', path), costs(after, 'GET', path)];
          if (was === null || is === null) continue;
          expect(is.later, path).toBeLessThanOrEqual(was.later);
          expect(is.most, path).toBeLessThanOrEqual(was.most);
          expect(is.free, path).toBeGreaterThanOrEqual(was.free);
        }
      }),
      { numRuns: 5_000 },
    );
    // Otherwise the property would hold of nothing.
    expect(atOnce).toBeGreaterThan(200);
  });
});

const of = (fields: Partial<Terms>, list: readonly (HttpTerms | ToolTerms)[] = []): Terms => ({
  priceMicros: 10,
  maxPriceMicros: null,
  freeCalls: 0,
  onlyOperations: false,
  ...fields,
  operationTerms: list.length === 0 ? null : JSON.stringify(list),
});

describe('a change is announced', () => {
  it.each<[string, Terms, Terms]>([
    ['a higher price', of({}), of({ priceMicros: 11 })],
    ['a new max price', of({}), of({ maxPriceMicros: 11 })],
    ['a higher max price', of({ maxPriceMicros: 11 }), of({ maxPriceMicros: 12 })],
    ['a fixed price instead of a max price', of({ maxPriceMicros: 11 }), of({ priceMicros: 11 })],
    ['a new max price of an operation', of({}, [['GET', '/a', 1, null]]), of({}, [['GET', '/a', 1, 2]])],
    ['fewer free calls', of({ freeCalls: 5 }), of({ freeCalls: 4 })],
    ['no free calls', of({ freeCalls: 5 }), of({})],
    ['a more expensive operation', of({}, [['GET', '/a', 1, null]]), of({}, [['GET', '/a', 2, null]])],
    ['a cheap operation that is removed', of({}, [['GET', '/a', 1, null]]), of({})],
    ['an operation that loses its own price', of({}, [['GET', '/a', 1, null]]), of({}, [['GET', '/a', null, null]])],
    [
      'a new, more expensive operation for a path that calls could use before',
      of({}),
      of({ onlyOperations: true }, [['GET', '/a', 11, null]]),
    ],
    [
      'a new, more expensive operation instead of a template',
      of({ onlyOperations: true }, [['GET', '/{x}', 1, null]]),
      of({ onlyOperations: true }, [
        ['GET', '/{x}', 1, null],
        ['GET', '/a', 2, null],
      ]),
    ],
    [
      'calls that match no operation, no longer refused, at a higher price than operations',
      of({ onlyOperations: true }, [['GET', '/{x}', 1, null]]),
      of({}, [['GET', '/{x}', 1, null]]),
    ],
    [
      'a lower price that takes free calls from an operation',
      of({ onlyOperations: true, freeCalls: 5 }, [['GET', '/a', 9, null]]),
      of({ onlyOperations: true, freeCalls: 5, priceMicros: 8 }, [['GET', '/a', 9, null]]),
    ],
    [
      'a lower price, and calls that no longer match an operation with free calls',
      of({ onlyOperations: true, freeCalls: 5 }, [
        ['GET', '/{x}', 20, null],
        ['GET', '/a', 10, null],
      ]),
      of({ onlyOperations: true, freeCalls: 5, priceMicros: 8 }, [['GET', '/{x}', 9, null]]),
    ],
    ['a more expensive tool', of({}, [['ask', 1, null]]), of({}, [['ask', 2, null]])],
    ['a cheap tool that is removed', of({}, [['ask', 1, null]]), of({})],
  ])('%s', (_, before, after) => {
    expect(mayCostMore(before, after)).toBe(true);
    expect(mayCostMore(before, before)).toBe(false);
  });
});

describe('a change applies at once', () => {
  it.each<[string, Terms, Terms]>([
    ['a lower price', of({}), of({ priceMicros: 9 })],
    [
      'a lower price, with an operation that free calls did not serve before either',
      of({ onlyOperations: true, freeCalls: 5 }, [
        ['GET', '/a', null, null],
        ['GET', '/b', 20, null],
      ]),
      of({ onlyOperations: true, freeCalls: 5, priceMicros: 9 }, [
        ['GET', '/a', null, null],
        ['GET', '/b', 20, null],
      ]),
    ],
    ['more free calls', of({ freeCalls: 5 }), of({ freeCalls: 6 })],
    ['a cheaper operation', of({}, [['GET', '/a', 2, null]]), of({}, [['GET', '/a', 1, null]])],
    [
      'an expensive operation that is removed',
      of({ onlyOperations: true }, [
        ['GET', '/a', 20, null],
        ['GET', '/b', 1, null],
      ]),
      of({ onlyOperations: true }, [['GET', '/b', 1, null]]),
    ],
    [
      'a new expensive operation for calls that were refused',
      of({ onlyOperations: true }, [['GET', '/a', 1, null]]),
      of({ onlyOperations: true }, [
        ['GET', '/a', 1, null],
        ['GET', '/b', 20, null],
      ]),
    ],
    ['another name in braces', of({}, [['GET', '/{x}', 1, null]]), of({}, [['GET', '/{y}', 1, null]])],
  ])('%s', (_, before, after) => {
    expect(mayCostMore(before, after)).toBe(false);
  });

  it('when it adds a tool that could not be called before', () => {
    const dear = of({ onlyOperations: true }, [['ask', 1, null]]);
    const more = of({ onlyOperations: true }, [
      ['ask', 1, null],
      ['think', 20, null],
    ]);
    expect(mayCostMore(dear, more)).toBe(false);
    expect(new ToolPrices([['ask', 1, null]], dear).priceOf('think')).toEqual({ refused: 'no_operation' });
  });
});
