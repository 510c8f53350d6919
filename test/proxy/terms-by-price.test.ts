import { expect, it } from 'vitest';
import { TermsByPrice } from '../../src/proxy/terms-by-price.ts';
import { makeListing } from '../support/listings.ts';

const listing = makeListing({ priceMicros: 100, maxPriceMicros: 500, freeCalls: 3 });
const freeCallsOf = (priceMicros: number, maxPriceMicros: number | null): string => {
  const { args } = new TermsByPrice(listing).at({ priceMicros, maxPriceMicros });
  return args.split('\r\n')[3] as string;
};

it.each([
  [100, 500, '3'],
  [100, null, '3'],
  [0, 500, '3'],
  [100, 501, '0'],
  [101, null, '0'],
  [0, 9_000, '0'],
])(
  'free calls do not apply if a call may cost more than the listing: a price of %s up to %s has %s',
  (price, max, free) => {
    expect(freeCallsOf(price, max)).toBe(free);
  },
);

it('calls of one price share their terms, and calls with another maximum price do not', () => {
  const terms = new TermsByPrice(listing);
  const of = (maxPriceMicros: number | null) => terms.at({ priceMicros: 100, maxPriceMicros });
  expect(of(500)).toBe(of(500));
  expect(new Set([of(null), of(500), of(400)]).size).toBe(3);
  expect([of(null).heldMicros, of(500).heldMicros, of(500).upTo(200).heldMicros]).toEqual([100, 500, 200]);
});
