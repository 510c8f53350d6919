import { isUuid } from '../platform/ids.ts';
import type { Catalog } from './catalog.ts';
import type { Listing } from './listing.ts';

export const SORTS = ['quality', 'price', 'name', 'newest'] as const;
export type Sort = (typeof SORTS)[number];

/** What a listing must have to match. An absent field matches everything. */
export type Filter = {
  readonly category?: string;
  readonly minQuality?: number;
  /** Folded words (see `wordsOf`), each of which must occur in the name or the description. */
  readonly words: readonly string[];
  /** true: the listing is free or has free calls. false: neither. */
  readonly free?: boolean;
  readonly maxPriceMicros?: number;
};

export type CategoryCount = { readonly category: string; readonly services: number };

export type Matches = {
  readonly listings: readonly Listing[];
  /** Categories of the matches, those with the most matches first. */
  readonly categories: readonly CategoryCount[];
};

/** The text without differences of case and width: 'ＡＢＣ' is found by 'abc'. */
export const fold = (text: string): string => text.normalize('NFKC').toLowerCase();

/** The words of a query: folded, each once, sorted. */
export function wordsOf(query: string): string[] {
  return [...new Set(fold(query).split(/\s+/u))].filter((word) => word !== '').sort();
}

type Folded = { readonly name: string; readonly text: string };
const foldings = new WeakMap<Listing, Folded>();

function foldedOf(listing: Listing): Folded {
  let folded = foldings.get(listing);
  if (folded === undefined) {
    const name = fold(listing.name);
    // A searched word contains no line break, so it cannot match across the end of the name into the description.
    folded = { name, text: `${name}\n${fold(listing.description)}` };
    foldings.set(listing, folded);
  }
  return folded;
}

/**
 * Position of a listing in a sort: by ascending value, then by id, so that no two listings are in the same place. Names are
 * folded and compared by UTF-16 code unit, not by the rules of a language, so that a cursor means the same on every gateway.
 */
type Place = { readonly value: number | string; readonly id: string };

/**
 * Maximum number of characters of a folded name that count in the sort. It bounds the length of cursors, because NFKC can turn
 * one character into 18.
 */
const MAX_SORT_CHARACTERS = 120;
/** Maximum length of a cursor. The longest that `cursorAfter` makes is shorter, so a longer one is refused. */
export const MAX_CURSOR_LENGTH = 1_000;

function sortValue(listing: Listing, sort: Sort): number | string {
  switch (sort) {
    case 'quality':
      return -listing.quality;
    case 'price':
      return listing.priceMicros;
    case 'name':
      return foldedOf(listing).name.slice(0, MAX_SORT_CHARACTERS);
    case 'newest':
      return -listing.createdAtMs;
  }
}

function compare(a: Place, b: Place): number {
  if (a.value !== b.value) return a.value < b.value ? -1 : 1;
  if (a.id === b.id) return 0;
  return a.id < b.id ? -1 : 1;
}

/** The active listings in the order of each sort, sorted once per version of the catalog. */
export class Search {
  readonly #catalog: Pick<Catalog, 'listings' | 'version'>;
  #version = -1;
  readonly #sorted = new Map<Sort, readonly Listing[]>();

  constructor(catalog: Pick<Catalog, 'listings' | 'version'>) {
    this.#catalog = catalog;
  }

  /** All active listings that match, sorted, and the number of matches per category. */
  find(filter: Filter, sort: Sort): Matches {
    const listings = this.#inOrder(sort).filter((listing) => matches(listing, filter));
    const counts = new Map<string, number>();
    for (const { category } of listings) counts.set(category, (counts.get(category) ?? 0) + 1);
    const categories = [...counts]
      .map(([category, services]) => ({ category, services }))
      .sort((a, b) => b.services - a.services || (a.category < b.category ? -1 : 1));
    return { listings, categories };
  }

  #inOrder(sort: Sort): readonly Listing[] {
    if (this.#version !== this.#catalog.version) {
      this.#version = this.#catalog.version;
      this.#sorted.clear();
    }
    let sorted = this.#sorted.get(sort);
    if (sorted === undefined) {
      sorted = [...this.#catalog.listings()]
        .filter(({ status }) => status === 'active')
        .map((listing) => ({ value: sortValue(listing, sort), id: listing.id, listing }))
        .sort(compare)
        .map(({ listing }) => listing);
      this.#sorted.set(sort, sorted);
    }
    return sorted;
  }
}

function matches(listing: Listing, filter: Filter): boolean {
  if (filter.category !== undefined && listing.category !== filter.category) return false;
  if (filter.minQuality !== undefined && listing.quality < filter.minQuality) return false;
  if (filter.maxPriceMicros !== undefined && listing.priceMicros > filter.maxPriceMicros) return false;
  if (filter.free !== undefined && filter.free !== (listing.priceMicros === 0 || listing.freeCalls > 0)) return false;
  if (filter.words.length === 0) return true;
  const { text } = foldedOf(listing);
  return filter.words.every((word) => text.includes(word));
}

/** A cursor for the page that begins after this listing. Opaque to clients: base64url of `[sort, value, id]`. */
export function cursorAfter(listing: Listing, sort: Sort): string {
  return Buffer.from(JSON.stringify([sort, sortValue(listing, sort), listing.id])).toString('base64url');
}

/**
 * The index of the first listing after the cursor, or null when the text is not a cursor of this sort. The listing from which the
 * cursor was made may have changed or be gone: the cursor marks a place in the order, not a listing.
 */
export function indexAfter(cursor: string, listings: readonly Listing[], sort: Sort): number | null {
  const place = parseCursor(cursor, sort);
  if (place === null) return null;
  let low = 0;
  let high = listings.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const listing = listings[middle] as Listing;
    if (compare({ value: sortValue(listing, sort), id: listing.id }, place) > 0) high = middle;
    else low = middle + 1;
  }
  return low;
}

function parseCursor(cursor: string, sort: Sort): Place | null {
  let parts: unknown;
  try {
    parts = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
  } catch {
    return null;
  }
  if (!Array.isArray(parts) || parts.length !== 3 || parts[0] !== sort) return null;
  const [, value, id] = parts as unknown[];
  if (typeof id !== 'string' || !isUuid(id)) return null;
  const isRight = sort === 'name' ? typeof value === 'string' : typeof value === 'number';
  return isRight ? { value: value as number | string, id } : null;
}
