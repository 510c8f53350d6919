import { unavailableError } from '../../errors.js';
import { readWalletScript } from '../scripts.js';
import { HoldSums } from './hold-sums.js';
/** How often a reading or a credit is tried again after loading its wallet. Beyond it, Redis loses wallets as fast as they load. */
export const MAX_LOADS = 3;
/** The wallet in Redis has values that cannot be read as money: an operator has to repair it. */
export class WalletDamaged extends Error {
    accountId;
    constructor(accountId) {
        super(`the wallet of ${accountId} is damaged in redis`);
        this.accountId = accountId;
    }
}
/**
 * Maximum number of a shard's open holds that are read together with a wallet, at one instant. 500 take 0.5 ms of Redis's time. When
 * the shard has more, `HoldSums` reads them in pages.
 */
const MAX_HOLDS = 500;
/** Reads balances from the wallets in Redis. Unlike Postgres, a wallet already lacks what open and unflushed calls cost. */
export class Wallets {
    #stores;
    #loader;
    #holdSums;
    constructor(options) {
        this.#stores = options;
        this.#loader = options.hydrator;
        this.#holdSums = new HoldSums(options);
    }
    /**
     * @returns micro-USD: the balance that can be spent, and the sum that open holds have taken. Both are of one instant, unless the
     *   shard has more than `MAX_HOLDS` open holds; then the second is up to a second older
     * @throws ApiError `unavailable` when Redis is away, when the wallet is damaged or when it cannot be loaded
     */
    async read(accountId) {
        const { redis, keys } = this.#stores;
        const shard = keys.shardOf(accountId);
        const args = [keys.wallet(shard, accountId), keys.open[shard], accountId, String(MAX_HOLDS)];
        try {
            for (let loads = 0; loads <= MAX_LOADS; loads++) {
                if (loads > 0)
                    await this.#loader.loadWallet(accountId);
                const [balanceMicros, heldMicros] = (await redis.script(readWalletScript, 2, args));
                if (balanceMicros === 'damaged')
                    throw new WalletDamaged(accountId);
                if (balanceMicros === undefined)
                    continue;
                return { balanceMicros, heldMicros: heldMicros ?? (await this.#holdSums.read(shard, accountId)) };
            }
        }
        catch (cause) {
            throw unavailableError(cause);
        }
        throw unavailableError();
    }
}
//# sourceMappingURL=wallets.js.map