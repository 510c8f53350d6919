import { createHash } from 'node:crypto';
import type { Catalog } from './catalog.ts';
import type { Language } from './languages.ts';
import { DiscoverWriter } from './present.ts';
import { cursorAfter, type Filter, indexAfter, Search, type Sort } from './search.ts';

export type DiscoverQuery = {
  readonly filter: Filter;
  readonly sort: Sort;
  readonly language: Language;
  /** Maximum number of services on the page; absent: all of them if they are at most MAX_UNLIMITED, otherwise a page of PAGE. */
  readonly limit?: number | 'all';
  readonly cursor?: string;
};

/** Services that an answer may have although nobody asked for a number: about 400 KB of JSON. */
const MAX_UNLIMITED = 1_000;
const PAGE = 100;

/** The body of a /discover response. `etag` is strong: two answers have the same one only if language and bytes are the same. */
export type DiscoverAnswer = { readonly body: string; readonly etag: string };

/**
 * Maximum number of cached answers, and of characters in all of them (two bytes each at most: 64 MB). At a bound, the answers
 * used least recently are dropped.
 */
const MAX_ANSWERS = 256;
const MAX_ANSWER_CHARACTERS = 32_000_000;

/**
 * Finds services and writes the answer. Anybody may ask, without a key and often for the whole catalog, so the work is cached:
 * the text of a listing until the listing changes, an answer until the catalog changes (within `MAX_ANSWERS`).
 */
export class Discovery {
  readonly #catalog: Pick<Catalog, 'listings' | 'version'>;
  readonly #search: Search;
  readonly #writer = new DiscoverWriter();
  /** In order of use, least recently used first. */
  readonly #answers = new Map<string, DiscoverAnswer>();
  #answersVersion = -1;
  #characters = 0;

  constructor(catalog: Pick<Catalog, 'listings' | 'version'>) {
    this.#catalog = catalog;
    this.#search = new Search(catalog);
  }

  /** The answer, or null when the cursor was not issued for this sort. */
  answer(query: DiscoverQuery): DiscoverAnswer | null {
    this.#forgetOldVersion();
    const key = keyOf(query);
    const kept = this.#answers.get(key);
    if (kept !== undefined) {
      this.#answers.delete(key);
      this.#answers.set(key, kept);
      return kept;
    }
    const body = this.#write(query);
    if (body === null) return null;
    const answer = { body, etag: etagOf(body, query.language) };
    this.#keep(key, answer);
    return answer;
  }

  #write({ filter, sort, language, limit, cursor }: DiscoverQuery): string | null {
    const { listings, categories } = this.#search.find(filter, sort);
    const begin = cursor === undefined ? 0 : indexAfter(cursor, listings, sort);
    if (begin === null) return null;
    const size = limit ?? (listings.length > MAX_UNLIMITED ? PAGE : 'all');
    const page = listings.slice(begin, size === 'all' ? undefined : begin + size);
    const last = page.at(-1);
    const more = last !== undefined && begin + page.length < listings.length;
    const rest = JSON.stringify({
      categories,
      total: listings.length,
      ...(more ? { next_cursor: cursorAfter(last, sort) } : {}),
    });
    const services = page.map((listing) => this.#writer.write(listing, language)).join(',');
    return `{"services":[${services}],${rest.slice(1)}`;
  }

  #forgetOldVersion(): void {
    if (this.#answersVersion === this.#catalog.version) return;
    this.#answersVersion = this.#catalog.version;
    this.#answers.clear();
    this.#characters = 0;
  }

  #keep(key: string, answer: DiscoverAnswer): void {
    this.#answers.set(key, answer);
    this.#characters += answer.body.length;
    for (const [oldest, { body }] of this.#answers) {
      if (this.#answers.size <= MAX_ANSWERS && this.#characters <= MAX_ANSWER_CHARACTERS) return;
      this.#answers.delete(oldest);
      this.#characters -= body.length;
    }
  }
}

/** The same text for queries that ask for the same thing: the filter's fields are put in a fixed order. */
function keyOf({ filter, sort, language, limit, cursor }: DiscoverQuery): string {
  const { category, minQuality, words, free, maxPriceMicros } = filter;
  return JSON.stringify([language, sort, limit, cursor, category, minQuality, free, maxPriceMicros, words]);
}

function etagOf(body: string, language: Language): string {
  return `"${language}-${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
}
