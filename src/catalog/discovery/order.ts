import { assert } from '../../assert.ts';
import type { Entry } from './entry.ts';
import { compareTo, type Position, positionOf, type Sort } from './sorts.ts';

/**
 * Maximum entries per chunk. Adding or removing an entry copies its chunk (0.1 µs, and garbage). Writing all services of a chunk as
 * JSON takes 0.3 ms, a third of the maximum for one step.
 */
export const MAX_CHUNK = 64;
/** A chunk with fewer entries is joined with its neighbour if both fit into half a chunk. */
const MIN_CHUNK = 16;

/** A run of neighbouring entries. It never changes, so caches may use it as a key. */
export type Chunk = readonly Entry[];

/**
 * All entries in the order of one sort. A change copies one chunk of the list, so it takes a few microseconds at any number of
 * listings, and code that has taken `chunks` keeps the order of that moment.
 */
export class Order {
  readonly sort: Sort;
  #chunks: Chunk[] = [];
  /** Whether somebody may have a reference to `#chunks`: it must then be copied before the next change. */
  #isShared = false;

  constructor(sort: Sort) {
    this.sort = sort;
  }

  /** The current order. Takes no time. */
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
    // An entry after all others belongs to the last chunk.
    const index = Math.min(chunkAfter(chunks, position, this.sort), chunks.length - 1);
    const chunk = chunks[index] as Chunk;
    const grown = chunk.toSpliced(indexAfter(chunk, position, this.sort), 0, entry);
    if (grown.length <= MAX_CHUNK) chunks[index] = grown;
    else chunks.splice(index, 1, grown.slice(0, MAX_CHUNK / 2), grown.slice(MAX_CHUNK / 2));
  }

  /** Replaces an entry in the order by another one. If both have the same position, this takes half the time. */
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

/** Index of the first chunk with an entry after the position; the number of chunks if there is none. */
export function chunkAfter(chunks: readonly Chunk[], position: Position, sort: Sort): number {
  return firstIndex(chunks.length, (i) => compareTo((chunks[i] as Chunk).at(-1) as Entry, position, sort) > 0);
}

/** Index of the first chunk whose last entry is at or after the position. */
const chunkWith = (chunks: readonly Chunk[], position: Position, sort: Sort): number =>
  firstIndex(chunks.length, (i) => compareTo((chunks[i] as Chunk).at(-1) as Entry, position, sort) >= 0);

/** Index of the first entry of the chunk after the position; the length of the chunk if there is none. */
export function indexAfter(chunk: Chunk, position: Position, sort: Sort): number {
  return firstIndex(chunk.length, (i) => compareTo(chunk[i] as Entry, position, sort) > 0);
}

/** The first index for which `isIt` holds, provided that it holds for all following ones; `length` if there is none. */
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
