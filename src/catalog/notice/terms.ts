import type { Listing } from '../listing.ts';

/** All that decides what a call of a listing costs. */
export type Terms = Pick<Listing, 'priceMicros' | 'freeCalls' | 'onlyOperations' | 'operationTerms'>;

/** Terms by which a call may cost more than today, and the time from which they count. */
export type NextTerms = Terms & {
  /** By the clock of Postgres. */
  readonly fromMs: number;
};

/** The terms of the listing alone. */
export const termsOf = ({ priceMicros, freeCalls, onlyOperations, operationTerms }: Terms): Terms => ({
  priceMicros,
  freeCalls,
  onlyOperations,
  operationTerms,
});

/** The listing as it is once its next terms count. */
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
  a.freeCalls === b.freeCalls &&
  a.onlyOperations === b.onlyOperations &&
  a.operationTerms === b.operationTerms;
