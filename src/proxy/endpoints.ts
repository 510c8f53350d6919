import type { Listing } from '../catalog/listing.ts';
import { type Endpoint, parseEndpoint } from '../upstream/index.ts';

/** The parsed endpoint of a listing, made once per version of the listing: a listing that changes is a new object. */
export class EndpointCache {
  readonly #parsed = new WeakMap<Listing, Endpoint>();

  of(listing: Listing): Endpoint {
    let endpoint = this.#parsed.get(listing);
    if (endpoint === undefined) {
      endpoint = parseEndpoint(listing.endpoint);
      this.#parsed.set(listing, endpoint);
    }
    return endpoint;
  }
}
