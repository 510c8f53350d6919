import { assert } from '../../assert.ts';
import type { Entry } from './entry.ts';
import { compareTo, type Position, positionOf, type Sort } from './sorts.ts';

/**
 * Entries per chunk, at most. To add or remove one copies its chunk (0.1 µs, and garbage), and to write all services of a chunk as
 * JSON takes 0.3 ms, a third of what one step may take.
 */
export const MAX_CHUNK = 64;
/** A chunk with fewer entries is joined with its neighbour if both fit into half a chunk. */
const MIN_CHUNK = 16;

/** A run of neighbouring entries. It never changes, so caches may use it as a key. */
export type Chunk = readonly Entry[];

/**
 * All entries in the order of one sort. A change copies one chunk of the list, so it costs some microseconds at any number of
 * listings, and code that has taken `chunks` keeps the order as it was then.
 */
export class Order {
  readonly sort: Sort;
  #chunks: Chunk[] = [];
  /** Somebody may hold `#chunks`: it has to be copied before the next change. */
  #isShared = false;

  constructor(sort: Sort) {
    this.sort = sort;
  }

  /** The order as it is now. Takes no time. */
  get chunks(): readonly Chunk[] {
    this.#isShared = true;
    return this.#chunks;
  }

  add(entry: Entry): void {
    const position = positionOf(entry, this.sort);
    const chunks = this.#ownChunks();
    if (chunks.length === 0) {
      chunks.push([entry]);
      return;
    }
    // An entry behind all others belongs to the last chunk.
    const index = Math.min(chunkAfter(chunks, position, this.sort), chunks.length - 1);
    const chunk = chunks[index] as Chunk;
    const grown = chunk.toSpliced(indexAfter(chunk, position, this.sort), 0, entry);
    if (grown.length <= MAX_CHUNK) chunks[index] = grown;
    else chunks.splice(index, 1, grown.slice(0, MAX_CHUNK / 2), grown.slice(MAX_CHUNK / 2));
  }

  /** Puts one entry in place of another that is in the order. If both have the same place, that takes half the time. */
  replace(before: Entry, after: Entry): void {
    if (compareTo(before, positionOf(after, this.sort), this.sort) !== 0) {
      this.remove(before);
      this.add(after);
      return;
    }
    const position = positionOf(after, this.sort);
    const chunks = this.#ownChunks();
    const index = chunkWith(chunks, position, this.sort);
    const chunk = chunks[index] as Chunk;
    chunks[index] = chunk.with(indexAfter(chunk, position, this.sort) - 1, after);
  }

  /** @param entry  must be in the order; found by its position */
  remove(entry: Entry): void {
    const position = positionOf(entry, this.sort);
    const chunks = this.#ownChunks();
    const index = chunkWith(chunks, position, this.sort);
    const chunk = chunks[index] as Chunk;
    const at = indexAfter(chunk, position, this.sort) - 1;
    assert(chunk[at] === entry, 'an entry was removed from an order that does not have it');
    const rest = chunk.toSpliced(at, 1);
    const next = chunks[index + 1];
    if (rest.length === 0) chunks.splice(index, 1);
    else if (rest.length < MIN_CHUNK && next !== undefined && rest.length + next.length <= MAX_CHUNK / 2) {
      chunks.splice(index, 2, [...rest, ...next]);
    } else chunks[index] = rest;
  }

  #ownChunks(): Chunk[] {
    if (this.#isShared) this.#chunks = this.#chunks.slice();
    this.#isShared = false;
    return this.#chunks;
  }
}

/** Index of the first chunk that has an entry after the position; the number of chunks if there is none. */
export function chunkAfter(chunks: readonly Chunk[], position: Position, sort: Sort): number {
  return firstIndex(chunks.length, (i) => compareTo((chunks[i] as Chunk).at(-1) as Entry, position, sort) > 0);
}

/** Index of the first chunk whose last entry is at the position or after it. */
const chunkWith = (chunks: readonly Chunk[], position: Position, sort: Sort): number =>
  firstIndex(chunks.length, (i) => compareTo((chunks[i] as Chunk).at(-1) as Entry, position, sort) >= 0);

/** Index of the first entry of the chunk after the position; the length of the chunk if there is none. */
export function indexAfter(chunk: Chunk, position: Position, sort: Sort): number {
  return firstIndex(chunk.length, (i) => compareTo(chunk[i] as Entry, position, sort) > 0);
}

/** The first index of a list for which `isIt` holds, if it holds for all that follow; `length` if there is none. */
function firstIndex(length: number, isIt: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isIt(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
