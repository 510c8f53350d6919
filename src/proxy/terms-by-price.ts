import { CallTerms } from '../admission/call-terms.ts';
import type { Listing } from '../catalog/listing.ts';
import { mayExceed, type Price } from '../catalog/price.ts';

/** The terms of a listing's calls that have prices of their own. Calls of one price share their terms, so that a batch states these once. */
export class TermsByPrice {
  readonly #listing: Listing;
  /** By price, then by the highest price of a call that is priced by use; null of one that is not. */
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
      // Free calls serve no operation that costs more than the listing: its provider gave them away at the listing's price.
      const free = mayExceed(price, this.#listing) ? 0 : freeCalls;
      terms = new CallTerms({ id, providerId, priceMicros, maxPriceMicros, freeCalls: free });
      made.set(maxPriceMicros, terms);
    }
    return terms;
  }
}
