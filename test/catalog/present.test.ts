import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NOTHING_BESIDE } from '../../src/catalog/beside.ts';
import { cheapestCall } from '../../src/catalog/cheapest-call.ts';
import { LANGUAGES } from '../../src/catalog/languages.ts';
import type { Listing } from '../../src/catalog/listing.ts';
import { shorten } from '../../src/catalog/listing-fields.ts';
import { DiscoverWriter, fullItem } from '../../src/catalog/present.ts';
import { makeListing, rated } from '../support/listings.ts';

/** A listing without anything beside it. */
const listed = (listing: Listing) => ({ listing, cheapest: cheapestCall(listing), ...NOTHING_BESIDE });

describe('a shortened description', () => {
  it('is whole up to 200 characters; a longer one is cut after 200 and ends with an ellipsis', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('a', 'é', '字', '😀'), { minLength: 0, maxLength: 230 }), (characters) => {
        const text = characters.join('');
        const expected = characters.length <= 200 ? text : `${characters.slice(0, 200).join('')}…`;
        expect(shorten(text)).toBe(expected);
      }),
    );
    expect(shorten('x'.repeat(200))).toBe('x'.repeat(200));
    expect(shorten('x'.repeat(201))).toBe(`${'x'.repeat(200)}…`);
    expect(shorten(`${'x'.repeat(199)}😀`)).toBe(`${'x'.repeat(199)}😀`);
    expect(shorten(`${'x'.repeat(199)}😀y`)).toBe(`${'x'.repeat(199)}😀…`);
  });
});

describe('a service of /discover', () => {
  it('has the fields of the contract in their order', () => {
    const listing = makeListing({ freeCalls: 100 });
    const quality = rated(97.4, -0.3);
    const uptime = { last_24_hours: 100, last_30_days: 99.98 };
    const text = new DiscoverWriter().write(
      { ...listed(listing), quality, uptime, profile: { displayName: 'Acme', contact: 'c', url: null }, services: 2 },
      'en',
    );
    expect(text).toBe(
      JSON.stringify({
        id: listing.id,
        name: 'Weather',
        description: 'Forecasts for every place',
        price: 0.002,
        price_label: '$0.002 per call',
        free_calls: 100,
        free_calls_label: '100 free calls',
        category: 'data',
        quality: 97.4,
        quality_trend: -0.3,
        rated: true,
        track_record: { calls: 201, success_rate: 0.995, buyers: 12, latency_ms: 3 },
        proxy_path: `/api/v1/proxy/${listing.id}/`,
        uptime,
        provider: { display_name: 'Acme' },
      }),
    );
  });

  it('has no free_calls when there are none, and a price of 0 when it is free', () => {
    const service = JSON.parse(new DiscoverWriter().write(listed(makeListing({ priceMicros: 0 })), 'en'));
    expect(service).not.toHaveProperty('free_calls');
    expect(service).not.toHaveProperty('free_calls_label');
    expect(service).not.toHaveProperty('quality_trend');
    expect(service.rated).toBe(false);
    expect(service).toMatchObject({ price: 0, price_label: 'Free' });
  });

  it('has the same fields as in /services, in every language, whatever was written before', () => {
    const writer = new DiscoverWriter();
    const listing = fc.record({
      name: fc.string(),
      description: fc.string({ maxLength: 200, unit: 'grapheme' }).filter((text) => [...text].length <= 200),
      priceMicros: fc.nat(5),
      maxPriceMicros: fc.constantFrom(null, 2, 3),
      freeCalls: fc.nat(2),
      onlyOperations: fc.boolean(),
      operationTerms: fc.constantFrom('[["a",0,null]]', '[["a",1,null],["b",2,null]]', '[["a",1,null],["b",null,3]]'),
    });
    fc.assert(
      fc.property(listing, fc.constantFrom(...LANGUAGES), (fields, language) => {
        const made = listed(makeListing(fields));
        const written = JSON.parse(writer.write(made, language));
        const { cheapest: _, ...alone } = made;
        expect(fullItem('anyone', { ...alone, language })).toMatchObject(written);
        expect(JSON.parse(writer.write(made, language))).toEqual(written);
      }),
    );
  });
});
