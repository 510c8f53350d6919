import { shardOf } from './shards.js';
/** @param tag  of a shard of a cluster */
export const installationKey = (tag) => `tollgate:installation:{${tag}}`;
/** Hash tag of the keys that belong to no shard: what processes say of themselves while an operator looks (src/traffic/). */
export const SHARED_TAG = 'traffic';
/** Names of the Redis keys (docs/design.md, 'Redis'). `{s}` is the shard tag: all keys of an account share one cluster slot. */
export class RedisKeys {
    shards;
    /** The key names that a shard has only once, by shard. Prepared, because every batch uses them. */
    open;
    lease;
    usage;
    #tags;
    /** @param tags  the hash tag of each shard; by default its number */
    constructor(shards, tags = Array.from({ length: shards }, (_, shard) => String(shard))) {
        this.shards = shards;
        this.#tags = tags;
        const perShard = (name) => tags.map((tag) => `${name}:{${tag}}`);
        this.open = perShard('open');
        this.lease = perShard('lease');
        this.usage = perShard('usage');
    }
    shardOf(id) {
        return shardOf(id, this.shards);
    }
    /** Hash: token bucket (`tokens`, `ts`) beside the key's `limit` and `status`. */
    key(shard, keyId) {
        return `key:{${this.#tags[shard]}}:${keyId}`;
    }
    /** Hash: `balance`, `credit_seq`, `free:<service_id>` (free calls used); `ticket` and `repair` are for the reconciliation. */
    wallet(shard, accountId) {
        return `wallet:{${this.#tags[shard]}}:${accountId}`;
    }
    /** Text: id of the installation, of a shard of a cluster. A single Redis has `INSTALLATION_KEY` instead. */
    installation(shard) {
        return installationKey(this.#tags[shard]);
    }
    /** Hash: token bucket of an address, for callers without a key. */
    ip(address) {
        return `ip:{${this.#tags[this.shardOf(address)]}}:${address}`;
    }
}
export const freeField = (serviceId) => `free:${serviceId}`;
//# sourceMappingURL=redis-keys.js.map