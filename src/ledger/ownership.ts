import { isUuid } from '../platform/ids.ts';
import { ForeignRedis, INSTALLATION_KEY, ownedByAnother } from '../platform/installation.ts';
import { type Sql, sqlState } from '../platform/postgres.ts';
import type { RedisClient } from '../platform/redis.ts';

/** Set with the first start, by versions that wrote no id too. */
export const SHARDS_KEY = 'tollgate:shards';

const UNDEFINED_TABLE = '42P01';
/** Wallets that are looked up in the database. One stranger among them is enough. */
const MAX_WALLETS = 1_000;
/** Keys that one SCAN passes, and how many of them there are at most: 200 000 keys took 0.14 s, one SCAN 1.2 ms. */
const SCAN_COUNT = 1_000;
const MAX_SCANS = 200;

type Places = { readonly redisUrl: string; readonly databaseUrl: string };

/**
 * Whether the two stores belong together, asked before anything is changed in either. What this cannot see (another process
 * that claims the Redis now) is found by the claim.
 *
 * @throws ForeignRedis with the names of both stores
 */
export async function checkOwnership(redis: RedisClient, sql: Sql, places: Places): Promise<void> {
  // Redis first: whoever writes its id there has migrated the database before.
  const owner = await redis.command('get', [INSTALLATION_KEY]);
  const ours = await readInstallation(sql);
  const where = `Redis ${placeOf(places.redisUrl)}, database ${placeOf(places.databaseUrl)}`;
  if (owner === null) await checkAccounts(redis, sql, ours, where);
  else if (owner !== ours) throw ownedByAnother(String(owner), ours, where);
}

/** The id that the database has, or will have with migration 0006; null for one without our tables. */
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
 * A Redis that a version without ids has used says whose it is by its accounts: it would belong to whoever starts first
 * otherwise. No hold and no event is without its wallet, so wallets are enough.
 */
async function checkAccounts(redis: RedisClient, sql: Sql, ours: string | null, where: string): Promise<void> {
  if ((await redis.command('exists', [SHARDS_KEY])) === 0) return;
  const accounts = await someAccountsIn(redis);
  const strangers = ours === null ? accounts : await unknownAccounts(sql, accounts);
  if (strangers.length === 0) return;
  const remedy = ours === null ? '' : ` If it is ours all the same, run SET ${INSTALLATION_KEY} ${ours} there`;
  throw new ForeignRedis(
    `this Redis has wallets of accounts that our database does not have, such as ${strangers[0]} (${where}).${remedy}`,
  );
}

async function someAccountsIn(redis: RedisClient): Promise<string[]> {
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

/** Host and database of a URL: without a password. */
function placeOf(url: string): string {
  if (!URL.canParse(url)) return 'as configured';
  const { host, pathname } = new URL(url);
  return host + pathname;
}
