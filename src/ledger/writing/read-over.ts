/** How far a stream was read: the last entry that was read, and the number of entries up to it that are of a newer version. */
export type Position = { readonly id: string | null; readonly newer: number };

const BEGINNING: Position = { id: null, newer: 0 };

/** After this time a stream is read from its beginning again: a newer writer may have stored the events, or Redis was replaced. */
const FORGET_MS = 60_000;

/**
 * Remembers where the events of a newer version at the head of each stream end. They stay in the stream until a newer writer
 * comes, and without this every look at the stream would read all of them again.
 */
export class ReadOver {
  readonly #heads = new Map<number, { readonly position: Position; readonly sinceMs: number }>();

  /** @param length of the stream, if known. If it is shorter than what was read over, the position is forgotten. */
  head(shard: number, length = Number.POSITIVE_INFINITY): Position {
    const head = this.#heads.get(shard);
    if (head === undefined) return BEGINNING;
    if (length >= head.position.newer && performance.now() - head.sinceMs < FORGET_MS) return head.position;
    this.#heads.delete(shard);
    return BEGINNING;
  }

  remember(shard: number, position: Position): void {
    if (position.newer === 0) return;
    this.#heads.set(shard, { position, sinceMs: this.#heads.get(shard)?.sinceMs ?? performance.now() });
  }
}
