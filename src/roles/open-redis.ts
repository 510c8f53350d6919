import type { Config } from '../config/config.ts';
import { SHARDS_KEY } from '../ledger/ownership.ts';
import type { Log } from '../observability/log.ts';
import { isClusterUrl } from '../platform/cluster/cluster-url.ts';
import { RedisCluster } from '../platform/cluster/redis-cluster.ts';
import { evenTags } from '../platform/cluster/tags.ts';
import type { Sql } from '../platform/postgres.ts';
import { RedisClient, type RedisStore } from '../platform/redis.ts';
import { RedisKeys } from '../platform/redis-keys.ts';
import { checkRedisPolicy } from '../platform/redis-node.ts';
import { StartRefused } from '../platform/start-refused.ts';

/** A Redis, or a Redis Cluster, as a process opens it. */
export type OpenedRedis = {
  readonly redis: RedisStore;
  readonly cluster: RedisCluster | null;
  readonly keys: RedisKeys;
  /** Connects, and checks that Redis is set up as the gateway needs it. */
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
      ...{ redis: cluster, cluster, keys: new RedisKeys(config.redisShards, tags) },
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
    ...{ redis, cluster: null, keys: new RedisKeys(config.redisShards) },
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
 * wallets in the wrong shard. (The database has it as well, see `keepLayout`. Earlier versions had it in Redis only, and read it there.)
 */
async function keepShardCount(redis: RedisClient, shards: number): Promise<void> {
  await redis.command('set', [SHARDS_KEY, String(shards), 'NX']);
  const kept = await redis.command('get', [SHARDS_KEY]);
  if (kept !== String(shards)) {
    throw new StartRefused(`this Redis was set up with ${String(kept)} shards, but REDIS_SHARDS is ${shards}`);
  }
}

type Layout = 'single' | 'cluster';

/**
 * The first start stores how the data in Redis are laid out. A start with another layout is refused: it would look for most wallets
 * where they are not, while money is still held where they are.
 */
export async function keepLayout(
  sql: Sql,
  { redis, shards, layout }: { readonly redis: RedisStore; readonly shards: number; readonly layout: Layout },
): Promise<void> {
  // A Redis of an earlier version may have another number of shards: `keepShardCount` refuses that, so nothing is stored here.
  const known = layout === 'single' ? await redis.command('get', [SHARDS_KEY]) : null;
  if (known !== null && known !== String(shards)) return;
  await sql`
    UPDATE installation SET redis_shards = ${shards}, redis_layout = ${layout}
    WHERE redis_shards IS NULL AND (redis_layout IS NULL OR redis_layout = ${layout})`;
  const rows = await sql<{ shards: number | null; layout: Layout }[]>`
    SELECT redis_shards AS shards, redis_layout AS layout FROM installation`;
  const kept = rows[0];
  if (kept === undefined || (kept.shards === shards && kept.layout === layout)) return;
  const told = (what: { shards: number | null; layout: Layout }): string =>
    `${what.shards === null ? '' : `${what.shards} shards `}in ${what.layout === 'single' ? 'a single Redis' : 'a Redis Cluster'}`;
  throw new StartRefused(
    `this installation has its data ${told(kept)}, but REDIS_URL and REDIS_SHARDS say ${told({ shards, layout })}. ` +
      'To change that, see "Another number of shards" in docs/operating.md',
  );
}
