import { unavailableError } from '../../errors.ts';
import type { RedisStore } from '../../platform/redis.ts';
import { freeField, type RedisKeys } from '../../platform/redis-keys.ts';
import { readWalletScript } from '../scripts.ts';
import { HoldSums } from './hold-sums.ts';

export type WalletStores = { readonly redis: RedisStore; readonly keys: RedisKeys };
export type WalletLoader = { loadWallet(accountId: string): Promise<void> };

/**
 * How often a reading or a credit is tried again after loading its wallet. If that does not suffice, Redis loses wallets as fast as
 * they load.
 */
export const MAX_LOADS = 3;

/** The wallet in Redis has values that cannot be read as money. An operator has to repair it. */
export class WalletDamaged extends Error {
  readonly accountId: string;

  constructor(accountId: string) {
    super(`the wallet of ${accountId} is damaged in redis`);
    this.accountId = accountId;
  }
}

/**
 * Maximum number of a shard's open holds that are read together with a wallet, at one instant. 500 take 0.5 ms of Redis's time. If
 * the shard has more, `HoldSums` reads them in pages.
 */
const MAX_HOLDS = 500;

type Reply = [balance?: number | 'damaged', held?: number, now?: number, ...spent: string[]];

/** An account's money at the moment, in micro-USD. */
export type Wallet = {
  /** What the account can spend. */
  readonly balanceMicros: number;
  /** What open calls hold of the balance; a refunded call returns its hold. */
  readonly heldMicros: number;
};
/** Rejects with `unavailable` if the wallet can be neither read nor loaded. */
export type WalletReader = { read(accountId: string): Promise<Wallet> };
type SpentInPeriod = { readonly spentMicros: number; readonly period: number };
type WalletParts = Wallet & {
  /** The time of Redis. */
  readonly nowMs: number;
  /** In the order of the request. */
  readonly budgets: readonly SpentInPeriod[];
};

/**
 * Reads balances from the wallets in Redis. Unlike the balance in Postgres, a wallet already excludes what open and unflushed calls
 * cost.
 */
export class Wallets {
  readonly #stores: WalletStores;
  readonly #loader: WalletLoader;
  readonly #holdSums: HoldSums;

  constructor(options: WalletStores & { readonly hydrator: WalletLoader }) {
    this.#stores = options;
    this.#loader = options.hydrator;
    this.#holdSums = new HoldSums(options);
  }

  /**
   * @returns micro-USD: the balance that can be spent, and the sum that open holds have taken. Both are of one instant, unless the
   *   shard has more than `MAX_HOLDS` open holds: then the second is up to a second older
   * @throws ApiError `unavailable` when Redis is away, when the wallet is damaged or when it cannot be loaded
   */
  async read(accountId: string): Promise<Wallet> {
    const { balanceMicros, heldMicros } = await this.readParts(accountId, [], []);
    return { balanceMicros, heldMicros };
  }

  /**
   * As `read`, and also what was spent of budgets.
   *
   * @param holderIds the keys whose holds are summed up; empty: all keys of the account
   * @param budgetIds the keys whose budgets are requested
   */
  async readParts(accountId: string, holderIds: readonly string[], budgetIds: readonly string[]): Promise<WalletParts> {
    const { redis, keys } = this.#stores;
    const shard = keys.shardOf(accountId);
    const names = [keys.wallet(shard, accountId), keys.open[shard] as string];
    const args = [...names, accountId, String(MAX_HOLDS), holderIds.join(' '), ...budgetIds];
    try {
      for (let loads = 0; loads <= MAX_LOADS; loads++) {
        if (loads > 0) await this.#loader.loadWallet(accountId);
        const [balanceMicros, held = 0, nowMs = 0, ...spent] = (await redis.script(readWalletScript, 2, args)) as Reply;
        if (balanceMicros === 'damaged') throw new WalletDamaged(accountId);
        if (balanceMicros === undefined) continue;
        const owners = holderIds.length === 0 ? [accountId] : holderIds;
        const heldMicros = held < 0 ? await this.#holdSums.read(shard, owners) : held;
        return { balanceMicros, heldMicros, nowMs, budgets: budgetIds.map((_, i) => spentOf(spent, 2 * i)) };
      }
    } catch (cause) {
      throw unavailableError(cause);
    }
    throw unavailableError();
  }

  /**
   * @returns how many free calls of the service the account has used; open ones count
   * @throws as `read`
   */
  async readFreeUsed(accountId: string, serviceId: string): Promise<number> {
    const { redis, keys } = this.#stores;
    const args = [keys.wallet(keys.shardOf(accountId), accountId), 'balance', freeField(serviceId)];
    try {
      for (let loads = 0; loads <= MAX_LOADS; loads++) {
        if (loads > 0) await this.#loader.loadWallet(accountId);
        const [balance, used] = (await redis.command('hmget', args)) as (string | null)[];
        if (balance === null) continue;
        if (!Number.isSafeInteger(Number(used ?? 0))) throw new WalletDamaged(accountId);
        return Number(used ?? 0);
      }
    } catch (cause) {
      throw unavailableError(cause);
    }
    throw unavailableError();
  }
}

/**
 * What was spent of a budget in a period (src/keys/budget-period.ts). If a wallet has no entry, nothing was spent in any period.
 */
const spentOf = (fields: readonly string[], at: number): SpentInPeriod => ({
  spentMicros: Number(fields[at] || 0),
  period: Number(fields[at + 1] || 0),
});
