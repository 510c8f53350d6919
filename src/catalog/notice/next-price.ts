import { microsToUsd } from '../../platform/money.ts';
import type { NextTerms, Terms } from '../listing.ts';
import { type HttpTerms, parseTerms, type ToolTerms } from '../operations/operation.ts';

/** `next_price` of a listing: what calls cost from a time on. `free_calls` is there only if it changes; 0: none are left then. */
export function nextPrice(now: Terms, next: NextTerms) {
  return {
    price: microsToUsd(next.priceMicros),
    from: new Date(next.fromMs).toISOString(),
    ...(next.freeCalls === now.freeCalls ? {} : { free_calls: next.freeCalls }),
  };
}

/** As `nextPrice`, with `only_operations` and the prices of all operations if these change. */
export function nextPriceWithOperations(now: Terms, next: NextTerms) {
  const { operationTerms, onlyOperations, priceMicros } = next;
  return {
    ...nextPrice(now, next),
    ...(onlyOperations === now.onlyOperations ? {} : { only_operations: onlyOperations }),
    ...(operationTerms === now.operationTerms
      ? {}
      : { operations: parseTerms(operationTerms ?? '[]').map((term) => operationPrice(term, priceMicros)) }),
  };
}

function operationPrice(term: HttpTerms | ToolTerms, listingPriceMicros: number) {
  if (term.length === 2) return { tool: term[0], price: microsToUsd(term[1] ?? listingPriceMicros) };
  const [method, path, priceMicros] = term;
  return { method, path, price: microsToUsd(priceMicros ?? listingPriceMicros) };
}
