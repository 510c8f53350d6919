import { describe, expect, it } from 'vitest';
import { LANGUAGES } from '../../../src/catalog/languages.ts';
import { makeListing, rated } from '../../support/listings.ts';
import { until } from '../../support/wait.ts';
import { Market, textOf } from './support.ts';

const many = (count: number, fields = {}) => Array.from({ length: count }, () => makeListing(fields));

it('discovery returns all of a thousand services, and pages of a hundred beyond that unless all are requested', async () => {
  const market = new Market();
  market.put(...many(1_000));
  expect((await market.ask()).services).toHaveLength(1_000);
  expect(await market.ask()).not.toHaveProperty('next_cursor');
  market.put(makeListing());
  const first = await market.ask();
  expect(first).toMatchObject({ total: 1_001, next_cursor: expect.any(String) });
  expect(first.services).toHaveLength(100);
  const { next_cursor: cursor = '' } = first;
  expect((await market.ask({ cursor })).services).toHaveLength(100);
  expect((await market.ask({ limit: 'all' })).services).toHaveLength(1_001);
  expect((await market.ask({ limit: 'all', cursor })).services).toHaveLength(901);
});

it('a full list is sent in pieces, and shows the state of one moment however slowly it is read', async () => {
  const market = new Market();
  const listings = many(1_500, { priceMicros: 1 });
  market.put(...listings);
  for (const asked of [
    { limit: 'all' },
    { limit: 'all', q: 'weather' },
    { limit: 'all', filter: { category: 'data' } },
  ] as const) {
    const expected = await market.body(asked);
    const answer = await market.answer(asked);
    const body = answer?.body as AsyncIterable<Uint8Array>;
    const pieces: Uint8Array[] = [];
    for await (const piece of body) {
      pieces.push(piece);
      const listing = listings[(pieces.length * 97) % 1_500];
      if (listing !== undefined) market.change(listing, { status: 'paused' });
      if (pieces.length % 5 === 0) await market.answer({ limit: 1 });
    }
    expect(pieces.length).toBeGreaterThan(10);
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(100_000);
    expect(Buffer.concat(pieces).toString()).toBe(expected);
    expect(await market.etag(asked)).not.toBe(answer?.etag);
    for (const listing of listings) market.change(listing, { status: 'active' });
    // The same services again: the same bytes, and the same tag.
    expect(await market.etag(asked)).toBe(answer?.etag);
    expect(await market.body(asked)).toBe(expected);
  }
});

it('pieces and pages are made once, and made again only when a service on them changes', async () => {
  const market = new Market();
  const listings = many(2_000).map((listing, i) => ({
    ...listing,
    name: `n${String(i).padStart(4, '0')}`,
    category: i < 1_000 ? 'data' : 'text',
  }));
  market.put(...listings);
  const piecesOf = async () => {
    const pieces: Uint8Array[] = [];
    const body = (await market.answer({ sort: 'name', limit: 'all' }))?.body as AsyncIterable<Uint8Array>;
    for await (const piece of body) pieces.push(piece);
    return pieces.slice(2, -1);
  };
  const before = await piecesOf();
  const [page, filtered] = [
    await market.answer({ sort: 'name' }),
    await market.answer({ filter: { category: 'data' }, limit: 20 }),
  ];
  market.change(listings[1_999] as (typeof listings)[number], { priceMicros: 77 });
  await market.beside.setQualities(new Map([[listings[1_998]?.id ?? '', rated(99)]]));
  const after = await piecesOf();
  expect(after.filter((piece) => !before.includes(piece))).toHaveLength(1);
  expect((await market.answer({ sort: 'name' }))?.body).toBe(page?.body);
  expect(await market.answer({ filter: { category: 'data' }, limit: 20 })).toBe(filtered);
  market.change(listings[5] as (typeof listings)[number], { priceMicros: 77 });
  expect((await market.answer({ sort: 'name' }))?.etag).not.toBe(page?.etag);
});

it('discovery has an entity tag that differs by language, even without labels', async () => {
  const market = new Market();
  for (const services of [0, 1_001]) {
    market.put(...many(services));
    const tags = await Promise.all(LANGUAGES.map((language) => market.etag({ language, limit: 'all' })));
    expect(new Set(tags).size).toBe(LANGUAGES.length);
    expect(tags.every((tag) => /^"[!-~]+"$/.test(tag))).toBe(true);
  }
});

it('discovery has the same entity tags and bytes on every gateway, whatever changes each gateway has seen before', async () => {
  const [one, other] = [new Market(), new Market()];
  const listings = many(1_200);
  one.put(...listings);
  const [gone, ...rest] = many(50);
  other.put(...rest, gone as (typeof rest)[number], ...listings.toReversed());
  await other.ask();
  for (const listing of [...rest, gone as (typeof rest)[number]]) other.change(listing, { status: 'removed' });
  for (const asked of [{}, { limit: 'all' }, { q: 'weather', limit: 'all' }, { sort: 'name', limit: 7 }] as const) {
    expect(await other.etag(asked)).toBe(await one.etag(asked));
    expect(await other.body(asked)).toBe(await one.body(asked));
  }
});

it('discovery reduces long answers too, with an entity tag for each choice of fields, and caches none of them', async () => {
  const market = new Market();
  market.put(...many(1_200));
  const asked = { sort: 'name', limit: 'all' } as const;
  const fields = ['id', 'price'] as const;
  const [whole, thin] = [await market.ask(asked), await market.ask({ ...asked, fields })];
  expect(thin).toEqual({
    ...whole,
    services: whole.services.map((service) => ({ id: service.id, price: (service as { price?: number }).price })),
  });
  const etags = [
    await market.etag(asked),
    await market.etag({ ...asked, fields }),
    await market.etag({ ...asked, fields: ['id'] }),
  ];
  expect(new Set(etags).size).toBe(3);
  // Whole answers are as they were before somebody asked for less.
  expect(await market.ask(asked)).toEqual(whole);
});

it('the entity tag changes when a hidden part of a description changes the order', async () => {
  const market = new Market();
  const unseen = (word: string) => ({ description: `${'. '.repeat(150)}${word}` });
  const listings = many(1_001, unseen('translated'));
  market.put(...listings);
  const asked = { q: 'translate', limit: 'all' } as const;
  const [tag, body] = [await market.etag(asked), await market.body(asked)];
  market.change(listings[500] as (typeof listings)[number], unseen('translate'));
  expect(await market.body(asked)).not.toBe(body);
  expect(await market.etag(asked)).not.toBe(tag);
});

it('discovery counts at most 500 categories, the largest ones', async () => {
  const market = new Market();
  // Added from the smallest to the largest, so that every one displaces another.
  for (let i = 0; i < 2_000; i++) market.put(...many(i < 1_990 ? 1 : 2, { category: `c${9_999 - i}` }));
  const { categories, total } = await market.ask({ limit: 1 });
  expect(total).toBe(2_010);
  const expected = Array.from({ length: 2_000 }, (_, i) => `c${8_000 + i}`).slice(0, 500);
  expect(categories.map(({ category }) => category)).toEqual(expected);
  expect(categories.map(({ services }) => services)).toEqual(expected.map((_, i) => (i < 10 ? 2 : 1)));
});

describe('a failure of the index', () => {
  it.each([1, 40])('is logged, and everything is read again (%i changes)', async (changes) => {
    const market = new Market(0);
    const listings = many(200);
    market.put(...listings);
    await market.ask();
    market.onRead = () => {
      market.onRead = () => {};
      throw new Error('on purpose');
    };
    for (const listing of listings.slice(0, changes)) market.change(listing, { name: 'changed' });
    await expect(market.ask()).rejects.toMatchObject({ code: 'unavailable' });
    expect(market.faults).toEqual([expect.objectContaining({ err: new Error('on purpose') })]);
    await until(() => market.ask({ q: 'changed' }).catch(() => null));
    expect((await market.ask({ q: 'changed' })).total).toBe(changes);
    expect((await market.ask()).total).toBe(200);
    market.put(makeListing());
    expect((await market.ask()).total).toBe(201);
    expect(market.faults).toHaveLength(1);
  });

  it('is retried only after a pause if it persists, and does not make a start fail', async () => {
    const market = new Market(100);
    market.onRead = () => {
      throw new Error('on purpose');
    };
    market.put(...many(40));
    await market.discovery.current();
    const began = performance.now();
    await until(() => market.faults.length === 4);
    expect(performance.now() - began).toBeGreaterThan(250);
  });
});

it('discovery keeps a bounded number of pages, and prefers those in use', async () => {
  const market = new Market();
  market.put(...many(300));
  const popular = await market.answer({ limit: 1_000 });
  const rare = await market.answer({ limit: 1 });
  for (let limit = 2; limit < 300; limit++) {
    await market.answer({ limit });
    expect(await market.answer({ limit: 1_000 })).toBe(popular);
  }
  expect(await market.answer({ limit: 1 })).not.toBe(rare);
});

it('discovery makes an answer once when it is requested many times at once', async () => {
  const market = new Market();
  market.put(...many(10));
  const answers = await Promise.all(Array.from({ length: 20 }, () => market.answer({ q: 'forecasts' })));
  expect(new Set(answers).size).toBe(1);
});

it('discovery refuses more simultaneous new searches than it has room for, and still serves cached ones', async () => {
  const market = new Market();
  market.put(...many(10));
  await market.ask({ q: 'weather' });
  const outcomes = await Promise.allSettled(Array.from({ length: 100 }, (_, i) => market.ask({ q: `word${i}` })));
  const refused = outcomes.filter(({ status }) => status === 'rejected');
  expect(refused).toHaveLength(36);
  expect(refused[0]).toMatchObject({ reason: { code: 'unavailable' } });
  expect((await market.ask({ q: 'weather' })).total).toBe(10);
  expect((await market.ask({ q: 'word99' })).total).toBe(0);
});

it('bodies that nobody reads cost nothing', async () => {
  const market = new Market();
  market.put(...many(2_000));
  const unread = await Promise.all(Array.from({ length: 100 }, () => market.answer({ limit: 'all' })));
  expect(new Set(unread.map((answer) => answer?.etag)).size).toBe(1);
  expect(JSON.parse(await textOf(unread[99]?.body ?? '')).services).toHaveLength(2_000);
});
