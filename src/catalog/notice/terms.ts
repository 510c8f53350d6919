import type { Listing, NextTerms, Terms } from '../listing.ts';

/** The terms of the listing without its operations. */
const termsOf = ({ priceMicros, maxPriceMicros, freeCalls, onlyOperations, operationTerms }: Terms): Terms => ({
  priceMicros,
  maxPriceMicros,
  freeCalls,
  onlyOperations,
  operationTerms,
});

/** The listing after its next terms have come into effect. */
export function withNextTerms(listing: Listing): Listing {
  const { next } = listing;
  return next === null ? listing : { ...listing, ...termsOf(next), next: null, termsFromMs: next.fromMs };
}

export function isSameNext(a: NextTerms | null, b: NextTerms | null): boolean {
  if (a === null || b === null) return a === b;
  return a.fromMs === b.fromMs && isSameTerms(a, b);
}

const isSameTerms = (a: Terms, b: Terms): boolean =>
  a.priceMicros === b.priceMicros &&
  a.maxPriceMicros === b.maxPriceMicros &&
  a.freeCalls === b.freeCalls &&
  a.onlyOperations === b.onlyOperations &&
  a.operationTerms === b.operationTerms;
