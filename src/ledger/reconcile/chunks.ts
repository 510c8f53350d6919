/** Parts of a list, in its order, each of `size` except the last. */
export function* chunksOf<T>(all: readonly T[], size: number): Generator<readonly T[]> {
  for (let from = 0; from < all.length; from += size) yield all.slice(from, from + size);
}
