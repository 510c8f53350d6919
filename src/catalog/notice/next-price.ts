import { microsToUsd } from '../../platform/money.ts';
import type { NextTerms, Terms } from '../listing.ts';
import { isTool, operationKey, ownPriceOf, parseTerms } from '../operations/operation.ts';
import { type Price, priceOf } from '../price.ts';

/** `next_price` of a listing: what calls cost from a time on. Besides `price` and `from` it contains only changes, old and new. */
export function nextPrice(now: Terms, next: NextTerms) {
  return {
    price: microsToUsd(next.priceMicros),
    ...(next.priceMicros === now.priceMicros ? {} : { old_price: microsToUsd(now.priceMicros) }),
    ...(next.maxPriceMicros === now.maxPriceMicros ? {} : { ...maxOf(next), ...oldMaxOf(now) }),
    from: new Date(next.fromMs).toISOString(),
    ...(next.freeCalls === now.freeCalls ? {} : { free_calls: next.freeCalls, old_free_calls: now.freeCalls }),
  };
}

const maxOf = ({ maxPriceMicros: max }: Price) => (max === null ? {} : { max_price: microsToUsd(max) });
const oldMaxOf = ({ maxPriceMicros: max }: Price) => (max === null ? {} : { old_max_price: microsToUsd(max) });

/** As `nextPrice`, with `only_operations` if it changes, and the operations whose prices change. */
export function nextPriceWithOperations(now: Terms, next: NextTerms) {
  const operations = changedOperations(now, next);
  return {
    ...nextPrice(now, next),
    ...(next.onlyOperations === now.onlyOperations ? {} : { only_operations: next.onlyOperations }),
    ...(operations.length === 0 ? {} : { operations }),
  };
}

type Named = { readonly method: string; readonly path: string } | { readonly tool: string };
type Priced = Price & {
  readonly name: Named;
  /** The operation has no price of its own, so its price changes with the listing's, which is stated once. */
  readonly followsListing: boolean;
};

/** Removed operations have no `price`, and added ones no `old_price`. */
function changedOperations(now: Terms, next: Terms): object[] {
  const [was, is] = [pricesOf(now), pricesOf(next)];
  return [...new Map([...was, ...is])].flatMap(([key, { name }]) => {
    const [before, after] = [was.get(key), is.get(key)];
    const follows = before?.followsListing && after?.followsListing;
    if (follows || isSame(before, after)) return [];
    return {
      ...name,
      ...(after === undefined ? {} : { price: microsToUsd(after.priceMicros), ...maxOf(after) }),
      ...(before === undefined ? {} : { old_price: microsToUsd(before.priceMicros), ...oldMaxOf(before) }),
    };
  });
}

const isSame = (a: Price | undefined, b: Price | undefined): boolean =>
  a?.priceMicros === b?.priceMicros && a?.maxPriceMicros === b?.maxPriceMicros;

function pricesOf(terms: Terms): Map<string, Priced> {
  const all = parseTerms(terms.operationTerms ?? '[]').map((term): [string, Priced] => {
    const own = ownPriceOf(term);
    const name = isTool(term) ? { tool: term[0] } : { method: term[0], path: term[1] };
    return [operationKey(name), { ...priceOf(own, terms), name, followsListing: own[0] === null && own[1] === null }];
  });
  return new Map(all);
}
