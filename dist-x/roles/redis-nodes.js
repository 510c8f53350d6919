import { addressOf } from '../platform/redis-node.js';
/** The nodes as this process knows them now. A slot that no node has counts for none, although its shard still asks the last one. */
export function redisNodes({ redis, cluster, keys }, url) {
    if (cluster === null)
        return [{ address: addressOf(url), shards: keys.shards, ready: redis.ready, store: redis }];
    const { owners } = cluster;
    return Array.from(cluster.byNode(), ([address, shards]) => ({
        address,
        shards: shards.filter(({ slot }) => owners[slot] !== null).length,
        ready: shards.every(({ ready }) => ready),
        store: shards[0],
    }));
}
//# sourceMappingURL=redis-nodes.js.map