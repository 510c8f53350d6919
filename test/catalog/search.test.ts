import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Listing } from '../../src/catalog/listing.ts';
import {
  cursorAfter,
  type Filter,
  indexAfter,
  MAX_CURSOR_LENGTH,
  Search,
  SORTS,
  type Sort,
  wordsOf,
} from '../../src/catalog/search.ts';
import { Snapshot } from '../../src/catalog/snapshot.ts';
import { makeListing } from '../support/listings.ts';

function searchOver(listings: readonly Listing[]): { search: Search; snapshot: Snapshot } {
  const snapshot = new Snapshot();
  for (const listing of listings) snapshot.put(listing);
  const search = new Search({
    listings: () => snapshot.values(),
    get version() {
      return snapshot.version;
    },
  });
  return { search, snapshot };
}

const find = (listings: readonly Listing[], filter: Partial<Filter>, sort: Sort = 'quality') =>
  searchOver(listings).search.find({ words: [], ...filter }, sort);
const names = (listings: readonly Listing[]) => listings.map(({ name }) => name);

// Few values, so that equal sort keys are common.
const someListings = fc.array(
  fc.record({
    id: fc.uuid({ version: 7 }),
    name: fc.constantFrom(
      'alpha',
      'Alpha',
      'beta',
      'ＢＥＴＡ',
      '字',
      'x'.repeat(100),
      '﷽'.repeat(100),
      '"'.repeat(100),
    ),
    priceMicros: fc.nat(2),
    quality: fc.constantFrom(0, 50, 50.5, 100),
    createdAtMs: fc.constantFrom(1, 2),
  }),
  { maxLength: 30 },
);

describe('cursor paging', () => {
  it('visits every listing exactly once, in the order of the sort, for each sort and even with equal keys', () => {
    fc.assert(
      fc.property(someListings, fc.constantFrom(...SORTS), fc.integer({ min: 1, max: 7 }), (fields, sort, limit) => {
        const { listings } = find(fields.map(makeListing), {}, sort);
        const visited: Listing[] = [];
        for (let begin: number | null = 0; begin !== null && begin < listings.length; ) {
          const page = listings.slice(begin, begin + limit);
          visited.push(...page);
          const cursor = cursorAfter(page.at(-1) as Listing, sort);
          expect(cursor.length).toBeLessThanOrEqual(MAX_CURSOR_LENGTH);
          begin = indexAfter(cursor, listings, sort);
          expect(begin).not.toBeNull();
        }
        expect(visited).toEqual(listings);
        expect(new Set(visited).size).toBe(new Set(fields.map(({ id }) => id)).size);
      }),
    );
  });

  it('continues at the same place when the listing of the cursor is gone', () => {
    fc.assert(
      fc.property(someListings, fc.constantFrom(...SORTS), fc.nat(), (fields, sort, at) => {
        const { listings } = find(fields.map(makeListing), {}, sort);
        fc.pre(listings.length > 0);
        const index = at % listings.length;
        const cursor = cursorAfter(listings[index] as Listing, sort);
        expect(indexAfter(cursor, listings.toSpliced(index, 1), sort)).toBe(index);
      }),
    );
  });

  it('refuses a text that is not a cursor of the sort, and never throws', () => {
    const id = '00000000-0000-7000-8000-000000000001';
    const coded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const bad = ['', 'x', 'null', coded(null), coded({}), coded(['price', 'a', id]), coded(['price', 1, 'no-id'])];
    bad.push(coded(['price', 1]), coded(['price', 1, id, 1]), coded(['name', 1, id]), coded(['newest', -1, id]));
    for (const cursor of bad) expect(indexAfter(cursor, [], 'price')).toBeNull();
    expect(indexAfter(coded(['price', 1, id]), [], 'price')).toBe(0);
    fc.assert(fc.property(fc.string(), (text) => indexAfter(text, [], 'price') === null));
    fc.assert(fc.property(fc.jsonValue(), (value) => indexAfter(coded(value), [], 'name') === null));
  });
});

describe('sorts', () => {
  const [a, b, c] = [
    makeListing({ name: 'b', quality: 60, priceMicros: 3, createdAtMs: 1 }),
    makeListing({ name: 'C', quality: 70, priceMicros: 1, createdAtMs: 3 }),
    makeListing({ name: 'A', quality: 50, priceMicros: 2, createdAtMs: 2 }),
  ];
  it.each([
    ['quality', ['C', 'b', 'A']],
    ['price', ['C', 'A', 'b']],
    ['name', ['A', 'b', 'C']],
    ['newest', ['C', 'A', 'b']],
  ] as const)('%s', (sort, order) => {
    expect(names(find([a, b, c], {}, sort).listings)).toEqual(order);
  });
});

describe('filters', () => {
  const listings = [
    makeListing({ name: 'Paid', priceMicros: 2_000, category: 'data', quality: 40 }),
    makeListing({ name: 'Trial', priceMicros: 5_000, freeCalls: 3, category: 'data', quality: 60 }),
    makeListing({ name: 'Gift', priceMicros: 0, category: 'fun', quality: 80, description: 'ＦＵＬＬ width\nStraße' }),
    makeListing({ name: 'Paused', status: 'paused' }),
  ];
  it.each<[Partial<Filter>, string[]]>([
    [{}, ['Gift', 'Trial', 'Paid']],
    [{ category: 'data' }, ['Trial', 'Paid']],
    [{ category: 'none' }, []],
    [{ minQuality: 60 }, ['Gift', 'Trial']],
    [{ free: true }, ['Gift', 'Trial']],
    [{ free: false }, ['Paid']],
    [{ maxPriceMicros: 2_000 }, ['Gift', 'Paid']],
    [{ maxPriceMicros: 0 }, ['Gift']],
    [{ words: wordsOf('full') }, ['Gift']],
    [{ words: wordsOf('GIFT  straße') }, ['Gift']],
    [{ words: wordsOf('gift forecasts') }, []],
    [{ words: wordsOf('forecast') }, ['Trial', 'Paid']],
    [{ words: wordsOf('gift full') }, ['Gift']],
    [{ category: 'data', free: true, minQuality: 50, words: wordsOf('tri') }, ['Trial']],
  ])('%j', (filter, expected) => {
    expect(names(find(listings, filter).listings)).toEqual(expected);
  });

  it('do not find a word across the border of name and description', () => {
    expect(names(find([makeListing({ name: 'ab', description: 'cd' })], { words: ['bc'] }).listings)).toEqual([]);
  });

  it('count the matches of each category, the largest first', () => {
    const more = [...listings, makeListing({ category: 'art' })];
    expect(find(more, {}).categories).toEqual([
      { category: 'data', services: 2 },
      { category: 'art', services: 1 },
      { category: 'fun', services: 1 },
    ]);
    expect(find(more, { free: true, category: 'data' }).categories).toEqual([{ category: 'data', services: 1 }]);
  });

  it('see the catalog as it is now, not as it was at the last search', () => {
    const { search, snapshot } = searchOver(listings);
    const before = search.find({ words: [] }, 'price').listings;
    const [first] = before as [Listing];
    snapshot.put({ ...first, status: 'paused', updatedAtMicros: first.updatedAtMicros + 1 });
    expect(search.find({ words: [] }, 'price').listings).toEqual(before.slice(1));
  });
});

describe('the words of a query', () => {
  it('are folded, each once, in one order: equal queries have equal words', () => {
    expect(wordsOf('  Beta ａlpha\tbeta ')).toEqual(['alpha', 'beta']);
    expect(wordsOf('')).toEqual([]);
    expect(wordsOf(' \u3000 ')).toEqual([]);
  });
});
