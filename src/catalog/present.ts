import { microsToUsd } from '../platform/money.ts';
import type { Beside } from './beside.ts';
import type { CheapestCall } from './cheapest-call.ts';
import { priceLabel } from './labels.ts';
import type { Language } from './languages.ts';
import type { Listing } from './listing.ts';
import { CALLABLE, FOUND, type FoundName, type Shown, VIEWS, writeListing } from './listing-fields.ts';
import { type Operation, ownPriceIn } from './operations/operation.ts';
import { priceOf } from './price.ts';
import { readyCall } from './ready-call.ts';

/**
 * A listing as an agent needs it to make a call: with the whole description, a ready request, and the operations, each with its
 * price.
 *
 * @param baseUrl  of the gateway, as `readyCall` takes it
 */
export function agentItem({ operations = [], ...shown }: Shown, baseUrl: string): object {
  const priced = operations.map((operation) => pricedOperation(operation, shown.listing, shown.language));
  const call = readyCall(shown.listing, operations, baseUrl);
  return { ...writeListing(CALLABLE.names, shown), call, operations: priced };
}

function pricedOperation(operation: Operation, listing: Listing, language: Language): object {
  const price = priceOf(ownPriceIn(operation), listing);
  const { priceMicros, maxPriceMicros } = price;
  return {
    ...operation,
    price: microsToUsd(priceMicros),
    ...(maxPriceMicros === null ? {} : { max_price: microsToUsd(maxPriceMicros) }),
    price_label: priceLabel(price, language),
  };
}

/** A listing as /services shows it. @param by callers who may change the listing see it as `owner` */
export const fullItem = (by: keyof typeof VIEWS, shown: Shown): Record<string, unknown> =>
  writeListing(VIEWS[by].names, shown);

/** An active listing, what its calls cost, and what else a search shows. */
export type Listed = Beside & { readonly listing: Listing; readonly cheapest: CheapestCall };

/** The labels are the only part of a search result that depends on the language. They are kept with the numbers that they show. */
const TERMS = ['price_label', 'free_calls', 'free_calls_label'] as const;
const HEAD = FOUND.names.slice(0, FOUND.names.indexOf('price_label'));
const TAIL = FOUND.names.slice(FOUND.names.indexOf('free_calls_label') + 1);

/** Maximum number of price and free-call combinations whose labels are cached per language; beyond it, all are dropped. */
const MAX_TERMS = 10_000;

/**
 * Writes services of /discover as JSON text. Labels are cached by language, prices and number of free calls, because many listings
 * share them.
 */
export class DiscoverWriter {
  readonly #terms = new Map<Language, Map<string, string>>();

  /** @param fields  the only ones that are written; absent: all */
  write(listed: Listed, language: Language, fields?: readonly FoundName[]): string {
    const { listing, cheapest, quality, uptime, profile, services } = listed;
    const shown = { listing, cheapest, quality, uptime, profile, services, language, isShort: true } as const;
    if (fields !== undefined) return JSON.stringify(writeListing(fields, shown));
    const head = JSON.stringify(writeListing(HEAD, shown)).slice(0, -1);
    const tail = JSON.stringify(writeListing(TAIL, shown)).slice(1);
    return `${head},${this.#termsOf(shown)},${tail}`;
  }

  #termsOf(shown: Shown & Listed): string {
    const { listing, cheapest, language } = shown;
    let kept = this.#terms.get(language);
    if (kept === undefined || kept.size >= MAX_TERMS) {
      kept = new Map();
      this.#terms.set(language, kept);
    }
    const { priceMicros, maxPriceMicros, isLowestOfSeveral } = cheapest;
    const key = `${priceMicros} ${maxPriceMicros} ${isLowestOfSeveral} ${listing.freeCalls}`;
    let text = kept.get(key);
    if (text === undefined) {
      text = JSON.stringify(writeListing(TERMS, shown)).slice(1, -1);
      kept.set(key, text);
    }
    return text;
  }
}
