import { CallTerms } from '../admission/call-terms.ts';
import type { Listing } from '../catalog/listing.ts';
import { type Endpoint, parseEndpoint } from '../upstream/index.ts';
import type { Breaker } from './breaker.ts';
import type { Breakers } from './breakers.ts';

/** A listing as calls need it. */
export type Offer = { readonly endpoint: Endpoint; readonly terms: CallTerms; readonly breaker: Breaker };

/** Made once per version of a listing: one that changes is a new object. */
export class Offers {
  readonly #made = new WeakMap<Listing, Offer>();
  readonly #breakers: Breakers;

  constructor(breakers: Breakers) {
    this.#breakers = breakers;
  }

  of(listing: Listing): Offer {
    let offer = this.#made.get(listing);
    if (offer === undefined) {
      offer = {
        endpoint: parseEndpoint(listing.endpoint),
        terms: new CallTerms(listing),
        breaker: this.#breakers.of(listing.id, listing.endpoint),
      };
      this.#made.set(listing, offer);
    }
    return offer;
  }
}
