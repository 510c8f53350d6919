import { sumHoldsScript } from '../scripts.js';
/** Holds per page: 0.3 ms of Redis's time, during which calls wait. */
const PAGE = 250;
/**
 * How long the sums of a shard are used after they were read. Reading 11 000 holds takes Redis 14 ms in all, so one process does it
 * once a second at most.
 */
const FRESH_MS = 1_000;
/**
 * What the open holds of each account have taken, for shards with many of them. One reading serves every account of the shard.
 *
 * Keeping the sum in the wallet instead would give every call one or two more writes in Redis, for a number that few ask for
 * (docs/decisions/0044).
 */
export class HoldSums {
    #stores;
    #shards = new Map();
    constructor(stores) {
        this.#stores = stores;
    }
    /** @returns micro-USD. A hold that was opened or ended within the last second may be missing or still counted */
    async read(shard, accountId) {
        const kept = this.#shards.get(shard);
        const isFresh = kept !== undefined && (kept.readAtMs === null || performance.now() - kept.readAtMs < FRESH_MS);
        return (await (isFresh ? kept.byAccount : this.#begin(shard))).get(accountId) ?? 0;
    }
    #begin(shard) {
        const sums = { byAccount: this.#readAll(shard), readAtMs: null };
        this.#shards.set(shard, sums);
        sums.byAccount.then(() => {
            sums.readAtMs = performance.now();
        }, 
        // Those who asked get the failure. The next must not get it again.
        () => this.#shards.delete(shard));
        return sums.byAccount;
    }
    async #readAll(shard) {
        const { redis, keys } = this.#stores;
        const byAccount = new Map();
        const seen = new Set();
        let cursor = '0';
        do {
            const args = [keys.open[shard], cursor, String(PAGE)];
            const [next, ...holds] = (await redis.script(sumHoldsScript, 1, args));
            for (let i = 0; i + 2 < holds.length; i += 3) {
                const [usageId, account, amount] = holds.slice(i, i + 3);
                if (seen.has(usageId))
                    continue;
                seen.add(usageId);
                byAccount.set(account, (byAccount.get(account) ?? 0) + Number(amount));
            }
            cursor = next;
        } while (cursor !== '0');
        return byAccount;
    }
}
//# sourceMappingURL=hold-sums.js.map