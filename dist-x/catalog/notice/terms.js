/** The terms of the listing alone. */
const termsOf = ({ priceMicros, freeCalls, onlyOperations, operationTerms }) => ({
    priceMicros,
    freeCalls,
    onlyOperations,
    operationTerms,
});
/** The listing as it is once its next terms count. */
export function withNextTerms(listing) {
    const { next } = listing;
    return next === null ? listing : { ...listing, ...termsOf(next), next: null, termsFromMs: next.fromMs };
}
export function isSameNext(a, b) {
    if (a === null || b === null)
        return a === b;
    return a.fromMs === b.fromMs && isSameTerms(a, b);
}
const isSameTerms = (a, b) => a.priceMicros === b.priceMicros &&
    a.freeCalls === b.freeCalls &&
    a.onlyOperations === b.onlyOperations &&
    a.operationTerms === b.operationTerms;
//# sourceMappingURL=terms.js.map