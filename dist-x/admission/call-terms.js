import { freeField } from '../platform/redis-keys.js';
import { bulk } from '../platform/trip-encoder.js';
/** What a call of a listing costs, encoded for batch.lua. Make it once per version of the listing: all its calls share it. */
export class CallTerms {
    serviceId;
    providerId;
    /** Micro-USD. */
    priceMicros;
    /** Price, free calls and wallet field, encoded: the arguments of command 'P' in batch.lua. */
    args;
    /** The listing's part of the hold's text. */
    hold;
    /** @param listing with `freeCalls` 0, the listing has no free tier */
    constructor(listing) {
        this.serviceId = listing.id;
        this.providerId = listing.providerId;
        this.priceMicros = listing.priceMicros;
        this.args = bulk(String(listing.priceMicros)) + bulk(String(listing.freeCalls)) + bulk(freeField(listing.id));
        this.hold = `${listing.id}\t${listing.providerId}`;
    }
}
//# sourceMappingURL=call-terms.js.map