import type { RedisStore } from '../../platform/redis.ts';
import type { RedisKeys } from '../../platform/redis-keys.ts';
import { sumHoldsScript } from '../scripts.ts';

/** Holds per page: 0.3 ms of Redis's time, during which calls wait. */
const PAGE = 250;
/**
 * How long the sums of a shard are used after they were read. Reading 11 000 holds takes Redis 14 ms, so one process does this at
 * most once a second.
 */
const FRESH_MS = 1_000;

type Stores = { readonly redis: RedisStore; readonly keys: RedisKeys };

type Sums = {
  /** By account id, and by key id. */
  readonly byOwner: Promise<ReadonlyMap<string, number>>;
  /** Null while they are being read: requests meanwhile wait for the same sums. */
  readAtMs: number | null;
};

/**
 * What the open holds of each account, and of each key, have taken, for shards with many of them. One reading serves every account of the shard.
 *
 * If the sum were kept in the wallet, every call would need one or two more writes in Redis, for a number that few ask for
 * (docs/decisions/0044).
 */
export class HoldSums {
  readonly #stores: Stores;
  readonly #shards = new Map<number, Sums>();

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  /**
   * @param owners the account, or some of its keys
   * @returns micro-USD. A hold that was opened or ended within the last second may be missing or still counted
   */
  async read(shard: number, owners: readonly string[]): Promise<number> {
    const kept = this.#shards.get(shard);
    const isFresh = kept !== undefined && (kept.readAtMs === null || performance.now() - kept.readAtMs < FRESH_MS);
    const byOwner = await (isFresh ? kept.byOwner : this.#begin(shard));
    return owners.reduce((sum, owner) => sum + (byOwner.get(owner) ?? 0), 0);
  }

  #begin(shard: number): Sums['byOwner'] {
    const sums: Sums = { byOwner: this.#readAll(shard), readAtMs: null };
    this.#shards.set(shard, sums);
    sums.byOwner.then(
      () => {
        sums.readAtMs = performance.now();
      },
      // Those who asked get the failure. The next request must not get it again.
      () => this.#shards.delete(shard),
    );
    return sums.byOwner;
  }

  async #readAll(shard: number): Promise<ReadonlyMap<string, number>> {
    const { redis, keys } = this.#stores;
    const byOwner = new Map<string, number>();
    const seen = new Set<string>();
    let cursor = '0';
    do {
      const args = [keys.open[shard] as string, cursor, String(PAGE)];
      const [next, ...holds] = (await redis.script(sumHoldsScript, 1, args)) as [string, ...string[]];
      for (let i = 0; i + 3 < holds.length; i += 4) {
        const [usageId, account, key, amount] = holds.slice(i, i + 4) as [string, string, string, string];
        if (seen.has(usageId)) continue;
        seen.add(usageId);
        for (const owner of [account, key]) byOwner.set(owner, (byOwner.get(owner) ?? 0) + Number(amount));
      }
      cursor = next;
    } while (cursor !== '0');
    return byOwner;
  }
}
