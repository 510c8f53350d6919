import type { Entry } from './entry.ts';
import type { ListingIndex } from './listing-index.ts';
import type { Matches, Ranks } from './matches.ts';
import { type Chunk, chunkAfter, indexAfter, MAX_CHUNK } from './order.ts';
import { type AnySort, compareEntries, compareTo, type RankedPosition, type Sort } from './sorts.ts';
import { NO_MATCH } from './words.ts';

/**
 * Up to this many matches are sorted for each answer, in one step of 1 to 2 ms. If there are more, the order of all listings is
 * traversed in many steps. With 100 000 listings, at least one in a hundred then matches, so a page is filled after a few thousand of them.
 */
const MAX_SORTED = 1_000;

/**
 * The matches of a filter in the order of a sort, at one moment. Making a view takes a few microseconds. Traversing it may take
 * long and many steps, and finds everything as it was, whatever changes meanwhile.
 */
export class View {
  readonly sort: AnySort;
  readonly total: number;
  readonly #order: Sort;
  readonly #chunks: readonly Chunk[];
  /** Null: all entries match. */
  readonly #ranks: Ranks | null;
  readonly #ranksThatOccur: readonly number[];
  readonly #sorted: readonly Entry[] | null;

  /** @param matches  of a filter, or 'everything' */
  constructor(index: ListingIndex, matches: Matches, isEverything: boolean, sort: AnySort) {
    this.sort = sort;
    this.total = matches.total;
    this.#order = sort === 'relevance' ? 'quality' : sort;
    this.#chunks = index.order(this.#order).chunks;
    this.#ranks = isEverything ? null : matches.copyRanks();
    this.#ranksThatOccur = sort === 'relevance' ? matches.ranksThatOccur() : [];
    this.#sorted = isEverything || matches.total > MAX_SORTED ? null : this.#sort(matches.slots(), index);
  }

  rankOf(entry: Entry): number {
    return this.sort === 'relevance' ? ((this.#ranks as Ranks)[entry.slot] as number) : 0;
  }

  /** The chunks of the order from the position on: an answer made from some of them is valid as long as they exist. */
  chunksAfter(after: RankedPosition | null): readonly Chunk[] | null {
    if (this.#sorted !== null || this.sort === 'relevance') return null;
    return this.#chunks.slice(this.#firstChunk(after));
  }

  /** All matches after the position, in order. Some batches are empty, so that the reading code can pause between any two. */
  *batches(after: RankedPosition | null): Generator<readonly Entry[]> {
    if (this.#sorted !== null) {
      const found = after === null ? this.#sorted : this.#sorted.filter((entry) => this.#isAfter(entry, after));
      for (let i = 0; i < found.length; i += MAX_CHUNK) yield found.slice(i, i + MAX_CHUNK);
    } else if (this.sort === 'relevance') {
      for (const rank of this.#ranksThatOccur) {
        if (after !== null && rank < after.rank) continue;
        yield* this.#inOrder(rank === after?.rank ? after : null, (ranks, { slot }) => ranks[slot] === rank);
      }
    } else {
      yield* this.#inOrder(after, (ranks, { slot }) => (ranks[slot] ?? NO_MATCH) !== NO_MATCH);
    }
  }

  *#inOrder(
    after: RankedPosition | null,
    isMatch: (ranks: Ranks, entry: Entry) => boolean,
  ): Generator<readonly Entry[]> {
    const ranks = this.#ranks;
    const first = this.#firstChunk(after);
    for (let i = first; i < this.#chunks.length; i++) {
      let chunk = this.#chunks[i] as Chunk;
      if (i === first && after !== null) {
        const begin = indexAfter(chunk, after, this.#order);
        if (begin > 0) chunk = chunk.slice(begin);
      }
      yield ranks === null ? chunk : chunk.filter((entry) => isMatch(ranks, entry));
    }
  }

  #firstChunk(after: RankedPosition | null): number {
    return after === null ? 0 : chunkAfter(this.#chunks, after, this.#order);
  }

  #sort(slots: readonly number[], index: ListingIndex): Entry[] {
    const entries = slots.map((slot) => index.at(slot));
    return entries.sort((a, b) => this.rankOf(a) - this.rankOf(b) || compareEntries(a, b, this.#order));
  }

  #isAfter(entry: Entry, after: RankedPosition): boolean {
    return (this.rankOf(entry) - after.rank || compareTo(entry, after, this.#order)) > 0;
  }
}
