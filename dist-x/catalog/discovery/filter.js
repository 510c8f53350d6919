import { gramsOf } from './signatures.js';
import { NO_MATCH, rankOf, searchedText } from './words.js';
/** The same text for filters that ask for the same thing. */
export function keyOfFilter({ category, minQuality, words, free, maxPriceMicros }) {
    return JSON.stringify([category, minQuality, free, maxPriceMicros, words]);
}
export const MATCHES_ALL = { hasTerms: () => true, rankOf: () => 0 };
export function matcherOf(filter, signatures) {
    // A long word is rare, and a listing without it needs no look for the others.
    const words = filter.words.toSorted((a, b) => b.length - a.length);
    const grams = gramsOf(words);
    return {
        hasTerms: ({ listing, quality }) => hasTerms(listing, quality.value, filter),
        rankOf: ({ listing, signature, searched }) => {
            if (words.length === 0)
                return 0;
            if (!signatures.mayContain(signature, grams))
                return NO_MATCH;
            return rankOf(searched ?? searchedText(listing.name, listing.description), words);
        },
    };
}
function hasTerms(listing, quality, filter) {
    if (filter.category !== undefined && listing.category !== filter.category)
        return false;
    if (filter.minQuality !== undefined && quality < filter.minQuality)
        return false;
    if (filter.maxPriceMicros !== undefined && listing.priceMicros > filter.maxPriceMicros)
        return false;
    return filter.free === undefined || filter.free === (listing.priceMicros === 0 || listing.freeCalls > 0);
}
//# sourceMappingURL=filter.js.map