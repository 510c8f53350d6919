import type { RedisLog } from '../redis.ts';

/**
 * The shards of a node move one by one within this time, because each is found elsewhere by a command or by a reading of the slots.
 */
const TOGETHER_MS = 1_000;

/** Counts the shards that got another node, and logs them: one line for all that moved from one node to another. */
export class ShardMoves {
  readonly #log: RedisLog;
  readonly #unlogged = new Map<string, { from: string; to: string; shards: number[] }>();
  #count = 0;

  constructor(log: RedisLog) {
    this.#log = log;
  }

  get count(): number {
    return this.#count;
  }

  /** @param shard its number; -1: the keys that belong to no shard */
  add(shard: number, from: string, to: string): void {
    if (shard < 0) return;
    this.#count++;
    if (this.#unlogged.size === 0) setTimeout(() => this.#write(), TOGETHER_MS).unref();
    const way = `${from} ${to}`;
    const known = this.#unlogged.get(way);
    if (known === undefined) this.#unlogged.set(way, { from, to, shards: [shard] });
    else known.shards.push(shard);
  }

  #write(): void {
    const ways = Array.from(this.#unlogged.values());
    this.#unlogged.clear();
    for (const { from, to, shards } of ways)
      this.#log.warn({ from, to, shards }, 'shards have moved to another redis node');
  }
}
