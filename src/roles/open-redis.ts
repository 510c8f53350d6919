import type { Config } from '../config/config.ts';
import { otherShards, SHARDS_KEY } from '../ledger/ownership.ts';
import type { Log } from '../observability/log.ts';
import { isClusterUrl } from '../platform/cluster/cluster-url.ts';
import { evenTags } from '../platform/cluster/hash-tags.ts';
import { RedisCluster } from '../platform/cluster/redis-cluster.ts';
import { RedisClient, type RedisStore } from '../platform/redis.ts';
import { RedisKeys } from '../platform/redis-keys.ts';
import { checkRedisPolicy } from '../platform/redis-node.ts';
import { StartRefused } from '../platform/start-refused.ts';

/** A Redis, or a Redis Cluster, opened by a process. */
type OpenedRedis = {
  readonly redis: RedisStore;
  readonly cluster: RedisCluster | null;
  readonly keys: RedisKeys;
  /** Connects, and checks that Redis is set up as the gateway requires. */
  connect(): Promise<void>;
  claim(installation: string): Promise<void>;
  close(): Promise<void>;
  destroy(): void;
};

export function openRedis(
  config: Pick<Config, 'redisUrl' | 'redisShards' | 'redisCommandTimeoutMs'>,
  name: string,
  log: Log,
): OpenedRedis {
  const options = { url: config.redisUrl, name, commandTimeoutMs: config.redisCommandTimeoutMs };
  const warn = (warnings: readonly string[]): void => {
    for (const warning of warnings) log.warn({}, warning);
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
        // One line for all nodes with the same settings.
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
async function checkNode([address, [shard]]: [string, readonly RedisStore[]]): Promise<readonly string[]> {
  try {
    return await checkRedisPolicy(shard as RedisStore, 'cluster');
  } catch (error) {
    throw error instanceof StartRefused ? new StartRefused(`${address}: ${error.message}`) : error;
  }
}

/**
 * The first start stores the number of shards in Redis. A start with another number is refused, because it would look for most
 * wallets in the wrong shard. The database stores it as well (`keepLayout` in ledger/layout.ts), but a database may be restored
 * from a backup that is older than a reshard.
 */
async function keepShardCount(redis: RedisClient, shards: number): Promise<void> {
  await redis.command('set', [SHARDS_KEY, String(shards), 'NX']);
  const kept = await redis.command('get', [SHARDS_KEY]);
  if (kept !== String(shards)) throw otherShards(kept, shards);
}
