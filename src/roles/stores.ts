import { randomUUID } from 'node:crypto';
import type { Config } from '../config/config.ts';
import { checkOwnership, SHARDS_KEY } from '../ledger/ownership.ts';
import type { Log } from '../observability/log.ts';
import { type Migration, migrate } from '../platform/migrate.ts';
import { durabilityWarnings, openPostgres, type Sql } from '../platform/postgres.ts';
import { checkRedisPolicy, RedisClient } from '../platform/redis.ts';
import { RedisKeys } from '../platform/redis-keys.ts';

/** The stores, which every role needs. */
export type Stores = {
  readonly sql: Sql;
  readonly redis: RedisClient;
  readonly keys: RedisKeys;
  /** The installation's id, which is in both stores. Each new connection compares its store's id with it. */
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
 * Connects to both stores, migrates the database, and checks that the stores are set up as the gateway needs them and belong to
 * the same installation. Throws the reason when the process must not start.
 *
 * Tested by test/integration/installations.test.ts.
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

/**
 * Checks that the stores belong together, then migrates the database, on a connection that does not check the installation's id yet.
 *
 * @returns the installation's id
 */
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

/**
 * The first start stores the number of shards in Redis. A start with another number is refused, because it would look for most
 * wallets in the wrong shard.
 */
async function keepShardCount(redis: RedisClient, shards: number): Promise<void> {
  await redis.command('set', [SHARDS_KEY, String(shards), 'NX']);
  const kept = await redis.command('get', [SHARDS_KEY]);
  if (kept !== String(shards)) {
    throw new Error(`this Redis was set up with ${String(kept)} shards, but REDIS_SHARDS is ${shards}`);
  }
}

/** A new id at each start, so that the holds of an earlier process are not taken for this one's. */
export const newInstanceId = (): string => randomUUID();
