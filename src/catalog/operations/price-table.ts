import { Matcher } from './matcher.ts';
import type { HttpTerms, OperationTerms } from './operation.ts';
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

/** What a call costs: a price in micro-USD, or why the call is refused. */
type Priced =
  | { readonly priceMicros: number }
  /** `spelling`: of the operation that the path may also mean, and that costs more. */
  | { readonly refused: 'no_operation' | 'ambiguous'; readonly spelling?: string };

type Entry = {
  readonly path: string;
  readonly priceMicros: number;
  /** The template has no `{name}` and no `*`. */
  readonly isLiteral: boolean;
  readonly loose: LooseTemplate;
};

type MethodTable = {
  readonly matcher: Matcher<Entry>;
  /** In order of price, highest first. */
  readonly entries: Entry[];
};

/**
 * The prices of a listing's operations, compiled once per version of the listing. A call is priced by the operation whose template
 * its path matches byte for byte. A service may read another path in the same bytes: a path that matches a cheap operation, but that
 * some server would take for a more expensive one, is refused. So no spelling reaches an expensive operation at a low price. A path that is
 * spelled exactly as a literal template is never refused, nor is one that matches both byte for byte.
 *
 * Tested by test/catalog/operations/price-table.test.ts.
 */
export class PriceTable {
  readonly #methods = new Map<string, MethodTable>();
  readonly #onlyOperations: boolean;
  readonly #listingPriceMicros: number;
  /** Whether calls differ in price: only then can a caller gain by an override of the method. */
  readonly hasSeveralPrices: boolean;

  constructor(
    terms: readonly HttpTerms[],
    listing: { readonly priceMicros: number; readonly onlyOperations: boolean },
  ) {
    this.#onlyOperations = listing.onlyOperations;
    this.#listingPriceMicros = listing.priceMicros;
    for (const [method, path, price] of terms) this.#add(method, path, price ?? listing.priceMicros);
    const prices = new Set([...this.#methods.values()].flatMap(({ entries }) => entries.map((e) => e.priceMicros)));
    if (!listing.onlyOperations) prices.add(listing.priceMicros);
    this.hasSeveralPrices = prices.size > 1;
    for (const { entries } of this.#methods.values()) entries.sort((a, b) => b.priceMicros - a.priceMicros);
  }

  /** @param rest what follows the service id in the path: '' or '/…' */
  priceOf(method: string, rest: string): Priced {
    const table = this.#methods.get(method === 'HEAD' ? 'GET' : method);
    const found = table?.matcher.find(rest) ?? null;
    if (table === undefined || found === null) {
      return this.#onlyOperations ? { refused: 'no_operation' } : { priceMicros: this.#listingPriceMicros };
    }
    if (found.isLiteral || !this.hasSeveralPrices) return found;
    const readings = readingsOf(rest);
    // Some server may see a path that no operation has, for example one that drops what `*` matches.
    if (!this.#onlyOperations && !surelyMatches(readings, found.loose)) {
      return { priceMicros: this.#listingPriceMicros };
    }
    const costlier = costlierMeaning(table.entries, found, readings);
    return costlier === null ? found : { refused: 'ambiguous', spelling: costlier.path };
  }

  #add(method: string, path: string, priceMicros: number): void {
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

function costlierMeaning(entries: readonly Entry[], found: Entry, readings: Readings): Entry | null {
  for (const entry of entries) {
    if (entry.priceMicros <= found.priceMicros) return null;
    if (!mayMean(readings, entry.loose)) continue;
    // `/items/{id}/photo` stays callable beside a more expensive `/items/{id}/{part}`.
    if (!comesFirst(found.loose, entry.loose, readings)) return entry;
  }
  return null;
}

function segmentsOf(path: string): readonly TemplateSegment[] {
  const parsed = parseTemplate(path);
  if ('fault' in parsed) throw new Error(`stored operation with a bad path: ${parsed.fault}`);
  return parsed.segments;
}

/** The prices of an MCP server's tools, compiled once per version of the listing. */
export class ToolPrices {
  readonly #prices = new Map<string, number>();
  readonly #onlyOperations: boolean;
  readonly #listingPriceMicros: number;

  constructor(terms: OperationTerms, listing: { readonly priceMicros: number; readonly onlyOperations: boolean }) {
    this.#onlyOperations = listing.onlyOperations;
    this.#listingPriceMicros = listing.priceMicros;
    for (const term of terms) {
      if (term.length === 2) this.#prices.set(term[0], term[1] ?? listing.priceMicros);
    }
  }

  priceOf(tool: string): Priced {
    const priceMicros = this.#prices.get(tool);
    if (priceMicros !== undefined) return { priceMicros };
    return this.#onlyOperations ? { refused: 'no_operation' } : { priceMicros: this.#listingPriceMicros };
  }
}
