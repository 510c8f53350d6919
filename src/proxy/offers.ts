import { CallTerms } from '../admission/call-terms.ts';
import { blockedBuyersIn } from '../catalog/blocked-buyers.ts';
import type { Listing } from '../catalog/listing.ts';
import type { Log } from '../observability/log.ts';
import type { OpenedSecrets, ServiceSecrets } from '../secrets/service-secrets.ts';
import { Destination, parseEndpoint } from '../upstream/index.ts';
import type { Breaker } from './breaker.ts';
import type { Breakers } from './breakers.ts';
import { PricedTools } from './mcp/priced-tools.ts';
import { PricedOperations } from './priced-operations.ts';
import { hasUpstreamHeaders, UpstreamHeaders } from './upstream-headers.ts';
import { UpstreamQuery } from './upstream-query.ts';

/** What calls need to know about a listing, computed once per version of the listing. */
export type Offer = {
  /** The path of the endpoint; the path of the call is appended to it. */
  readonly basePath: string;
  /**
   * Each listing has its own connections, even if several point to the same host. Otherwise an attacker could create a free listing
   * for another provider's host, call a path that hangs there, and use up the connections that this provider's callers need.
   */
  readonly destination: Destination;
  /** Longest silence of the service within a response. */
  readonly idleBodyTimeoutMs: number;
  /** The terms of a call at the listing's price. */
  readonly terms: CallTerms;
  /** The terms of calls by the account that sells the listing: they cost nothing, and take no free call. */
  readonly forOwner: CallTerms;
  /** Null unless an HTTP listing has operations: their calls have their own prices. */
  readonly operations: PricedOperations | null;
  /** Null unless the listing is an MCP server: its calls are priced by the tool that they call. */
  readonly tools: PricedTools | null;
  /** Null unless the listing changes the headers of its calls: it adds some, requests credentials, or has its calls signed. */
  readonly headers: UpstreamHeaders | null;
  /** Null unless the listing adds parameters to the query of its calls. */
  readonly query: UpstreamQuery | null;
  /** Pseudonyms of the buyers that the listing has blocked; null if there are none. */
  readonly blocked: ReadonlySet<string> | null;
  readonly breaker: Breaker;
};

/** What offers need in addition to the listing. */
type OffersOptions = {
  readonly breakers: Breakers;
  /** Longest silence within a response, for listings that do not state their own. */
  readonly idleBodySeconds: number;
  readonly secrets: ServiceSecrets;
  readonly log: Log;
};

/** Makes one offer per version of a listing: the catalog makes a new object whenever a listing changes. */
export class Offers {
  readonly #made = new WeakMap<Listing, Offer>();
  readonly #options: OffersOptions;

  constructor(options: OffersOptions) {
    this.#options = options;
  }

  of(listing: Listing): Offer {
    let offer = this.#made.get(listing);
    if (offer === undefined) {
      const { origin, basePath } = parseEndpoint(listing.endpoint);
      const opened = hasUpstreamHeaders(listing) ? this.#options.secrets.open(listing) : null;
      offer = {
        basePath,
        destination: new Destination(origin, `${listing.id} ${origin.key}`),
        idleBodyTimeoutMs: (listing.idleSeconds ?? this.#options.idleBodySeconds) * 1000,
        terms: new CallTerms(listing),
        forOwner: new CallTerms({ ...listing, priceMicros: 0, freeCalls: 0, maxPriceMicros: null }),
        operations: pricesOf(listing),
        tools: listing.protocol === 'mcp' ? new PricedTools(listing) : null,
        headers: opened === null ? null : this.#headersOf(listing, origin.hostHeader, opened),
        query: opened === null || opened.query.length === 0 ? null : new UpstreamQuery(opened.query),
        blocked: listing.blockedBuyers === null ? null : new Set(blockedBuyersIn(listing.blockedBuyers)),
        breaker: this.#options.breakers.of(listing.id, listing.endpoint),
      };
      this.#made.set(listing, offer);
    }
    return offer;
  }

  #headersOf(listing: Listing, authority: string, opened: OpenedSecrets): UpstreamHeaders {
    const { log } = this.#options;
    const headers = new UpstreamHeaders(listing, authority, opened);
    if (headers.unreadable.length > 0) {
      const fields = { service_id: listing.id, unreadable: headers.unreadable };
      log.error(fields, 'secrets of this listing cannot be decrypted with SECRETS_KEY: refusing calls to it');
    }
    return headers;
  }
}

/** Only calls of HTTP listings are priced by method and path. */
function pricesOf(listing: Listing): PricedOperations | null {
  const { protocol, operationTerms } = listing;
  return protocol === 'mcp' || operationTerms === null ? null : new PricedOperations(listing, operationTerms);
}
