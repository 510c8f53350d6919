import { CallTerms } from '../../admission/call-terms.ts';
import type { Listing } from '../../catalog/listing.ts';
import { parseTerms } from '../../catalog/operations/operation.ts';
import { ToolPrices } from '../../catalog/operations/price-table.ts';
import { ApiError } from '../../errors.ts';
import { TermsByPrice } from '../terms-by-price.ts';

/**
 * What a call of an MCP server costs, by the tool that its message calls. One per version of the listing.
 *
 * Tested by test/proxy/mcp/message.test.ts.
 */
export class PricedTools {
  readonly #listing: Listing;
  readonly #prices: ToolPrices;
  readonly #terms: TermsByPrice;
  /** The terms of everything that is not a call of a tool: it takes no free call either. */
  readonly #forNothing: CallTerms;

  constructor(listing: Listing) {
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
  termsOf(tool: string | null): CallTerms {
    if (tool === null) return this.#forNothing;
    const priced = this.#prices.priceOf(tool);
    if ('priceMicros' in priced) return this.#terms.at(priced);
    const details = `GET /api/v1/discover/${this.#listing.id} lists its tools.`;
    throw new ApiError('operation_not_found', `This service offers no tool of this name. ${details}`);
  }
}
