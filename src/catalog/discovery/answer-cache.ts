import type { Matches } from './matches.ts';
import { type Chunk, chunkAfter, type Order } from './order.ts';
import type { Position } from './sorts.ts';

/** A page, and what it was made from. */
export type Page = {
  readonly body: string;
  readonly etag: string;
  /** The versions of the matches. */
  readonly version: number;
  readonly countsVersion: number;
  /** The chunks of the order that contain the page's services; null if it was not made from the order. */
  readonly chunks: readonly Chunk[] | null;
};

/**
 * Maximum number of cached pages, and of characters in all of them (at most two bytes each: 64 MB). Beyond it, the pages used least
 * recently are dropped.
 */
const MAX_PAGES = 256;
const MAX_CHARACTERS = 32_000_000;
/** A page from more chunks is not kept when something changes, because comparing them would take long. */
const MAX_CHUNKS = 16;

/**
 * Keeps pages for as long as they are right: until a match changes or, if the page was made from the order of all listings, until a
 * listing near the page or the counts change. Changes elsewhere in the catalog do not affect them.
 */
export class AnswerCache {
  /** In order of use, least recently used first. */
  readonly #pages = new Map<string, Page>();
  #characters = 0;

  /** @param order the order that the query uses; null if it sorts by relevance */
  get(key: string, matches: Matches, order: Order | null, after: Position | null): Page | undefined {
    const page = this.#pages.get(key);
    if (page === undefined) return undefined;
    this.#drop(key, page);
    if (page.version === matches.version) return this.#add(key, page);
    const isRight =
      page.countsVersion === matches.countsVersion &&
      page.chunks !== null &&
      order !== null &&
      hasChunks(order, after, page.chunks);
    // The page is right for the new version too. This makes the next check short.
    return isRight ? this.#add(key, { ...page, version: matches.version }) : undefined;
  }

  keep(key: string, page: Page): void {
    const known = this.#pages.get(key);
    if (known !== undefined) this.#drop(key, known);
    this.#add(key, page.chunks !== null && page.chunks.length > MAX_CHUNKS ? { ...page, chunks: null } : page);
    for (const [oldest, dropped] of this.#pages) {
      if (this.#pages.size <= MAX_PAGES && this.#characters <= MAX_CHARACTERS) return;
      this.#drop(oldest, dropped);
    }
  }

  #add(key: string, page: Page): Page {
    this.#pages.set(key, page);
    this.#characters += page.body.length;
    return page;
  }

  #drop(key: string, page: Page): void {
    this.#pages.delete(key);
    this.#characters -= page.body.length;
  }
}

/** Whether the order has the same chunks, entry for entry, after the position. */
function hasChunks(order: Order, after: Position | null, chunks: readonly Chunk[]): boolean {
  const first = after === null ? 0 : chunkAfter(order.chunks, after, order.sort);
  return chunks.every((chunk, i) => order.chunks[first + i] === chunk);
}
