import { unavailableError } from '../../errors.ts';
import type { RedisClient } from '../../platform/redis.ts';
import type { RedisKeys } from '../../platform/redis-keys.ts';
import { readWalletScript } from '../scripts.ts';

export type WalletStores = { readonly redis: RedisClient; readonly keys: RedisKeys };
export type WalletLoader = { loadWallet(accountId: string): Promise<void> };

/** How often a wallet is loaded for one reading or credit; more means that Redis loses it as fast as we load. */
export const MAX_LOADS = 3;

/** What Redis has of an account's money is not to be understood: an operator has to look at it. */
export class WalletDamaged extends Error {
  readonly accountId: string;

  constructor(accountId: string) {
    super(`the wallet of ${accountId} is damaged in redis`);
    this.accountId = accountId;
  }
}

/** Live wallets, calls in flight included. */
export class Wallets {
  readonly #stores: WalletStores;
  readonly #loader: WalletLoader;

  constructor(options: WalletStores & { readonly hydrator: WalletLoader }) {
    this.#stores = options;
    this.#loader = options.hydrator;
  }

  /**
   * @returns micro-USD: what can be spent, and what open holds have taken
   * @throws ApiError `unavailable` when Redis is away, or Postgres while the wallet has to be loaded
   */
  async read(accountId: string): Promise<{ balanceMicros: number; heldMicros: number }> {
    const { redis, keys } = this.#stores;
    const shard = keys.shardOf(accountId);
    const args = [keys.wallet(shard, accountId), keys.open[shard] as string, accountId];
    try {
      for (let loads = 0; loads <= MAX_LOADS; loads++) {
        if (loads > 0) await this.#loader.loadWallet(accountId);
        const [balanceMicros, heldMicros] = (await redis.script(readWalletScript, 2, args)) as [
          number | 'damaged',
          number,
        ];
        if (balanceMicros === 'damaged') throw new WalletDamaged(accountId);
        if (balanceMicros !== undefined) return { balanceMicros, heldMicros };
      }
    } catch (cause) {
      throw unavailableError(cause);
    }
    throw unavailableError();
  }
}
