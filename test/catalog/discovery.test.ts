import { beforeEach, describe, expect, it } from 'vitest';
import { type DiscoverQuery, Discovery } from '../../src/catalog/discovery.ts';
import { LANGUAGES } from '../../src/catalog/languages.ts';
import { Snapshot } from '../../src/catalog/snapshot.ts';
import { makeListing } from '../support/listings.ts';

let snapshot: Snapshot;
let readings: number;
let discovery: Discovery;

beforeEach(() => {
  snapshot = new Snapshot();
  readings = 0;
  discovery = discoveryOver(snapshot);
});

function discoveryOver(source: Snapshot): Discovery {
  return new Discovery({
    listings: () => {
      readings++;
      return source.values();
    },
    get version() {
      return source.version;
    },
  });
}

const ask = (query: Partial<DiscoverQuery> = {}) => {
  const answer = discovery.answer({ filter: { words: [] }, sort: 'quality', language: 'en', ...query });
  if (answer === null) throw new Error('the cursor was refused');
  return answer;
};

describe('an answer of discovery', () => {
  it('is made once per version of the catalog and query', () => {
    snapshot.put(makeListing());
    const first = ask();
    expect(ask()).toBe(first);
    expect(ask({ sort: 'price' })).not.toBe(first);
    expect(ask()).toBe(first);
    const readingsBefore = readings;
    snapshot.put(makeListing());
    expect(JSON.parse(ask().body).services).toHaveLength(2);
    expect(readings).toBe(readingsBefore + 1);
  });

  it('has all of a thousand services, and beyond that a page of a hundred unless all are asked for', () => {
    for (let n = 0; n < 1_000; n++) snapshot.put(makeListing());
    const count = (query: Partial<DiscoverQuery> = {}) => JSON.parse(ask(query).body);
    expect(count().services).toHaveLength(1_000);
    expect(count()).not.toHaveProperty('next_cursor');
    snapshot.put(makeListing());
    const first = count();
    expect(first).toMatchObject({ total: 1_001, next_cursor: expect.any(String) });
    expect(first.services).toHaveLength(100);
    expect(count({ cursor: first.next_cursor }).services).toHaveLength(100);
    expect(count({ limit: 'all' }).services).toHaveLength(1_001);
    expect(count({ limit: 'all', cursor: first.next_cursor }).services).toHaveLength(901);
  });

  it('has an entity tag that differs by language, even when it has no labels', () => {
    const tags = LANGUAGES.map((language) => ask({ language }).etag);
    expect(new Set(tags).size).toBe(LANGUAGES.length);
    expect(tags.every((tag) => /^"[!-~]+"$/.test(tag))).toBe(true);
  });

  it('has the same entity tag on every gateway', () => {
    const listing = makeListing();
    snapshot.put(listing);
    const other = new Snapshot();
    other.put(makeListing());
    other.beginFullReading().finish();
    other.put({ ...listing });
    const { etag } = ask();
    discovery = discoveryOver(other);
    expect(ask().etag).toBe(etag);
  });

  it('keeps a bounded number of answers, and prefers those in use', () => {
    snapshot.put(makeListing());
    const popular = ask();
    const rare = ask({ limit: 1 });
    for (let n = 0; n < 1_000; n++) {
      ask({ filter: { words: [`w${n}`] } });
      expect(ask()).toBe(popular);
    }
    expect(ask({ limit: 1 })).not.toBe(rare);
  });

  it('keeps a bounded number of characters', () => {
    const name = 'x'.repeat(100_000);
    for (let n = 0; n < 100; n++) snapshot.put(makeListing({ name }));
    // 10 MB each: the fourth does not fit beside the first three.
    const [first, second] = [1, 2, 3, 4].map((minQuality) => ask({ filter: { words: [], minQuality } }));
    expect(ask({ filter: { words: [], minQuality: 2 } })).toBe(second);
    expect(ask({ filter: { words: [], minQuality: 1 } })).not.toBe(first);
  });
});
