// Tested by test/web/cost.test.ts.

import type { components } from './api/schema.d.ts';
import { money } from './i18n/format.ts';

/** What a call costs. With `max_price` its service reports the cost, up to that amount; `price` is the cost without a report. */
export type Cost = { readonly price: number; readonly max_price?: number | null | undefined };

export const mostOf = ({ price, max_price: max }: Cost): number => max ?? price;

export const isByUse = ({ max_price: max }: Cost): boolean => max !== undefined && max !== null;

/** As `priceOf` in src/catalog/price.ts: an operation with its own price or maximum does not have the listing's maximum. */
export const operationCost = (own: { readonly [name in keyof Cost]?: Cost[name] | undefined }, listing: Cost): Cost =>
  own.price === undefined && own.max_price === undefined
    ? { price: listing.price, max_price: listing.max_price }
    : { price: own.price ?? listing.price, max_price: own.max_price };

type Words = {
  readonly language: string;
  readonly t: (key: 'service.upTo', values: { readonly price: string; readonly max: string }) => string;
};

/** `$0.002`, or `$0.002 up to $0.05`. */
export const costWords = ({ price, max_price: max }: Cost, { t, language }: Words): string =>
  max === undefined || max === null || max === price
    ? money(price, language)
    : t('service.upTo', { price: money(price, language), max: money(max, language) });

/**
 * The announced terms, or the present ones if nothing is announced. An announcement names the maximum only if it changes; if the
 * maximum ends, it names only the old one.
 */
export function comingCost({
  price,
  max_price: max,
  next_price: next,
}: Cost & { readonly next_price?: components['schemas']['NextPrice'] | undefined }): Cost {
  if (next === undefined) return { price, max_price: max };
  const isChanged = next.max_price !== undefined || next.old_max_price !== undefined;
  return { price: next.price, max_price: isChanged ? next.max_price : max };
}
