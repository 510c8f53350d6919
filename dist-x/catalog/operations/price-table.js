import { Matcher } from './matcher.js';
import { comesFirst, looseTemplate, mayMean, readingsOf, surelyMatches, } from './spelling.js';
import { parseTemplate } from './template.js';
/**
 * The prices of a listing's operations, compiled once per version of the listing. A call is priced by the operation whose template
 * its path matches byte for byte. A service may read another path in the same bytes: a path that matches a cheap operation, but that
 * some server would take for a more expensive one, is refused. So no spelling reaches an expensive operation at a low price. A path that is
 * spelled exactly as a literal template is never refused, nor is one that matches both byte for byte.
 *
 * Tested by test/catalog/operations/price-table.test.ts.
 */
export class PriceTable {
    #methods = new Map();
    #onlyOperations;
    #listingPriceMicros;
    /** Whether calls differ in price: only then can a caller gain by an override of the method. */
    hasSeveralPrices;
    constructor(terms, listing) {
        this.#onlyOperations = listing.onlyOperations;
        this.#listingPriceMicros = listing.priceMicros;
        for (const [method, path, price] of terms)
            this.#add(method, path, price ?? listing.priceMicros);
        const prices = new Set([...this.#methods.values()].flatMap(({ entries }) => entries.map((e) => e.priceMicros)));
        if (!listing.onlyOperations)
            prices.add(listing.priceMicros);
        this.hasSeveralPrices = prices.size > 1;
        for (const { entries } of this.#methods.values())
            entries.sort((a, b) => b.priceMicros - a.priceMicros);
    }
    /** @param rest what follows the service id in the path: '' or '/…' */
    priceOf(method, rest) {
        const table = this.#methods.get(method === 'HEAD' ? 'GET' : method);
        const found = table?.matcher.find(rest) ?? null;
        if (table === undefined || found === null) {
            return this.#onlyOperations ? { refused: 'no_operation' } : { priceMicros: this.#listingPriceMicros };
        }
        if (found.isLiteral || !this.hasSeveralPrices)
            return found;
        const readings = readingsOf(rest);
        // Some server may see a path that no operation has, for example one that drops what `*` matches.
        if (!this.#onlyOperations && !surelyMatches(readings, found.loose)) {
            return { priceMicros: this.#listingPriceMicros };
        }
        const costlier = costlierMeaning(table.entries, found, readings);
        return costlier === null ? found : { refused: 'ambiguous', spelling: costlier.path };
    }
    #add(method, path, priceMicros) {
        const template = segmentsOf(path);
        let table = this.#methods.get(method);
        if (table === undefined) {
            table = { matcher: new Matcher(), entries: [] };
            this.#methods.set(method, table);
        }
        const isLiteral = template.every((segment) => segment.kind === 'literal');
        const entry = { path, priceMicros, isLiteral, loose: looseTemplate(template) };
        table.matcher.add(template, entry);
        table.entries.push(entry);
    }
}
function costlierMeaning(entries, found, readings) {
    for (const entry of entries) {
        if (entry.priceMicros <= found.priceMicros)
            return null;
        if (!mayMean(readings, entry.loose))
            continue;
        // `/items/{id}/photo` stays callable beside a more expensive `/items/{id}/{part}`.
        if (!comesFirst(found.loose, entry.loose, readings))
            return entry;
    }
    return null;
}
function segmentsOf(path) {
    const parsed = parseTemplate(path);
    if ('fault' in parsed)
        throw new Error(`stored operation with a bad path: ${parsed.fault}`);
    return parsed.segments;
}
/** The prices of an MCP server's tools, compiled once per version of the listing. */
export class ToolPrices {
    #prices = new Map();
    #onlyOperations;
    #listingPriceMicros;
    constructor(terms, listing) {
        this.#onlyOperations = listing.onlyOperations;
        this.#listingPriceMicros = listing.priceMicros;
        for (const term of terms) {
            if (term.length === 2)
                this.#prices.set(term[0], term[1] ?? listing.priceMicros);
        }
    }
    priceOf(tool) {
        const priceMicros = this.#prices.get(tool);
        if (priceMicros !== undefined)
            return { priceMicros };
        return this.#onlyOperations ? { refused: 'no_operation' } : { priceMicros: this.#listingPriceMicros };
    }
}
//# sourceMappingURL=price-table.js.map