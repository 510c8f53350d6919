import { isUuid } from '../platform/ids.ts';
import { ForeignRedis, INSTALLATION_KEY, ownedByAnother } from '../platform/installation.ts';
import { type Sql, sqlState } from '../platform/postgres.ts';
import type { RedisStore } from '../platform/redis.ts';
import { installationKey, type RedisKeys, SHARED_TAG } from '../platform/redis-keys.ts';

/** Redis key that every version sets at its first start, including versions that wrote no installation id. */
export const SHARDS_KEY = 'tollgate:shards';

const UNDEFINED_TABLE = '42P01';
/** About how many wallets are looked up in the database at most. One unknown account among them is enough to refuse the Redis. */
const MAX_WALLETS = 1_000;
/**
 * Keys per SCAN, and maximum number of SCANs: 200 000 keys took 0.14 s. One SCAN took 1.2 ms, in which Redis serves nobody else.
 * Keys beyond that number are not looked at.
 */
const SCAN_COUNT = 1_000;
const MAX_SCANS = 200;

type OwnershipStores = { readonly redis: RedisStore; readonly keys: RedisKeys; readonly sql: Sql };
type Places = { readonly redisUrl: string; readonly databaseUrl: string };

/**
 * Checks that Redis and the database belong to the same installation, before anything is changed in either. It cannot see
 * another process that claims the Redis at the same moment; the claim itself detects that (`platform/installation.ts`).
 * Tested by test/integration/installations.test.ts.
 *
 * @throws ForeignRedis naming both stores
 */
export async function checkOwnership({ redis, keys, sql }: OwnershipStores, places: Places): Promise<void> {
  // Redis is read before the database. A process writes the id to Redis only after it has migrated the database, so an id of our
  // installation that is seen in Redis here can be read from the database next, even if a process makes both right now.
  const owner = await readOwner(redis, keys);
  const ours = await readInstallation(sql);
  const where = `Redis ${placeOf(places.redisUrl)}, database ${placeOf(places.databaseUrl)}`;
  // Every version that knows clusters writes the id, so only a single Redis can have data without one.
  if (owner === null && !redis.isCluster) await checkAccounts(redis, sql, ours, where);
  else if (owner === null) return;
  else if (owner !== ours) throw ownedByAnother(String(owner), ours, where);
}

/** The id in Redis; in a cluster the first that any shard has. */
async function readOwner(redis: RedisStore, keys: RedisKeys): Promise<unknown> {
  if (!redis.isCluster) return redis.command('get', [INSTALLATION_KEY]);
  const owner = await redis.command('get', [installationKey(SHARED_TAG)]);
  if (owner !== null) return owner;
  for (const shard of keys.open.keys()) {
    const ofShard = await redis.shard(shard).command('get', [keys.installation(shard)]);
    if (ofShard !== null) return ofShard;
  }
  return null;
}

/** The id that the database has, or will get from migration 0006; null for a database without our tables. */
async function readInstallation(sql: Sql): Promise<string | null> {
  try {
    const rows = await sql<{ id: string }[]>`
      SELECT coalesce(to_jsonb(i) ->> 'id', (md5('installation:' || pseudonym_secret)::uuid)::text) AS id
      FROM installation AS i`;
    return rows[0]?.id ?? null;
  } catch (error) {
    if (sqlState(error) !== UNDEFINED_TABLE) throw error;
    return null;
  }
}

/**
 * Checks a Redis without an installation id that an older version has used, since that version wrote none. Any installation that
 * starts could claim it, so the accounts in it must be known to our database. Every hold and every event has a wallet beside it,
 * so checking wallets is enough.
 */
async function checkAccounts(redis: RedisStore, sql: Sql, ours: string | null, where: string): Promise<void> {
  if ((await redis.command('exists', [SHARDS_KEY])) === 0) return;
  const accounts = await someAccountsIn(redis);
  const strangers = ours === null ? accounts : await unknownAccounts(sql, accounts);
  if (strangers.length === 0) return;
  const remedy = ours === null ? '' : ` If it is ours all the same, run SET ${INSTALLATION_KEY} ${ours} there`;
  throw new ForeignRedis(
    `this Redis has wallets of accounts that our database does not have, such as ${strangers[0]} (${where}).${remedy}`,
  );
}

async function someAccountsIn(redis: RedisStore): Promise<string[]> {
  const accounts = new Set<string>();
  let cursor = '0';
  for (let scans = 0; scans < MAX_SCANS && accounts.size < MAX_WALLETS; scans++) {
    const reply = await redis.command('scan', [cursor, 'MATCH', 'wallet:{*', 'COUNT', String(SCAN_COUNT)]);
    const [next, keys] = reply as [string, string[]];
    for (const key of keys) accounts.add(key.slice(key.lastIndexOf(':') + 1));
    if (next === '0') break;
    cursor = next;
  }
  return Array.from(accounts);
}

async function unknownAccounts(sql: Sql, ids: readonly string[]): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    SELECT asked.id FROM unnest(${ids.filter(isUuid)}::uuid[]) AS asked (id)
    WHERE NOT EXISTS (SELECT FROM accounts a WHERE a.id = asked.id)`;
  return rows.map(({ id }) => id);
}

/** Host and database of a URL, without the password. */
function placeOf(url: string): string {
  if (!URL.canParse(url)) return 'as configured';
  const { host, pathname } = new URL(url);
  return host + pathname;
}
