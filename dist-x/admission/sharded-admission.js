/**
 * Admission with a Redis Cluster: an `Admission` of its own for each shard. A script may touch keys of one shard only, so each shard
 * has batches of its own anyway. Health, leases, the commands that wait and those that are sent again are of one shard, too: when a
 * node is away, the calls of the other nodes' accounts do not notice.
 */
export class ShardedAdmission {
    #keys;
    #shards;
    /** @param shards  by number, each for this one shard */
    constructor(keys, shards) {
        this.#keys = keys;
        this.#shards = shards;
    }
    start() {
        for (const shard of this.#shards)
            shard.start();
    }
    /** Whether the commands of any shard are carried out. A gateway that can serve some accounts must get their calls. */
    get answering() {
        return this.#shards.some(({ answering }) => answering);
    }
    buyer(keyId, accountId) {
        return this.#of(accountId).buyer(keyId, accountId);
    }
    admit(request, listener) {
        this.#of(request.buyer.accountId).admit(request, listener);
    }
    takeForKey(keyId, accountId, done) {
        this.#of(accountId).takeForKey(keyId, accountId, done);
    }
    takeForAddress(address, limitPerMinute, done) {
        this.#of(address).takeForAddress(address, limitPerMinute, done);
    }
    settle(usageId, buyer, refund, settlement, owner) {
        this.#of(buyer.accountId).settle(usageId, buyer, refund, settlement, owner);
    }
    get unsettled() {
        return this.#sum(({ unsettled }) => unsettled);
    }
    get settlementsWithoutHold() {
        return this.#sum(({ settlementsWithoutHold }) => settlementsWithoutHold);
    }
    get damage() {
        const counts = new Map();
        for (const { damage } of this.#shards) {
            for (const [what, count] of damage)
                counts.set(what, (counts.get(what) ?? 0) + count);
        }
        return counts;
    }
    async drain(timeoutMs) {
        const left = await Promise.all(this.#shards.map((shard) => shard.drain(timeoutMs)));
        return left.reduce((sum, unsettled) => sum + unsettled, 0);
    }
    #of(subject) {
        return this.#shards[this.#keys.shardOf(subject)];
    }
    #sum(read) {
        return this.#shards.reduce((sum, shard) => sum + read(shard), 0);
    }
}
//# sourceMappingURL=sharded-admission.js.map