import { microsToUsd } from '../../platform/money.ts';
import type { NextTerms, Terms } from '../listing.ts';
import { operationKey, parseTerms } from '../operations/operation.ts';

/** `next_price` of a listing: what calls cost from a time on. Beside `price` and `from` it has only what changes, old and new. */
export function nextPrice(now: Terms, next: NextTerms) {
  return {
    price: microsToUsd(next.priceMicros),
    ...(next.priceMicros === now.priceMicros ? {} : { old_price: microsToUsd(now.priceMicros) }),
    from: new Date(next.fromMs).toISOString(),
    ...(next.freeCalls === now.freeCalls ? {} : { free_calls: next.freeCalls, old_free_calls: now.freeCalls }),
  };
}

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
type Priced = {
  readonly name: Named;
  readonly priceMicros: number;
  /** It has no price of its own, so its price changes with the listing's, which is told once. */
  readonly followsListing: boolean;
};

/** Operations that go have no `price`, and those that come no `old_price`. */
function changedOperations(now: Terms, next: Terms): object[] {
  const [was, is] = [pricesOf(now), pricesOf(next)];
  return [...new Map([...was, ...is])].flatMap(([key, { name }]) => {
    const [before, after] = [was.get(key), is.get(key)];
    const follows = before?.followsListing && after?.followsListing;
    if (follows || before?.priceMicros === after?.priceMicros) return [];
    return {
      ...name,
      ...(after === undefined ? {} : { price: microsToUsd(after.priceMicros) }),
      ...(before === undefined ? {} : { old_price: microsToUsd(before.priceMicros) }),
    };
  });
}

function pricesOf({ operationTerms, priceMicros }: Terms): Map<string, Priced> {
  const all = parseTerms(operationTerms ?? '[]').map((term): [string, Priced] => {
    const own = term.length === 2 ? term[1] : term[2];
    const name = term.length === 2 ? { tool: term[0] } : { method: term[0], path: term[1] };
    return [operationKey(name), { name, priceMicros: own ?? priceMicros, followsListing: own === null }];
  });
  return new Map(all);
}
