import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Filter } from '../../../src/catalog/discovery/filter.ts';
import { SORTS, type Sort } from '../../../src/catalog/discovery/sorts.ts';
import { fold } from '../../../src/catalog/discovery/words.ts';
import type { Listing } from '../../../src/catalog/listing.ts';
import type { Quality } from '../../../src/catalog/quality.ts';
import { makeListing } from '../../support/listings.ts';
import { type Asked, Market } from './support.ts';

// What discovery must answer, computed from all listings, without any of its code but `fold`.

/** What calls of a listing may cost: the price without a report, and the most. */
function pricesOf({ priceMicros, maxPriceMicros, onlyOperations, operationTerms }: Listing) {
  const own = { price: priceMicros, most: maxPriceMicros ?? priceMicros };
  if (!onlyOperations) return [own];
  return (JSON.parse(operationTerms as string) as [string, number | null, number | null][]).map(([, price, max]) =>
    price === null && max === null ? own : { price: price ?? own.price, most: max ?? price ?? own.price },
  );
}

const lowestOf = (listing: Listing): number => Math.min(...pricesOf(listing).map(({ price }) => price));

function isFree(listing: Listing): boolean {
  const { priceMicros, maxPriceMicros, freeCalls } = listing;
  const isServed = ({ price, most }: { price: number; most: number }) =>
    freeCalls > 0 && price <= priceMicros && most <= (maxPriceMicros ?? priceMicros);
  return pricesOf(listing).some((each) => each.most === 0 || isServed(each));
}

/** The least sum over the words: 0 a word of the name, 1 a part of it, 2 a word of the description, 3 a part. Null: no match. */
function naiveRank({ name, description }: Listing, words: readonly string[]): number | null {
  const ranks = words.map((word) => {
    const pattern = word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    const whole = new RegExp(`(?<![\\p{L}\\p{M}\\p{N}])${pattern}(?![\\p{L}\\p{M}\\p{N}])`, 'u');
    if (whole.test(fold(name))) return 0;
    if (fold(name).includes(word)) return 1;
    if (whole.test(fold(description))) return 2;
    return fold(description).includes(word) ? 3 : null;
  });
  return ranks.reduce<number | null>((sum, rank) => (sum === null || rank === null ? null : sum + rank), 0);
}

const isGood = ({ value, record }: Quality, { minQuality = 0, minSuccess, maxLatencyMs }: Partial<Filter>): boolean =>
  value >= minQuality &&
  (minSuccess === undefined || (record !== null && record.successRate >= minSuccess)) &&
  (maxLatencyMs === undefined || (record !== null && record.latencyMs !== null && record.latencyMs <= maxLatencyMs));

function naive(market: Market, { q = '', filter = {}, sort }: Asked): string[] {
  const words = [...new Set(fold(q).split(/\s+/u))].filter((word) => word !== '');
  const value = (listing: Listing): number | string => {
    if (sort === 'price') return lowestOf(listing);
    if (sort === 'name') return fold(listing.name).slice(0, 120);
    return sort === 'newest' ? -listing.createdAtMs : -market.beside.qualityOf(listing.id).lowerBound;
  };
  const found = [...market.snapshot.values()].flatMap((listing) => {
    const rank = naiveRank(listing, words);
    const matches =
      listing.status === 'active' &&
      rank !== null &&
      (filter.category === undefined || listing.category === filter.category) &&
      isGood(market.beside.qualityOf(listing.id), filter) &&
      lowestOf(listing) <= (filter.maxPriceMicros ?? Number.POSITIVE_INFINITY) &&
      (filter.free === undefined || filter.free === isFree(listing));
    return matches ? [{ id: listing.id, rank: sort === undefined ? rank : 0, value: value(listing) }] : [];
  });
  const before = (a: number | string, b: number | string) => Number(a > b) - Number(a < b);
  return found.sort((a, b) => a.rank - b.rank || before(a.value, b.value) || before(a.id, b.id)).map(({ id }) => id);
}

// Few values, so that equal sort keys, shared words and parts of words are common.
const texts = fc
  .array(
    fc.constantFrom('trans', 'Translate', 'ＤＡＴＡ', 'data-base', 'a', '天気', '天気予報API', 'x.y', 'über', '   '),
    { maxLength: 5 },
  )
  .map((words) => words.join(' '));
const fields = fc.record({
  name: fc.oneof(texts, fc.constantFrom('﷽'.repeat(100), '"'.repeat(100))),
  description: texts,
  priceMicros: fc.nat(2),
  maxPriceMicros: fc.constantFrom(null, null, 2),
  freeCalls: fc.nat(1),
  onlyOperations: fc.boolean(),
  operationTerms: fc
    .array(fc.tuple(fc.constant('tool'), fc.constantFrom(null, 0, 1, 2), fc.constantFrom(null, 2)), {
      minLength: 1,
      maxLength: 3,
    })
    .map((terms) => JSON.stringify(terms)),
  category: fc.constantFrom('data', 'text', 'misc'),
  status: fc.constantFrom<Listing['status']>('active', 'active', 'active', 'paused', 'removed'),
  createdAtMs: fc.constantFrom(1, 2),
});
const qualities = fc.record({
  value: fc.constantFrom(0, 50, 50.5, 100),
  trend: fc.constantFrom(null, 0, -1.5),
  lowerBound: fc.constantFrom(0, 24.2, 50, 91),
  record: fc.option(
    fc.record({
      calls: fc.constantFrom(1, 201),
      buyers: fc.constantFrom(1, 12),
      successRate: fc.constantFrom(0.8, 1),
      latencyMs: fc.constantFrom(null, 3, 40),
    }),
  ),
});
const queries: fc.Arbitrary<Asked> = fc
  .record({
    q: fc.constantFrom(
      '',
      '',
      'trans',
      'DATA',
      'data a',
      'a',
      '気予',
      '天',
      'x.y',
      'api',
      'über trans',
      'none',
      'हिन्द',
      '野',
      'STRASSE',
      'οδος',
    ),
    category: fc.constantFrom(undefined, undefined, 'data', 'none'),
    minQuality: fc.constantFrom(undefined, undefined, 50, 50.1),
    minSuccess: fc.constantFrom(undefined, undefined, 0, 0.8, 0.9),
    maxLatencyMs: fc.constantFrom(undefined, undefined, 3, 10),
    maxPriceMicros: fc.constantFrom(undefined, undefined, 1),
    free: fc.constantFrom(undefined, undefined, true, false),
    sort: fc.constantFrom<Sort | undefined>(undefined, ...SORTS),
  })
  .map(({ q, sort, ...filter }) => ({
    q,
    ...(sort === undefined ? {} : { sort }),
    filter: Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined)),
  }));
/** A change of the listing with this number: new fields, or a new quality. */
const changes = fc.record({ which: fc.nat(), fields, quality: fc.option(qualities) });

async function change(
  market: Market,
  listings: readonly Listing[],
  { which, fields, quality }: { which: number; fields: Partial<Listing>; quality: Quality | null },
) {
  const listing = listings[which % listings.length];
  if (listing === undefined) return;
  if (quality === null) market.change(listing, fields);
  else await market.beside.setQualities(new Map([[listing.id, quality]]));
}

it('the answer equals that of a scan of all listings, for any catalog and changes, cached or not', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fields, { maxLength: 40 }),
      fc.array(queries, { minLength: 1, maxLength: 6 }),
      fc.array(changes, { maxLength: 12 }),
      async (catalog, asked, changed) => {
        const market = new Market();
        const listings = catalog.map((some) => makeListing(some));
        market.put(...listings);
        for (const next of [null, ...changed]) {
          if (next !== null) await change(market, listings, next);
          for (const query of asked) {
            const expected = naive(market, query);
            const found = await market.ask({ ...query, limit: 5 });
            expect(found.total).toBe(expected.length);
            expect(found.services.map(({ id }) => id)).toEqual(expected.slice(0, 5));
            const counts: Record<string, number> = {};
            for (const id of expected) {
              const { category = '' } = market.snapshot.get(id) ?? {};
              counts[category] = (counts[category] ?? 0) + 1;
            }
            const told = found.categories.map(({ category, services }) => [category, services]);
            expect(Object.fromEntries(told)).toEqual(counts);
          }
        }
      },
    ),
    { numRuns: 40 },
  );
});

it('pages show every unmoved listing exactly once, in order, whatever changes between them', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fields, { minLength: 1, maxLength: 30 }),
      queries,
      fc.integer({ min: 1, max: 7 }),
      fc.array(changes, { maxLength: 10 }),
      async (catalog, query, limit, changed) => {
        const market = new Market();
        const listings = catalog.map((some) => makeListing(some));
        market.put(...listings);
        const before = naive(market, query);
        const moved = new Set<string>();
        const seen: string[] = [];
        let cursor: string | undefined;
        do {
          const page = await market.ask({ ...query, limit, ...(cursor === undefined ? {} : { cursor }) });
          seen.push(...page.services.map(({ id }) => id));
          cursor = page.next_cursor;
          const next = changed.pop();
          if (next !== undefined) {
            moved.add(listings[next.which % listings.length]?.id ?? '');
            await change(market, listings, next);
          }
        } while (cursor !== undefined);
        const unmoved = (ids: readonly string[]) => ids.filter((id) => !moved.has(id));
        expect(unmoved(seen)).toEqual(unmoved(before));
      },
    ),
    { numRuns: 80 },
  );
});
