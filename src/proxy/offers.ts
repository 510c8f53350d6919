import { CallTerms } from '../admission/call-terms.ts';
import type { Listing } from '../catalog/listing.ts';
import { type Endpoint, parseEndpoint } from '../upstream/index.ts';

/** A listing as calls need it. */
export type Offer = { readonly endpoint: Endpoint; readonly terms: CallTerms };

/** Made once per version of a listing: one that changes is a new object. */
export class Offers {
  readonly #made = new WeakMap<Listing, Offer>();

  of(listing: Listing): Offer {
    let offer = this.#made.get(listing);
    if (offer === undefined) {
      offer = { endpoint: parseEndpoint(listing.endpoint), terms: new CallTerms(listing) };
      this.#made.set(listing, offer);
    }
    return offer;
  }
}
