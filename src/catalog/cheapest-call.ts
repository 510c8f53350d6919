import type { Terms } from './listing.ts';
import { ownPriceOf, parseTerms } from './operations/operation.ts';
import { mayExceed, mostOf, type Price, priceOf } from './price.ts';

/** The price of the cheapest call that buyers can make, and whether they can make one for nothing. */
export type CheapestCall = Price & {
  /** Other calls cost more. */
  readonly isLowestOfSeveral: boolean;
  /** Some call costs nothing: because of its price, or because free calls serve it. */
  readonly canBeFree: boolean;
};

/**
 * What searches and labels tell of a listing's price. With `only_operations` no call has the listing's own price, so the operations
 * decide. Without it most calls have that price, and no operation costs more.
 *
 * Reads up to 200 operations: made once per version of a listing where there are many listings.
 */
export function cheapestCall(terms: Terms): CheapestCall {
  const { priceMicros, maxPriceMicros, freeCalls, onlyOperations, operationTerms } = terms;
  const own = { priceMicros, maxPriceMicros };
  const prices =
    onlyOperations && operationTerms !== null
      ? parseTerms(operationTerms).map((term) => priceOf(ownPriceOf(term), terms))
      : [own];
  const cheapest = prices.reduce((a, b) => (isCheaper(b, a) ? b : a));
  return {
    ...cheapest,
    isLowestOfSeveral: prices.some((price) => isCheaper(cheapest, price)),
    // Free calls serve nothing that costs more than the listing.
    canBeFree: prices.some((price) => mostOf(price) === 0 || (freeCalls > 0 && !mayExceed(price, own))),
  };
}

/** By the price without a report, because that is what `max_price` compares; then by the most that a call can cost. */
const isCheaper = (a: Price, b: Price): boolean =>
  a.priceMicros === b.priceMicros ? mostOf(a) < mostOf(b) : a.priceMicros < b.priceMicros;
