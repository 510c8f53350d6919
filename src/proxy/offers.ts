import { CallTerms } from '../admission/call-terms.ts';
import type { Listing } from '../catalog/listing.ts';
import { Destination, parseEndpoint } from '../upstream/index.ts';
import type { Breaker } from './breaker.ts';
import type { Breakers } from './breakers.ts';
import { PricedTools } from './mcp/priced-tools.ts';
import { PricedOperations } from './priced-operations.ts';

/** What calls need to know of a listing, worked out once per version of the listing. */
export type Offer = {
  /** The path of the endpoint; the path of the call is appended to it. */
  readonly basePath: string;
  /**
   * Each listing has connections of its own, even when several point to the same host. Otherwise an attacker could create a
   * free listing for another provider's host, call a path that hangs there, and use up the connections that this provider's
   * callers need.
   */
  readonly destination: Destination;
  /** Longest silence of the service within a response. */
  readonly idleBodyTimeoutMs: number;
  /** Of a call at the listing's price. */
  readonly terms: CallTerms;
  /** Of calls by the account that sells it: they cost nothing, and take no free call. */
  readonly forOwner: CallTerms;
  /** Null unless an HTTP listing has operations: their calls have prices of their own. */
  readonly operations: PricedOperations | null;
  /** Null unless the listing is an MCP server: its calls have prices by the tool that they call. */
  readonly tools: PricedTools | null;
  readonly breaker: Breaker;
};

/** Makes one offer per version of a listing: the catalog makes a new object whenever a listing changes. */
export class Offers {
  readonly #made = new WeakMap<Listing, Offer>();
  readonly #breakers: Breakers;
  readonly #idleBodySeconds: number;

  /** @param idleBodySeconds  longest silence within a response of a listing that does not state its own */
  constructor(breakers: Breakers, idleBodySeconds: number) {
    this.#breakers = breakers;
    this.#idleBodySeconds = idleBodySeconds;
  }

  of(listing: Listing): Offer {
    let offer = this.#made.get(listing);
    if (offer === undefined) {
      const { origin, basePath } = parseEndpoint(listing.endpoint);
      offer = {
        basePath,
        destination: new Destination(origin, `${listing.id} ${origin.key}`),
        idleBodyTimeoutMs: (listing.idleSeconds ?? this.#idleBodySeconds) * 1000,
        terms: new CallTerms(listing),
        forOwner: new CallTerms({ ...listing, priceMicros: 0, freeCalls: 0 }),
        operations: pricesOf(listing),
        tools: listing.protocol === 'mcp' ? new PricedTools(listing) : null,
        breaker: this.#breakers.of(listing.id, listing.endpoint),
      };
      this.#made.set(listing, offer);
    }
    return offer;
  }
}

/** Only calls of an HTTP listing have their prices by method and path. */
function pricesOf(listing: Listing): PricedOperations | null {
  const { protocol, operationTerms } = listing;
  return protocol === 'mcp' || operationTerms === null ? null : new PricedOperations(listing, operationTerms);
}
