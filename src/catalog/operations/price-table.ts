import { mayExceed, mostOf, type Price, priceOf } from '../price.ts';
import { Matcher } from './matcher.ts';
import { type HttpTerms, isTool, type OperationTerms, ownPriceOf } from './operation.ts';
import {
  comesFirst,
  type LooseTemplate,
  looseTemplate,
  mayMean,
  type Readings,
  readingsOf,
  surelyMatches,
} from './spelling.ts';
import { parseTemplate, type TemplateSegment } from './template.ts';

/** What a call costs, or why it is refused. */
type Priced =
  | Price
  /** `spelling` is that of the operation that the path may also mean, and that costs more. */
  | { readonly refused: 'no_operation' | 'ambiguous'; readonly spelling?: string };

type Entry = Price & {
  readonly path: string;
  /** Whether the template has neither `{name}` nor `*`. */
  readonly isLiteral: boolean;
  readonly loose: LooseTemplate;
};

type MethodTable = {
  readonly matcher: Matcher<Entry>;
  /** In descending order of the most that a call can cost. */
  readonly entries: Entry[];
};

/**
 * The prices of a listing's operations, compiled once per version of the listing. A call is priced by the operation whose template
 * its path matches byte for byte. A service may read the same bytes as another path: if a path matches a cheap operation, but some
 * server would take it for a more expensive one, it is refused. So no spelling reaches an expensive operation at a low price. A
 * path that is spelled exactly as a literal template is never refused, nor is one that matches both byte for byte.
 *
 * Tested by test/catalog/operations/price-table.test.ts.
 */
export class PriceTable {
  readonly #methods = new Map<string, MethodTable>();
  readonly #onlyOperations: boolean;
  readonly #listingPrice: Price;
  /** Whether calls differ in price: only then does a caller gain by overriding the method. */
  readonly hasSeveralPrices: boolean;

  constructor(terms: readonly HttpTerms[], listing: Price & { readonly onlyOperations: boolean }) {
    this.#onlyOperations = listing.onlyOperations;
    this.#listingPrice = priceOf([null, null], listing);
    for (const term of terms) this.#add(term, listing);
    const prices = new Set([...this.#methods.values()].flatMap(({ entries }) => entries.map(priceKey)));
    if (!listing.onlyOperations) prices.add(priceKey(listing));
    this.hasSeveralPrices = prices.size > 1;
    for (const { entries } of this.#methods.values()) entries.sort((a, b) => mostOf(b) - mostOf(a));
  }

  /** @param rest what follows the service id in the path: '' or '/…' */
  priceOf(method: string, rest: string): Priced {
    const table = this.#methods.get(method === 'HEAD' ? 'GET' : method);
    const found = table?.matcher.find(rest) ?? null;
    if (table === undefined || found === null) {
      return this.#onlyOperations ? { refused: 'no_operation' } : this.#listingPrice;
    }
    if (found.isLiteral || !this.hasSeveralPrices) return found;
    const readings = readingsOf(rest);
    // Some server may read a path that no operation has, for example a server that drops what `*` matches.
    if (!this.#onlyOperations && !surelyMatches(readings, found.loose)) return this.#listingPrice;
    const costlier = costlierMeaning(table.entries, found, readings);
    return costlier === null ? found : { refused: 'ambiguous', spelling: costlier.path };
  }

  #add(term: HttpTerms, listing: Price): void {
    const [method, path] = term;
    const template = segmentsOf(path);
    let table = this.#methods.get(method);
    if (table === undefined) {
      table = { matcher: new Matcher(), entries: [] };
      this.#methods.set(method, table);
    }
    const isLiteral = template.every((segment) => segment.kind === 'literal');
    const entry = { ...priceOf(ownPriceOf(term), listing), path, isLiteral, loose: looseTemplate(template) };
    table.matcher.add(template, entry);
    table.entries.push(entry);
  }
}

function costlierMeaning(entries: readonly Entry[], found: Entry, readings: Readings): Entry | null {
  for (const entry of entries) {
    // The entries are sorted, the most expensive first: those that follow do not cost more, either.
    if (mostOf(entry) <= found.priceMicros) return null;
    if (!mayExceed(entry, found) || !mayMean(readings, entry.loose)) continue;
    // `/items/{id}/photo` can still be called if there is a more expensive `/items/{id}/{part}`.
    if (!comesFirst(found.loose, entry.loose, readings)) return entry;
  }
  return null;
}

const priceKey = (price: Price): string => `${price.priceMicros} ${price.maxPriceMicros}`;

function segmentsOf(path: string): readonly TemplateSegment[] {
  const parsed = parseTemplate(path);
  if ('fault' in parsed) throw new Error(`a stored operation has an invalid path: ${parsed.fault}`);
  return parsed.segments;
}

/** The prices of an MCP server's tools, compiled once per version of the listing. */
export class ToolPrices {
  readonly #prices = new Map<string, Price>();
  readonly #onlyOperations: boolean;
  readonly #listingPrice: Price;

  constructor(terms: OperationTerms, listing: Price & { readonly onlyOperations: boolean }) {
    this.#onlyOperations = listing.onlyOperations;
    this.#listingPrice = priceOf([null, null], listing);
    for (const term of terms) {
      if (isTool(term)) this.#prices.set(term[0], priceOf(ownPriceOf(term), listing));
    }
  }

  priceOf(tool: string): Priced {
    const price = this.#prices.get(tool);
    if (price !== undefined) return price;
    return this.#onlyOperations ? { refused: 'no_operation' } : this.#listingPrice;
  }
}
