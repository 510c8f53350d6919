import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Terms } from '../../../src/catalog/listing.ts';
import { mayCostMore } from '../../../src/catalog/notice/may-cost-more.ts';
import type { HttpTerms, ToolTerms } from '../../../src/catalog/operations/operation.ts';
import { PriceTable, ToolPrices } from '../../../src/catalog/operations/price-table.ts';

/** What a caller that has used no free call pays, and one that has used all of them; null if the call is refused. */
function costs(terms: Terms, method: string, path: string): { first: number; later: number; free: number } | null {
  const entries = JSON.parse(terms.operationTerms ?? '[]') as HttpTerms[];
  const priced =
    entries.length === 0 && !terms.onlyOperations
      ? { priceMicros: terms.priceMicros }
      : new PriceTable(entries, terms).priceOf(method, path);
  if ('refused' in priced) return null;
  const { priceMicros } = priced;
  const free = priceMicros > 0 && priceMicros <= terms.priceMicros ? terms.freeCalls : 0;
  return { first: free > 0 ? 0 : priceMicros, later: priceMicros, free: priceMicros === 0 ? Infinity : free };
}

const price = fc.constantFrom(0, 1, 2, 3, 4);
const PATHS = ['/a', '/a/b', '/a/{x}', '/a/{x}/c', '/a/*', '/*', '/{x}', '/b/', '/b'];
const operations = fc
  .uniqueArray(fc.record({ path: fc.constantFrom(...PATHS), price: fc.option(price) }), {
    maxLength: 4,
    selector: ({ path }) => path,
  })
  .map((list) => list.map(({ path, price: own }): HttpTerms => ['GET', path, own]));
/** Terms that Postgres would take: without `only_operations` no operation is dearer than the listing. */
const terms: fc.Arbitrary<Terms> = fc
  .record({ priceMicros: price, freeCalls: fc.constantFrom(0, 0, 5, 9), onlyOperations: fc.boolean(), operations })
  .filter(
    ({ onlyOperations, operations: list, priceMicros }) =>
      (onlyOperations ? list.length > 0 : true) &&
      (onlyOperations || list.every(([, , own]) => (own ?? 0) <= priceMicros)),
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

describe('a change that counts at once', () => {
  it('makes no call of anybody dearer', () => {
    let atOnce = 0;
    fc.assert(
      fc.property(terms, terms, fc.array(calls, { minLength: 1 }), (before, after, paths) => {
        if (mayCostMore(before, after)) return;
        atOnce++;
        for (const path of paths) {
          const [was, is] = [costs(before, 'GET', path), costs(after, 'GET', path)];
          if (was === null || is === null) continue;
          expect(is.later, path).toBeLessThanOrEqual(was.later);
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
  freeCalls: 0,
  onlyOperations: false,
  ...fields,
  operationTerms: list.length === 0 ? null : JSON.stringify(list),
});

describe('a change is announced', () => {
  it.each<[string, Terms, Terms]>([
    ['a higher price', of({}), of({ priceMicros: 11 })],
    ['fewer free calls', of({ freeCalls: 5 }), of({ freeCalls: 4 })],
    ['no free calls', of({ freeCalls: 5 }), of({})],
    ['a dearer operation', of({}, [['GET', '/a', 1]]), of({}, [['GET', '/a', 2]])],
    ['a cheap operation that goes', of({}, [['GET', '/a', 1]]), of({})],
    ['an operation that loses its own price', of({}, [['GET', '/a', 1]]), of({}, [['GET', '/a', null]])],
    ['a new dear operation for what any call was', of({}), of({ onlyOperations: true }, [['GET', '/a', 11]])],
    [
      'a new dear operation in the place of a template',
      of({ onlyOperations: true }, [['GET', '/{x}', 1]]),
      of({ onlyOperations: true }, [
        ['GET', '/{x}', 1],
        ['GET', '/a', 2],
      ]),
    ],
    [
      'other calls beside cheap operations',
      of({ onlyOperations: true }, [['GET', '/{x}', 1]]),
      of({}, [['GET', '/{x}', 1]]),
    ],
    [
      'a lower price that takes free calls from an operation',
      of({ onlyOperations: true, freeCalls: 5 }, [['GET', '/a', 9]]),
      of({ onlyOperations: true, freeCalls: 5, priceMicros: 8 }, [['GET', '/a', 9]]),
    ],
    [
      'a lower price, and an operation with free calls that becomes one without',
      of({ onlyOperations: true, freeCalls: 5 }, [
        ['GET', '/{x}', 20],
        ['GET', '/a', 10],
      ]),
      of({ onlyOperations: true, freeCalls: 5, priceMicros: 8 }, [['GET', '/{x}', 9]]),
    ],
    ['a dearer tool', of({}, [['ask', 1]]), of({}, [['ask', 2]])],
    ['a cheap tool that goes', of({}, [['ask', 1]]), of({})],
  ])('%s', (_, before, after) => {
    expect(mayCostMore(before, after)).toBe(true);
    expect(mayCostMore(before, before)).toBe(false);
  });
});

describe('a change counts at once', () => {
  it.each<[string, Terms, Terms]>([
    ['a lower price', of({}), of({ priceMicros: 9 })],
    [
      'a lower price, beside an operation that no free call served before either',
      of({ onlyOperations: true, freeCalls: 5 }, [
        ['GET', '/a', null],
        ['GET', '/b', 20],
      ]),
      of({ onlyOperations: true, freeCalls: 5, priceMicros: 9 }, [
        ['GET', '/a', null],
        ['GET', '/b', 20],
      ]),
    ],
    ['more free calls', of({ freeCalls: 5 }), of({ freeCalls: 6 })],
    ['a cheaper operation', of({}, [['GET', '/a', 2]]), of({}, [['GET', '/a', 1]])],
    [
      'a dear operation that goes',
      of({ onlyOperations: true }, [
        ['GET', '/a', 20],
        ['GET', '/b', 1],
      ]),
      of({ onlyOperations: true }, [['GET', '/b', 1]]),
    ],
    [
      'a new dear operation for what was refused',
      of({ onlyOperations: true }, [['GET', '/a', 1]]),
      of({ onlyOperations: true }, [
        ['GET', '/a', 1],
        ['GET', '/b', 20],
      ]),
    ],
    ['another name in braces', of({}, [['GET', '/{x}', 1]]), of({}, [['GET', '/{y}', 1]])],
  ])('%s', (_, before, after) => {
    expect(mayCostMore(before, after)).toBe(false);
  });

  it('of a tool: as a call of it costs', () => {
    const dear = of({ onlyOperations: true }, [['ask', 1]]);
    const more = of({ onlyOperations: true }, [
      ['ask', 1],
      ['think', 20],
    ]);
    expect(mayCostMore(dear, more)).toBe(false);
    expect(new ToolPrices([['ask', 1]], dear).priceOf('think')).toEqual({ refused: 'no_operation' });
  });
});
