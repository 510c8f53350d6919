import { INSTALLATION_KEY, ownedByAnother } from '../platform/installation.js';
import { sqlState } from '../platform/postgres.js';
import { installationKey, SHARED_TAG } from '../platform/redis-keys.js';
import { madeBefore, StartRefused } from '../platform/start-refused.js';
/** Redis key that every first start sets, after the installation's id. */
export const SHARDS_KEY = 'tollgate:shards';
const UNDEFINED_TABLE = '42P01';
/** The refusal of a Redis with another number of shards: most wallets would be looked for where they are not. */
export const otherShards = (kept, shards) => new StartRefused(`this Redis was set up with ${String(kept)} shards, but REDIS_SHARDS is ${shards}`);
/**
 * Checks that Redis and the database belong to the same installation, before anything is changed in either. It cannot see
 * another process that claims the Redis at the same moment; the claim itself detects that (`platform/installation.ts`).
 * Tested by test/integration/installations.test.ts.
 *
 * @throws ForeignRedis naming both stores
 * @throws StartRefused when Redis was used by a version that wrote no installation id, or has another number of shards
 */
export async function checkOwnership({ redis, keys, sql }, places) {
    // Redis is read before the database. A process writes the id to Redis only after it has migrated the database, so an id of our
    // installation that is seen in Redis here can be read from the database next, even if a process makes both right now.
    const { owner, shards } = redis.isCluster
        ? { owner: await readOwnerOfCluster(redis, keys), shards: null }
        : await readOwner(redis, places.redisUrl);
    const ours = await readInstallation(sql);
    if (owner !== null && owner !== ours) {
        const where = `Redis ${placeOf(places.redisUrl)}, database ${placeOf(places.databaseUrl)}`;
        throw ownedByAnother(String(owner), ours, where);
    }
    if (shards !== null && shards !== String(keys.shards))
        throw otherShards(shards, keys.shards);
}
/**
 * The id in Redis and the number of shards. Refuses a Redis that has the number and no id; a flush removes both. One command reads
 * both: between two, another process may make its first start.
 */
async function readOwner(redis, url) {
    const [owner, shards] = (await redis.command('mget', [INSTALLATION_KEY, SHARDS_KEY]));
    if (owner === null && shards !== null)
        throw new StartRefused(madeBefore(`Redis ${placeOf(url)}`));
    return { owner, shards };
}
/** The first id that any shard has. The number of shards is not stored in a cluster. */
async function readOwnerOfCluster(redis, keys) {
    const owner = await redis.command('get', [installationKey(SHARED_TAG)]);
    if (owner !== null)
        return owner;
    for (const shard of keys.open.keys()) {
        const ofShard = await redis.shard(shard).command('get', [keys.installation(shard)]);
        if (ofShard !== null)
            return ofShard;
    }
    return null;
}
/** Null for a database without our tables. */
async function readInstallation(sql) {
    try {
        const rows = await sql `SELECT id FROM installation`;
        return rows[0]?.id ?? null;
    }
    catch (error) {
        if (sqlState(error) !== UNDEFINED_TABLE)
            throw error;
        return null;
    }
}
/** Host and database of a URL, without the password. */
function placeOf(url) {
    if (!URL.canParse(url))
        return 'as configured';
    const { host, pathname } = new URL(url);
    return host + pathname;
}
//# sourceMappingURL=ownership.js.map