import { randomUUID } from 'node:crypto';
import type { Config } from '../config/config.ts';
import type { Log } from '../observability/log.ts';
import { type Migration, migrate } from '../platform/migrate.ts';
import { openPostgres, type Sql } from '../platform/postgres.ts';
import { checkRedisPolicy, RedisClient } from '../platform/redis.ts';
import { RedisKeys } from '../platform/redis-keys.ts';

/** What every role stands on. */
export type Stores = {
  readonly sql: Sql;
  readonly redis: RedisClient;
  readonly keys: RedisKeys;
  close(): Promise<void>;
};

/** Connects, checks Redis's policy and migrates. Throws the reason when the process must not start. */
export async function openStores(
  config: Config,
  options: {
    readonly name: string;
    readonly maxConnections: number;
    readonly migrations: readonly Migration[];
    readonly log: Log;
  },
): Promise<Stores> {
  const { log, name } = options;
  const sql = openPostgres({
    url: config.databaseUrl,
    maxConnections: options.maxConnections,
    applicationName: `tollgate-${name}`,
  });
  const redis = new RedisClient(
    { url: config.redisUrl, name: `tollgate-${name}`, commandTimeoutMs: config.redisCommandTimeoutMs },
    log,
  );
  try {
    await redis.connect();
    for (const warning of await checkRedisPolicy(redis)) log.warn({}, warning);
    await keepShardCount(redis, config.redisShards);
    const applied = await migrate(sql, options.migrations);
    if (applied.length > 0) log.info({ versions: applied }, 'migrated');
  } catch (error) {
    redis.destroy();
    await sql.end({ timeout: 1 });
    throw error;
  }
  return {
    sql,
    redis,
    keys: new RedisKeys(config.redisShards),
    close: async () => {
      await redis.close();
      await sql.end({ timeout: 5 });
    },
  };
}

/** Another number of shards would look for every wallet in the wrong place, so the first start fixes it. */
async function keepShardCount(redis: RedisClient, shards: number): Promise<void> {
  await redis.command('set', ['tollgate:shards', String(shards), 'NX']);
  const kept = await redis.command('get', ['tollgate:shards']);
  if (kept !== String(shards)) {
    throw new Error(`this Redis was set up with ${String(kept)} shards, REDIS_SHARDS says ${shards}`);
  }
}

/** New at each start: holds of the process before are not this one's. */
export const newInstanceId = (): string => randomUUID();
