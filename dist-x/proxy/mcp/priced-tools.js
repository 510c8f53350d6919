import { CallTerms } from '../../admission/call-terms.js';
import { parseTerms } from '../../catalog/operations/operation.js';
import { ToolPrices } from '../../catalog/operations/price-table.js';
import { ApiError } from '../../errors.js';
import { TermsByPrice } from '../terms-by-price.js';
/**
 * What a call of an MCP server costs, by the tool that its message calls. Made once per version of the listing.
 *
 * Tested by test/proxy/mcp/message.test.ts.
 */
export class PricedTools {
    #listing;
    #prices;
    #terms;
    /** Of all that is no call of a tool: it takes no free call either. */
    #forNothing;
    constructor(listing) {
        const { id, providerId, operationTerms } = listing;
        this.#listing = listing;
        this.#prices = new ToolPrices(operationTerms === null ? [] : parseTerms(operationTerms), listing);
        this.#terms = new TermsByPrice(listing);
        this.#forNothing = new CallTerms({ id, providerId, priceMicros: 0, freeCalls: 0 });
    }
    /**
     * Throws the `ApiError` that the caller gets when the listing has no such tool.
     *
     * @param tool  null if no tool is called
     */
    termsOf(tool) {
        if (tool === null)
            return this.#forNothing;
        const priced = this.#prices.priceOf(tool);
        if ('priceMicros' in priced)
            return this.#terms.at(priced.priceMicros);
        const details = `GET /api/v1/discover/${this.#listing.id} lists its tools.`;
        throw new ApiError('operation_not_found', `This service offers no tool of this name. ${details}`);
    }
}
//# sourceMappingURL=priced-tools.js.map