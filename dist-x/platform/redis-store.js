/** Thrown when a command was certainly not sent. After any other error, Redis may have carried it out. */
export class RedisNotSent extends Error {
    constructor(message = 'redis is not connected') {
        super(message);
        this.name = 'RedisNotSent';
    }
}
/** A node of a cluster has refused a command because of where its keys are now. As good as not sent: nothing was carried out. */
export class RedisNotCarriedOut extends RedisNotSent {
    constructor(reason) {
        super(reason);
        this.name = 'RedisNotCarriedOut';
    }
}
/**
 * The shards by the store that can be asked for several of them at once: a single Redis has all, in a cluster each is by itself.
 */
export function byStore(redis, shards) {
    if (!redis.isCluster)
        return new Map([[redis, shards]]);
    return new Map(shards.map((shard) => [redis.shard(shard), [shard]]));
}
//# sourceMappingURL=redis-store.js.map