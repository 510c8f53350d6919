import type { CallTerms } from '../admission/call-terms.ts';
import type { Listing } from '../catalog/listing.ts';
import { type HttpTerms, parseTerms } from '../catalog/operations/operation.ts';
import { PriceTable } from '../catalog/operations/price-table.ts';
import { ApiError } from '../errors.ts';
import { TermsByPrice } from './terms-by-price.ts';

/**
 * Headers by which a caller asks a service to use another method or path than those of the request. Frameworks that obey them would
 * carry out an expensive operation for the price of a cheap one. X-Original-URL and X-Rewrite-URL are obeyed by IIS and by older
 * versions of Symfony and Laminas.
 */
const OVERRIDES = new Set([
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  'x-original-url',
  'x-rewrite-url',
]);

/** What a call of a listing with operations costs, by its method and path. One per version of the listing. */
export class PricedOperations {
  readonly #table: PriceTable;
  readonly #listing: Listing;
  readonly #terms: TermsByPrice;

  /** @param operationTerms of the listing */
  constructor(listing: Listing, operationTerms: string) {
    this.#listing = listing;
    this.#terms = new TermsByPrice(listing);
    this.#table = new PriceTable(parseTerms(operationTerms) as readonly HttpTerms[], listing);
  }

  /** Throws the `ApiError` that the caller gets when its call matches no operation, or might be taken for one that costs more. */
  termsOf(head: CallHead, rest: string): CallTerms {
    if (this.#table.hasSeveralPrices) refuseOverrides(head);
    const priced = this.#table.priceOf(head.method, rest);
    if ('priceMicros' in priced) return this.#terms.at(priced);
    if (priced.refused === 'no_operation') {
      const details = `GET /api/v1/discover/${this.#listing.id} lists its operations.`;
      throw new ApiError('operation_not_found', `This service has no operation with this method and path. ${details}`);
    }
    const message = `A service may read this path as ${priced.spelling}, which costs more. Nothing was charged. Write the path exactly as that operation has it, or without encoded or ambiguous characters.`;
    throw new ApiError('operation_not_found', message);
  }
}

type CallHead = {
  readonly method: string;
  readonly headers: readonly string[];
  readonly query: string | undefined;
};

export function refuseOverrides({ headers, query }: CallHead): void {
  for (let i = 0; i < headers.length; i += 2) {
    // CGI and its heirs read an underscore as a dash.
    const name = (headers[i] as string).replaceAll('_', '-');
    if (!OVERRIDES.has(name)) continue;
    throw new ApiError(
      'invalid_request',
      `${name}: is refused, because the prices of this service depend on method and path. Send the request with that method and path, without this header.`,
    );
  }
  if (query !== undefined && overridesMethod(query)) {
    throw new ApiError(
      'invalid_request',
      '_method: is refused, because the prices of this service depend on the method. Send the request with that method, without this parameter.',
    );
  }
}

/**
 * The parameter `_method`, from which Laravel, Symfony and others take the method. PHP reads `.method` and ` _method` as the same
 * name, qs reads `[_method]` as that name, and Rack also separated parameters by `;`. Google's APIs have `$httpMethod`.
 */
const METHOD_PARAMETER = /^[^a-z0-9]+(?:http)?method(?![a-z0-9])/i;

function overridesMethod(query: string): boolean {
  if (!/method/i.test(query) && !query.includes('%')) return false;
  for (const name of new URLSearchParams(query.replaceAll(';', '&')).keys()) {
    if (METHOD_PARAMETER.test(name)) return true;
  }
  return false;
}
