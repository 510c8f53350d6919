// How much is done in one turn of the event loop, counted in reads of listings' fields: looking at a listing, comparing it and writing it
// all read some. These reads drive the clock that ends steps, so a count is the same on every machine.
// How long a step takes is measured by `npm run bench -- --only discover`.

import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Listing } from '../../../src/catalog/listing.ts';
import { makeListing, rated } from '../../support/listings.ts';
import { Market, textOf } from './support.ts';

/** More than `MAX_READINGS`, so that one field read of each in one turn is too much. */
const LISTINGS = 30_000;
/** A step ends after a millisecond on its clock: after this many readings. */
const READINGS_OF_A_STEP = 1_000;
/** Maximum for one turn: a step, and the longest thing it may have begun, sorting a thousand matches. */
const MAX_READINGS = 25 * READINGS_OF_A_STEP;
const WORDS = ['Weather', 'translation', 'search', 'embedding', 'Summary', 'chart', 'address', '天気予報'];

let readings = 0;
/** Readings of what only the writing of an answer reads. */
let written = 0;

/** A listing that counts what is read of it. */
class CountedListing {
  readonly its: Listing;

  constructor(its: Listing) {
    this.its = its;
  }
}
for (const field of Object.keys(makeListing()) as (keyof Listing)[]) {
  Object.defineProperty(CountedListing.prototype, field, {
    get(this: CountedListing) {
      readings++;
      if (field === 'description') written++;
      return this.its[field];
    },
  });
}
const counted = (fields: Partial<Listing>): Listing => new CountedListing(makeListing(fields)) as unknown as Listing;

/** The most readings in one turn of the event loop while `work` ran. */
async function mostInATurn(work: () => Promise<unknown>): Promise<number> {
  const turns: number[] = [];
  let [from, isOver] = [readings, false];
  const watch = () => {
    turns.push(readings - from);
    from = readings;
    if (!isOver) setImmediate(watch);
  };
  watch();
  await work();
  await new Promise(setImmediate);
  isOver = true;
  return Math.max(...turns);
}

describe(`with ${LISTINGS} listings, one turn of the event loop does no more work than with a few listings`, () => {
  const market = new Market();
  const listings: Listing[] = [];
  const at = (i: number) => listings[i % LISTINGS] as Listing;

  beforeAll(async () => {
    vi.spyOn(performance, 'now').mockImplementation(() => readings / READINGS_OF_A_STEP);
    for (let i = 0; i < LISTINGS; i++) {
      const name = `${WORDS[i % 8]} ${i}`;
      listings.push(counted({ name, priceMicros: (i % 200) * 50, category: `c${i % 10}`, createdAtMs: i }));
    }
    // Not in the order of their ids, or there would be nothing to sort.
    market.put(...listings.map((_, i) => at(i * 7_919)));
    const most = await mostInATurn(async () => expect((await market.ask()).total).toBe(LISTINGS));
    expect(most).toBeLessThan(MAX_READINGS);
  });
  beforeEach(() => {
    written = 0;
  });
  afterAll(() => void vi.restoreAllMocks());

  it('for searches and filters, however common the words are', async () => {
    for (const asked of [
      { q: 'translat' },
      { q: 'e', limit: 1_000 },
      { q: 'a e o r c t s f p l v y', limit: 1_000 },
      { q: '気予' },
      { filter: { category: 'c3', free: false, maxPriceMicros: 5_000 }, sort: 'price' as const },
    ])
      expect(await mostInATurn(() => market.answer(asked))).toBeLessThan(MAX_READINGS);
    expect((await market.ask({ q: 'translat' })).total).toBe(LISTINGS / 8);
  });

  it.each([
    { matches: 1_050, maxPriceMicros: 3_150 },
    { matches: 2_100, maxPriceMicros: 6_650 },
  ])('for forty pages of $matches matches that are requested at once', async ({ matches, maxPriceMicros }) => {
    const filter = { category: 'c3', maxPriceMicros };
    expect((await market.ask({ filter, limit: 1 })).total).toBe(matches);
    const pages = () => Promise.all(Array.from({ length: 40 }, (_, i) => market.answer({ filter, limit: i + 1 })));
    expect(await mostInATurn(pages)).toBeLessThan(MAX_READINGS);
  });

  it('for ten callers who request the full list at once, and who share one text', async () => {
    market.put(counted({ ...(at(0) as unknown as CountedListing).its, name: 'changed', updatedAtMicros: 2e15 }));
    let bodies: AsyncIterable<Uint8Array>[] = [];
    const most = await mostInATurn(async () => {
      const answers = await Promise.all(Array.from({ length: 10 }, () => market.answer({ limit: 'all' })));
      bodies = answers.map((answer) => answer?.body as AsyncIterable<Uint8Array>);
      await Promise.all(
        bodies.slice(1).map(async (body) => {
          for await (const _ of body);
        }),
      );
    });
    expect(most).toBeLessThan(MAX_READINGS);
    expect(JSON.parse(await textOf(bodies[0] ?? '')).services).toHaveLength(LISTINGS);
    expect(written).toBeGreaterThan(LISTINGS / 2);
    expect(written).toBeLessThan(LISTINGS * 1.1);
  });

  it('for a thousand changed qualities, which move only what changed', async () => {
    const before = await market.ask({ sort: 'name', limit: 1_000 });
    const most = await mostInATurn(async () => {
      const changed = Array.from({ length: 1_000 }, (_, i) => {
        return [at(i * 29).id, rated(60 + (i % 40), 0.1)] as const;
      });
      await market.beside.setQualities(new Map(changed));
      await market.answer({ limit: 20 });
    });
    expect(most).toBeLessThan(MAX_READINGS);
    const best = await market.ask({ limit: 1_000, filter: { minQuality: 60 } });
    expect(best.total).toBe(1_000);
    const qualities = best.services.map(({ quality }) => quality);
    expect(qualities).toEqual(qualities.toSorted((a, b) => b - a));
    expect((await market.ask()).services[0]?.id).toBe(best.services[0]?.id);
    expect((await market.ask({ sort: 'name', limit: 1_000 })).services.map(({ id }) => id)).toEqual(
      before.services.map(({ id }) => id),
    );
  });
});
