import { randomUUID } from 'node:crypto';
import type { Config } from '../config/config.ts';
import { checkOwnership, SHARDS_KEY } from '../ledger/ownership.ts';
import type { Log } from '../observability/log.ts';
import { type Migration, migrate } from '../platform/migrate.ts';
import { durabilityWarnings, openPostgres, type Sql } from '../platform/postgres.ts';
import { checkRedisPolicy, RedisClient } from '../platform/redis.ts';
import { RedisKeys } from '../platform/redis-keys.ts';

/** What every role stands on. */
export type Stores = {
  readonly sql: Sql;
  readonly redis: RedisClient;
  readonly keys: RedisKeys;
  /** Stands in both stores: what is connected anew is compared with it. */
  readonly installation: string;
  close(): Promise<void>;
};

type Options = {
  readonly name: string;
  readonly maxConnections: number;
  readonly migrations: readonly Migration[];
  readonly log: Log;
};

/**
 * Connects, migrates, and sees to it that both stores are fit and of one installation. Throws the reason when the process must
 * not start.
 */
export async function openStores(config: Config, options: Options): Promise<Stores> {
  const { log, name } = options;
  const redis = new RedisClient(
    { url: config.redisUrl, name: `tollgate-${name}`, commandTimeoutMs: config.redisCommandTimeoutMs },
    log,
  );
  let installation: string;
  try {
    await redis.connect();
    for (const warning of await checkRedisPolicy(redis)) log.warn({}, warning);
    installation = await prepareDatabase(config, options, redis);
    await redis.claim(installation);
    await keepShardCount(redis, config.redisShards);
  } catch (error) {
    redis.destroy();
    throw error;
  }
  const sql = openPostgres({
    url: config.databaseUrl,
    maxConnections: options.maxConnections,
    applicationName: `tollgate-${name}`,
    installation,
  });
  return {
    sql,
    redis,
    keys: new RedisKeys(config.redisShards),
    installation,
    close: async () => {
      await redis.close();
      await sql.end({ timeout: 5 });
    },
  };
}

/** Migrates what is ours, on a connection that knows of no installation yet. @returns the installation's id */
async function prepareDatabase(
  config: Config,
  { name, migrations, log }: Options,
  redis: RedisClient,
): Promise<string> {
  const sql = openPostgres({ url: config.databaseUrl, maxConnections: 1, applicationName: `tollgate-${name}-start` });
  try {
    await checkOwnership(redis, sql, config);
    const applied = await migrate(sql, migrations);
    if (applied.length > 0) log.info({ versions: applied }, 'migrated');
    for (const warning of await durabilityWarnings(sql)) log.warn({}, warning);
    const rows = await sql<{ id: string }[]>`SELECT id FROM installation`;
    if (rows[0] === undefined) throw new Error('the installation row is missing');
    return rows[0].id;
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** Another number of shards would look for every wallet in the wrong place, so the first start fixes it. */
async function keepShardCount(redis: RedisClient, shards: number): Promise<void> {
  await redis.command('set', [SHARDS_KEY, String(shards), 'NX']);
  const kept = await redis.command('get', [SHARDS_KEY]);
  if (kept !== String(shards)) {
    throw new Error(`this Redis was set up with ${String(kept)} shards, REDIS_SHARDS says ${shards}`);
  }
}

/** New at each start: holds of the process before are not this one's. */
export const newInstanceId = (): string => randomUUID();
