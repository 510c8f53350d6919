import { CallTerms } from '../admission/call-terms.js';
/** The terms of a listing's calls that have prices of their own. Calls of one price share their terms, so that a batch states these once. */
export class TermsByPrice {
    #listing;
    #made = new Map();
    constructor(listing) {
        this.#listing = listing;
    }
    at(priceMicros) {
        let terms = this.#made.get(priceMicros);
        if (terms === undefined) {
            const { id, providerId, freeCalls, priceMicros: listingPrice } = this.#listing;
            // Free calls serve no operation that costs more than the listing: its provider gave them away at the listing's price.
            terms = new CallTerms({ id, providerId, priceMicros, freeCalls: priceMicros > listingPrice ? 0 : freeCalls });
            this.#made.set(priceMicros, terms);
        }
        return terms;
    }
}
//# sourceMappingURL=terms-by-price.js.map