/** How far a stream was read: the last entry that was looked at, and how many up to there are of a newer version. */
export type Position = { readonly id: string | null; readonly newer: number };

const BEGINNING: Position = { id: null, newer: 0 };

/** A newer writer may have stored them meanwhile, or another Redis may be there: so long after the first look they are read again. */
const FORGET_MS = 60_000;

/**
 * Where the events of a newer version at the head of each stream end: they stay there until a newer writer comes, and each look
 * would read all of them again.
 */
export class ReadOver {
  readonly #heads = new Map<number, { readonly position: Position; readonly sinceMs: number }>();

  /** @param length of the stream, where it is known */
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
