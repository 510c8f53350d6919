import { usdToMicros } from '../platform/money.ts';

export const MAX_PRICE_USD = 10_000;

/** What a call costs, in micro-USD. */
export type Price = {
  /** What is charged. For a call priced by use: what is charged unless its service reports another amount. */
  readonly priceMicros: number;
  /** The highest amount that the service may report, at least `priceMicros`; null: the call is not priced by use. */
  readonly maxPriceMicros: number | null;
};

/** The own prices of an operation or a tool; null where none is stated. */
export type OwnPrice = readonly [priceMicros: number | null, maxPriceMicros: number | null];

/** The most that a call can cost: what is held for it. */
export const mostOf = ({ priceMicros, maxPriceMicros }: Price): number => maxPriceMicros ?? priceMicros;

/** Whether a call at price `a` can cost more than one at price `b`, with or without a report of the service. */
export const mayExceed = (a: Price, b: Price): boolean => a.priceMicros > b.priceMicros || mostOf(a) > mostOf(b);

/**
 * What a call of an operation costs. An operation without its own price has the listing's price and `max_price`. One that states
 * either has no `max_price` except its own: an operation with the price 0 is free, even if other calls are priced by use.
 */
export function priceOf([own, ownMax]: OwnPrice, { priceMicros, maxPriceMicros }: Price): Price {
  if (own === null && ownMax === null) return { priceMicros, maxPriceMicros };
  return { priceMicros: own ?? priceMicros, maxPriceMicros: ownMax };
}

/** A JSON number of USD → micro-USD, or what is wrong with it. */
export function parsePrice(usd: number): { readonly micros: number } | { readonly fault: string } {
  if (usd > MAX_PRICE_USD) return { fault: `must be at most ${MAX_PRICE_USD} USD` };
  const micros = usdToMicros(usd);
  return micros === null ? { fault: 'must be a number of USD, 0 or more, with at most 6 decimals' } : { micros };
}
