import type { Terms } from './listing.ts';
import { ownPriceOf, parseTerms } from './operations/operation.ts';
import { mayExceed, mostOf, type Price, priceOf } from './price.ts';

/** The price of the cheapest call that buyers can make, and whether they can make one for free. */
export type CheapestCall = Price & {
  /** Whether other calls cost more. */
  readonly isLowestOfSeveral: boolean;
  /** Whether some call costs nothing: because of its price, or because free calls cover it. */
  readonly canBeFree: boolean;
};

/**
 * What searches and labels tell about a listing's price. With `only_operations` no call has the listing's own price, so the
 * operations decide. Without it most calls have that price, and no operation costs more.
 *
 * Reads up to 200 operations. Where there are many listings, call this once per version of a listing.
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
    // Free calls cover nothing that costs more than the listing.
    canBeFree: prices.some((price) => mostOf(price) === 0 || (freeCalls > 0 && !mayExceed(price, own))),
  };
}

/** Compares the prices without a report, because those are what `max_price` compares; then the most that a call can cost. */
const isCheaper = (a: Price, b: Price): boolean =>
  a.priceMicros === b.priceMicros ? mostOf(a) < mostOf(b) : a.priceMicros < b.priceMicros;
