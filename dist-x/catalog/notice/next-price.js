import { microsToUsd } from '../../platform/money.js';
import { parseTerms } from '../operations/operation.js';
/** `next_price` of a listing: what calls cost from a time on. `free_calls` is there only if it changes; 0: none are left then. */
export function nextPrice(now, next) {
    return {
        price: microsToUsd(next.priceMicros),
        from: new Date(next.fromMs).toISOString(),
        ...(next.freeCalls === now.freeCalls ? {} : { free_calls: next.freeCalls }),
    };
}
/** As `nextPrice`, with `only_operations` and the prices of all operations if these change. */
export function nextPriceWithOperations(now, next) {
    const { operationTerms, onlyOperations, priceMicros } = next;
    return {
        ...nextPrice(now, next),
        ...(onlyOperations === now.onlyOperations ? {} : { only_operations: onlyOperations }),
        ...(operationTerms === now.operationTerms
            ? {}
            : { operations: parseTerms(operationTerms ?? '[]').map((term) => operationPrice(term, priceMicros)) }),
    };
}
function operationPrice(term, listingPriceMicros) {
    if (term.length === 2)
        return { tool: term[0], price: microsToUsd(term[1] ?? listingPriceMicros) };
    const [method, path, priceMicros] = term;
    return { method, path, price: microsToUsd(priceMicros ?? listingPriceMicros) };
}
//# sourceMappingURL=next-price.js.map