import { CallTerms } from '../admission/call-terms.js';
import { Destination, parseEndpoint } from '../upstream/index.js';
import { PricedTools } from './mcp/priced-tools.js';
import { PricedOperations } from './priced-operations.js';
import { hasUpstreamHeaders, UpstreamHeaders } from './upstream-headers.js';
/** Makes one offer per version of a listing: the catalog makes a new object whenever a listing changes. */
export class Offers {
    #made = new WeakMap();
    #options;
    constructor(options) {
        this.#options = options;
    }
    of(listing) {
        let offer = this.#made.get(listing);
        if (offer === undefined) {
            const { origin, basePath } = parseEndpoint(listing.endpoint);
            offer = {
                basePath,
                destination: new Destination(origin, `${listing.id} ${origin.key}`),
                idleBodyTimeoutMs: (listing.idleSeconds ?? this.#options.idleBodySeconds) * 1000,
                terms: new CallTerms(listing),
                forOwner: new CallTerms({ ...listing, priceMicros: 0, freeCalls: 0 }),
                operations: pricesOf(listing),
                tools: listing.protocol === 'mcp' ? new PricedTools(listing) : null,
                headers: hasUpstreamHeaders(listing) ? this.#headersOf(listing, origin.hostHeader) : null,
                breaker: this.#options.breakers.of(listing.id, listing.endpoint),
            };
            this.#made.set(listing, offer);
        }
        return offer;
    }
    #headersOf(listing, authority) {
        const { secrets, log } = this.#options;
        const headers = new UpstreamHeaders(listing, authority, secrets);
        if (headers.unreadable.length > 0) {
            const fields = { service_id: listing.id, unreadable: headers.unreadable };
            log.error(fields, 'secrets of this listing cannot be decrypted with SECRETS_KEY: refusing calls to it');
        }
        return headers;
    }
}
/** Only calls of an HTTP listing have their prices by method and path. */
function pricesOf(listing) {
    const { protocol, operationTerms } = listing;
    return protocol === 'mcp' || operationTerms === null ? null : new PricedOperations(listing, operationTerms);
}
//# sourceMappingURL=offers.js.map