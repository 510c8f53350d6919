import { randomUUID } from 'node:crypto';
import type { Config } from '../config/config.ts';
import { keepLayout, layoutOf, refuseOtherLayout } from '../ledger/layout.ts';
import { checkOwnership } from '../ledger/ownership.ts';
import type { Log } from '../observability/log.ts';
import type { RedisCluster } from '../platform/cluster/redis-cluster.ts';
import { type Migration, migrate, refuseOtherSchema } from '../platform/migrate.ts';
import { durabilityWarnings, openPostgres, type Sql } from '../platform/postgres.ts';
import type { RedisStore } from '../platform/redis.ts';
import type { RedisKeys } from '../platform/redis-keys.ts';
import { openRedis } from './open-redis.ts';

/** The stores, which every role needs. */
export type Stores = {
  readonly sql: Sql;
  readonly redis: RedisStore;
  /** The same as `redis` if it is a cluster; otherwise null. */
  readonly cluster: RedisCluster | null;
  readonly keys: RedisKeys;
  /** The installation's id, which is in both stores. Each new connection compares its store's id with it. */
  readonly installation: string;
  close(): Promise<void>;
};

type Options = {
  readonly name: string;
  readonly maxConnections: number;
  readonly migrations: readonly Migration[];
  /** Default false: while the data in Redis are moved (`Layout`) the start is refused. */
  readonly mayBeMoving?: boolean;
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
  const opened = openRedis(config, `tollgate-${name}`, log);
  const { redis, keys } = opened;
  let installation: string;
  try {
    await opened.connect();
    installation = await prepareDatabase(config, options, redis, keys);
    await opened.claim(installation);
  } catch (error) {
    opened.destroy();
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
    cluster: opened.cluster,
    keys,
    installation,
    close: async () => {
      await opened.close();
      await sql.end({ timeout: 5 });
    },
  };
}

/**
 * Checks that the stores are of this build's formats and belong together, then migrates the database, on a connection that does not
 * check the installation's id yet.
 *
 * @returns the installation's id
 */
async function prepareDatabase(
  config: Config,
  { name, migrations, mayBeMoving = false, log }: Options,
  redis: RedisStore,
  keys: RedisKeys,
): Promise<string> {
  const sql = openPostgres({ url: config.databaseUrl, maxConnections: 1, applicationName: `tollgate-${name}-start` });
  const layout = layoutOf({ redis, keys });
  try {
    const version = await refuseOtherSchema(sql, migrations);
    await checkOwnership({ redis, keys, sql }, config);
    if (version > 0) await refuseOtherLayout(sql, layout, { mayBeMoving });
    const applied = await migrate(sql, migrations);
    if (applied.length > 0) log.info({ versions: applied }, 'migrated');
    for (const warning of await durabilityWarnings(sql)) log.warn({}, warning);
    const rows = await sql<{ id: string }[]>`SELECT id FROM installation`;
    if (rows[0] === undefined) throw new Error('the installation row is missing');
    await keepLayout(sql, layout, { mayBeMoving });
    return rows[0].id;
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** A new id at each start, so that the holds of an earlier process are not taken for this one's. */
export const newInstanceId = (): string => randomUUID();
