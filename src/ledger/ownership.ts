import { INSTALLATION_KEY, ownedByAnother } from '../platform/installation.ts';
import { type Sql, sqlState } from '../platform/postgres.ts';
import type { RedisStore } from '../platform/redis.ts';
import { installationKey, type RedisKeys, SHARED_TAG } from '../platform/redis-keys.ts';
import { madeBefore, StartRefused } from '../platform/start-refused.ts';

/** Redis key that every first start sets, after the installation's id. */
export const SHARDS_KEY = 'tollgate:shards';

const UNDEFINED_TABLE = '42P01';

type OwnershipStores = { readonly redis: RedisStore; readonly keys: RedisKeys; readonly sql: Sql };
type StoreUrls = { readonly redisUrl: string; readonly databaseUrl: string };

/** The refusal of a Redis with another number of shards: most wallets would be looked for in the wrong shard. */
export const otherShards = (kept: unknown, shards: number): StartRefused =>
  new StartRefused(`this Redis was set up with ${String(kept)} shards, but REDIS_SHARDS is ${shards}`);

/**
 * Checks that Redis and the database belong to the same installation, before anything is changed in either. It cannot see
 * another process that claims the Redis at the same moment; the claim itself detects that (`platform/installation.ts`).
 * Tested by test/integration/installations.test.ts.
 *
 * @throws ForeignRedis naming both stores
 * @throws StartRefused when Redis was used by a version that wrote no installation id, or has another number of shards
 */
export async function checkOwnership({ redis, keys, sql }: OwnershipStores, urls: StoreUrls): Promise<void> {
  // Redis is read before the database. A process writes the id to Redis only after it has migrated the database, so an id of our
  // installation that is seen in Redis here can be read from the database next, even if a process makes both right now.
  const { owner, shards } = redis.isCluster
    ? { owner: await readOwnerOfCluster(redis, keys), shards: null }
    : await readOwner(redis, urls.redisUrl);
  const ours = await readInstallation(sql);
  if (owner !== null && owner !== ours) {
    const where = `Redis ${addressOf(urls.redisUrl)}, database ${addressOf(urls.databaseUrl)}`;
    throw ownedByAnother(String(owner), ours, where);
  }
  if (shards !== null && shards !== String(keys.shards)) throw otherShards(shards, keys.shards);
}

/**
 * The id in Redis and the number of shards. Refuses a Redis that has the number but no id; FLUSHALL removes both. One command reads
 * both, because another process may make its first start between two commands.
 */
async function readOwner(redis: RedisStore, url: string): Promise<{ owner: unknown; shards: unknown }> {
  const [owner, shards] = (await redis.command('mget', [INSTALLATION_KEY, SHARDS_KEY])) as unknown[];
  if (owner === null && shards !== null) throw new StartRefused(madeBefore(`Redis ${addressOf(url)}`));
  return { owner, shards };
}

/** The first id that any shard has. The number of shards is not stored in a cluster. */
async function readOwnerOfCluster(redis: RedisStore, keys: RedisKeys): Promise<unknown> {
  const owner = await redis.command('get', [installationKey(SHARED_TAG)]);
  if (owner !== null) return owner;
  for (const shard of keys.open.keys()) {
    const ofShard = await redis.shard(shard).command('get', [keys.installation(shard)]);
    if (ofShard !== null) return ofShard;
  }
  return null;
}

/** Null for a database without our tables. */
async function readInstallation(sql: Sql): Promise<string | null> {
  try {
    const rows = await sql<{ id: string }[]>`SELECT id FROM installation`;
    return rows[0]?.id ?? null;
  } catch (error) {
    if (sqlState(error) !== UNDEFINED_TABLE) throw error;
    return null;
  }
}

/** Host and database of a URL, without the password. */
function addressOf(url: string): string {
  if (!URL.canParse(url)) return 'as configured';
  const { host, pathname } = new URL(url);
  return host + pathname;
}
