import type { Config } from '../config/config.ts';
import { WRITER_LOCK } from '../ledger/locks.ts';
import { SHARDS_KEY } from '../ledger/ownership.ts';
import { byStore, INSTALLATION_KEY, type RedisStore } from '../platform/redis.ts';
import { installationKey, SHARED_TAG } from '../platform/redis-keys.ts';
import { readLeaseAges } from '../traffic/leases.ts';
import type { Stores } from './stores.ts';
import { Reconcilers } from './upkeep.ts';

/** Why an installation cannot be resharded now: printed without a stack. */
export class ReshardError extends Error {}

const SCAN_COUNT = 1_000;

type ReshardStores = Pick<Stores, 'sql' | 'redis' | 'keys'>;

/**
 * The program `main.js reshard`: empties the Redis of an idle installation, and lets its next start choose another number of
 * shards, another Redis or a cluster. Wallets are loaded from Postgres again.
 *
 * Nothing may be in Redis that Postgres does not know: no open call, no event, no debit under way, no drift. Token buckets are
 * lost, so everybody's limit begins anew. A writer that begins meanwhile waits for the locks that this program keeps.
 *
 * If it is killed in the middle, Redis lacks some wallets, which are loaded again: it can be run again, or not.
 *
 * Tested by test/roles/reshard.test.ts.
 *
 * @throws ReshardError when the installation is not idle
 */
export async function reshard(
  stores: ReshardStores,
  { instanceLeaseSeconds }: Pick<Config, 'instanceLeaseSeconds'>,
): Promise<string> {
  const { sql, keys } = stores;
  return sql.begin(async (tx) => {
    const locks = await tx<{ got: boolean }[]>`
      SELECT pg_try_advisory_xact_lock(${WRITER_LOCK}::int, shard) AS got FROM generate_series(0, ${keys.shards - 1}::int) AS shard`;
    if (locks.some(({ got }) => !got)) throw new ReshardError('a writer runs: stop it first');
    await refuseUnlessIdle(stores, instanceLeaseSeconds);
    const removed = await removeAll(stores);
    await tx`UPDATE installation SET redis_shards = NULL, redis_layout = NULL`;
    return `removed ${removed} keys from Redis: the next start may have another REDIS_SHARDS and another REDIS_URL`;
  });
}

async function refuseUnlessIdle(stores: ReshardStores, leaseSeconds: number): Promise<void> {
  const { sql, redis, keys } = stores;
  const alive = Array.from(await readLeaseAges(redis, keys)).filter(([, ageMs]) => ageMs < leaseSeconds * 1_000);
  if (alive.length > 0) {
    throw new ReshardError(`a gateway runs, or has ended less than ${leaseSeconds} s ago: stop it, and wait`);
  }
  let [events, holds] = [0, 0];
  for (const [shard, open] of keys.open.entries()) {
    const store = redis.shard(shard);
    events += Number(await store.command('xlen', [keys.usage[shard] as string]));
    const texts = (await store.command('hvals', [open])) as string[];
    // A tombstone is no hold.
    holds += texts.filter((text) => !text.startsWith('x')).length;
  }
  if (events + holds > 0) {
    throw new ReshardError(
      `Redis has ${events} events that are not stored and ${holds} open calls: run the writer until there are none ` +
        '(tollgate_writer_backlog_events is 0; open calls of dead gateways are refunded after a minute)',
    );
  }
  const [debits] = await sql<{ begun: number }[]>`SELECT count(*)::int AS begun FROM debits WHERE state = 'begun'`;
  if (debits !== undefined && debits.begun > 0) {
    throw new ReshardError(`${debits.begun} debits are under way: run the writer until they have ended`);
  }
  await refuseDrift(stores);
}

/** What the wallets lack or have too much is gone with them, so somebody has to look at it first. */
async function refuseDrift(stores: ReshardStores): Promise<void> {
  const reconcilers = new Reconcilers(stores);
  await reconcilers.run('reshard');
  const reports = reconcilers.last?.reports ?? [];
  const drifting = reports.reduce((sum, { driftingAccounts }) => sum + driftingAccounts, 0);
  const compared = reports.filter((report) => report.compared).length;
  if (drifting > 0 || compared < stores.keys.shards) {
    throw new ReshardError(
      `${drifting} wallets disagree with Postgres, and ${stores.keys.shards - compared} shards could not be compared: ` +
        'see GET /api/v1/admin/reconciliation',
    );
  }
}

/** The id of the installation goes last: until then nobody else takes this Redis. */
async function removeAll({ redis, keys }: ReshardStores): Promise<number> {
  let removed = 0;
  const parts = byStore(redis, Array.from(keys.open.keys()));
  for (const [store, shards] of parts) {
    const isOurs = new RegExp(
      `^(?:key|wallet|ip|open|lease|usage):\\{(?:${shards.map((shard) => tagOf(keys, shard)).join('|')})\\}`,
    );
    removed += await removeKeys(store, (name) => isOurs.test(name));
  }
  if (!redis.isCluster) await redis.command('unlink', [SHARDS_KEY, INSTALLATION_KEY]);
  else {
    for (const [store, [shard = 0]] of parts) await store.command('unlink', [keys.installation(shard)]);
    await redis.command('unlink', [installationKey(SHARED_TAG)]);
  }
  return removed;
}

/** The tag of a shard as it stands in the names of its keys, for a regular expression. */
const tagOf = (keys: Stores['keys'], shard: number): string =>
  (/\{(.*)\}/.exec(keys.open[shard] as string)?.[1] ?? '').replaceAll('.', '\\.');

async function removeKeys(store: RedisStore, isOurs: (name: string) => boolean): Promise<number> {
  let [removed, cursor] = [0, '0'];
  do {
    const [next, names] = (await store.command('scan', [cursor, 'COUNT', String(SCAN_COUNT)])) as [string, string[]];
    const ours = names.filter(isOurs);
    if (ours.length > 0) removed += Number(await store.command('unlink', ours));
    cursor = next;
  } while (cursor !== '0');
  return removed;
}
