import { CallTerms } from '../admission/call-terms.ts';
import type { Listing } from '../catalog/listing.ts';
import { mayExceed, type Price } from '../catalog/price.ts';

/**
 * The terms of a listing's calls that have their own prices. Calls with the same price share their terms, so that a batch states
 * these once.
 */
export class TermsByPrice {
  readonly #listing: Listing;
  /** By price, then by the highest price if the call is priced by use, otherwise null. */
  readonly #made = new Map<number, Map<number | null, CallTerms>>();

  constructor(listing: Listing) {
    this.#listing = listing;
  }

  at(price: Price): CallTerms {
    const { priceMicros, maxPriceMicros } = price;
    let made = this.#made.get(priceMicros);
    if (made === undefined) {
      made = new Map();
      this.#made.set(priceMicros, made);
    }
    let terms = made.get(maxPriceMicros);
    if (terms === undefined) {
      const { id, providerId, freeCalls } = this.#listing;
      // Free calls cover no operation that costs more than the listing: its provider granted them at the listing's price.
      const free = mayExceed(price, this.#listing) ? 0 : freeCalls;
      terms = new CallTerms({ id, providerId, priceMicros, maxPriceMicros, freeCalls: free });
      made.set(maxPriceMicros, terms);
    }
    return terms;
  }
}
