import { otherShards, SHARDS_KEY } from '../ledger/ownership.js';
import { isClusterUrl } from '../platform/cluster/cluster-url.js';
import { RedisCluster } from '../platform/cluster/redis-cluster.js';
import { evenTags } from '../platform/cluster/tags.js';
import { RedisClient } from '../platform/redis.js';
import { RedisKeys } from '../platform/redis-keys.js';
import { checkRedisPolicy } from '../platform/redis-node.js';
import { StartRefused } from '../platform/start-refused.js';
export function openRedis(config, name, log) {
    const options = { url: config.redisUrl, name, commandTimeoutMs: config.redisCommandTimeoutMs };
    const warn = (warnings) => {
        for (const warning of warnings)
            log.warn({}, warning);
    };
    if (isClusterUrl(config.redisUrl)) {
        const tags = evenTags(config.redisShards);
        const cluster = new RedisCluster({ ...options, tags }, log);
        return {
            redis: cluster,
            cluster,
            keys: new RedisKeys(config.redisShards, tags),
            connect: async () => {
                await cluster.connect();
                // One line for all nodes that are set up alike.
                const warnings = await Promise.all(Array.from(cluster.byNode(), checkNode));
                warn(Array.from(new Set(warnings.flat())));
            },
            claim: (installation) => cluster.claim(installation),
            close: () => cluster.close(),
            destroy: () => cluster.destroy(),
        };
    }
    const redis = new RedisClient(options, log);
    return {
        redis,
        cluster: null,
        keys: new RedisKeys(config.redisShards),
        connect: async () => {
            await redis.connect();
            warn(await checkRedisPolicy(redis, 'single'));
        },
        claim: async (installation) => {
            await redis.claim(installation);
            await keepShardCount(redis, config.redisShards);
        },
        close: () => redis.close(),
        destroy: () => redis.destroy(),
    };
}
/** @throws Error that names the node, when it must not be used */
async function checkNode([address, [shard]]) {
    try {
        return await checkRedisPolicy(shard, 'cluster');
    }
    catch (error) {
        throw error instanceof StartRefused ? new StartRefused(`${address}: ${error.message}`) : error;
    }
}
/**
 * The first start stores the number of shards in Redis. A start with another number is refused, because it would look for most
 * wallets in the wrong shard. The database has it as well (`keepLayout` in ledger/layout.ts), but a database may be restored from a backup that is older
 * than a reshard.
 */
async function keepShardCount(redis, shards) {
    await redis.command('set', [SHARDS_KEY, String(shards), 'NX']);
    const kept = await redis.command('get', [SHARDS_KEY]);
    if (kept !== String(shards))
        throw otherShards(kept, shards);
}
//# sourceMappingURL=open-redis.js.map