import { CallTerms } from '../admission/call-terms.ts';
import type { Listing } from '../catalog/listing.ts';
import { Destination, parseEndpoint } from '../upstream/index.ts';
import type { Breaker } from './breaker.ts';
import type { Breakers } from './breakers.ts';

/** A listing as calls need it. */
export type Offer = {
  /** Of the endpoint, before what the caller adds. */
  readonly basePath: string;
  /**
   * A listing's connections are its own, though others may point to the same host: whoever lists another provider's host
   * for nothing, and has it called where it hangs, must not take the connections of that provider's callers.
   */
  readonly destination: Destination;
  readonly terms: CallTerms;
  readonly breaker: Breaker;
};

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
      const { origin, basePath } = parseEndpoint(listing.endpoint);
      offer = {
        basePath,
        destination: new Destination(origin, `${listing.id} ${origin.key}`),
        terms: new CallTerms(listing),
        breaker: this.#breakers.of(listing.id, listing.endpoint),
      };
      this.#made.set(listing, offer);
    }
    return offer;
  }
}
