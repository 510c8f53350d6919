import type { Config } from '../config/config.ts';
import { FLUSH_LOCK, WRITER_LOCK, WRITERS_LOCK } from '../ledger/locks.ts';
import { SHARDS_KEY } from '../ledger/ownership.ts';
import type { Tx } from '../platform/postgres.ts';
import { byStore, INSTALLATION_KEY, type RedisStore } from '../platform/redis.ts';
import { installationKey, SHARED_TAG } from '../platform/redis-keys.ts';
import { StartRefused } from '../platform/start-refused.ts';
import { readLeaseAges } from '../traffic/leases.ts';
import type { Stores } from './stores.ts';
import { Reconcilers } from './upkeep.ts';

const SCAN_COUNT = 1_000;

/** Longest wait for wallets that are being loaded. A process loads for two seconds at most. */
const FLUSH_LOCKS_MS = 10_000;

type ReshardStores = Pick<Stores, 'sql' | 'redis' | 'keys'>;

type ReshardOptions = Pick<Config, 'instanceLeaseSeconds'> & {
  /** Called after each step. Tests end the program here. */
  readonly afterStep?: (step: 'moving' | 'compared' | 'removed') => Promise<void> | void;
};

/**
 * The program `main.js reshard`: empties the Redis of an idle installation, so that its next start can choose another number of
 * shards, another Redis or a cluster. Wallets are loaded again from Postgres.
 *
 *   no lease ──► 'moving' is committed ──► no lease, nothing that only Redis knows, no drift ──► removed ──► no layout
 *                    └─ refused: taken back
 *
 * Redis may contain nothing that Postgres does not know: no open call, no event, no debit under way, no drift. Token buckets are
 * lost, so all rate limits begin anew. While data are being moved no process can start, and no wallet is loaded (`Layout`). Writers
 * that passed their start before wait for the locks that this program holds, and are then refused.
 *
 * If it is killed in the middle, the data stay 'moving', and Redis lacks some wallets. It can be run again, or taken back: these
 * wallets are then loaded again.
 *
 * Tested by test/roles/reshard.test.ts.
 *
 * @throws StartRefused when the installation is not idle
 */
export async function reshard(
  stores: ReshardStores,
  { instanceLeaseSeconds, afterStep }: ReshardOptions,
): Promise<string> {
  const { sql, keys } = stores;
  return withoutWriters(stores, async (tx) => {
    // Checked before as well, because running gateways load no wallets while data are being moved.
    await refuseGateways(stores, instanceLeaseSeconds);
    // Not in `tx`, because others must see it before anything is checked.
    await sql`UPDATE installation SET moving_since = coalesce(moving_since, now())`;
    await afterStep?.('moving');
    try {
      await refuseUnlessIdle(stores, instanceLeaseSeconds);
      await refuseDrift(stores);
      // A gateway that was suspended for longer than its lease may have resumed meanwhile.
      await refuseUnlessIdle(stores, instanceLeaseSeconds);
    } catch (error) {
      await sql`UPDATE installation SET moving_since = NULL`;
      throw error;
    }
    await afterStep?.('compared');
    // Waits for wallets whose loading had begun before the data counted as moving.
    await tx.unsafe(`SET LOCAL lock_timeout = ${FLUSH_LOCKS_MS}`);
    await tx`SELECT pg_advisory_xact_lock(${FLUSH_LOCK}::int, shard) FROM generate_series(0, ${keys.shards - 1}::int) AS shard`;
    const removed = await removeAll(stores);
    await afterStep?.('removed');
    // The marks are gone from Redis, too: the history of shards does not apply to shards of another layout.
    await tx`DELETE FROM shard_histories`;
    await tx`DELETE FROM accounts_in_doubt`;
    await tx`UPDATE installation SET redis_shards = NULL, redis_layout = NULL, moving_since = NULL`;
    return `removed ${removed} keys from Redis: the next start may have another REDIS_SHARDS and another REDIS_URL`;
  });
}

/**
 * The program `main.js reshard --take-back`: the installation keeps its layout. Data that were removed from Redis are loaded again.
 */
export async function takeBackReshard(stores: Pick<ReshardStores, 'sql' | 'keys'>): Promise<string> {
  return withoutWriters(stores, async (tx) => {
    const rows = await tx`UPDATE installation SET moving_since = NULL WHERE moving_since IS NOT NULL RETURNING id`;
    return rows.length > 0 ? 'the installation keeps its layout, and can be started' : 'no reshard had begun';
  });
}

/** Runs `work` while no writer, and no other `reshard`, can have a shard. */
async function withoutWriters<T>(
  { sql, keys }: Pick<ReshardStores, 'sql' | 'keys'>,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  return sql.begin(async (tx) => {
    const locks = await tx<{ got: boolean }[]>`
      SELECT pg_try_advisory_xact_lock(${WRITERS_LOCK}::int, 0) AS got
      UNION ALL
      SELECT pg_try_advisory_xact_lock(${WRITER_LOCK}::int, shard) FROM generate_series(0, ${keys.shards - 1}::int) AS shard`;
    if (locks.some(({ got }) => !got)) throw new StartRefused('a writer runs, or another reshard: stop it first');
    return work(tx);
  }) as Promise<T>;
}

async function refuseGateways({ redis, keys }: ReshardStores, leaseSeconds: number): Promise<void> {
  const alive = Array.from(await readLeaseAges(redis, keys)).filter(([, ageMs]) => ageMs < leaseSeconds * 1_000);
  if (alive.length > 0) {
    throw new StartRefused(`a gateway runs, or has ended less than ${leaseSeconds} s ago: stop it, and wait`);
  }
}

async function refuseUnlessIdle(stores: ReshardStores, leaseSeconds: number): Promise<void> {
  const { sql, redis, keys } = stores;
  await refuseGateways(stores, leaseSeconds);
  let [events, holds] = [0, 0];
  for (const [shard, open] of keys.open.entries()) {
    const store = redis.shard(shard);
    events += Number(await store.command('xlen', [keys.usage[shard] as string]));
    const texts = (await store.command('hvals', [open])) as string[];
    // A tombstone is not a hold.
    holds += texts.filter((text) => !text.startsWith('x')).length;
  }
  if (events + holds > 0) {
    throw new StartRefused(
      `Redis has ${events} events that are not stored and ${holds} open calls: run the writer until there are none ` +
        '(tollgate_writer_backlog_events is 0; open calls of dead gateways are refunded after a minute)',
    );
  }
  const [debits] = await sql<{ begun: number }[]>`SELECT count(*)::int AS begun FROM debits WHERE state = 'begun'`;
  if (debits !== undefined && debits.begun > 0) {
    throw new StartRefused(`${debits.begun} debits are under way: run the writer until they have ended`);
  }
}

/** Drifts of the wallets vanish with them, so somebody has to look at them first. */
async function refuseDrift(stores: ReshardStores): Promise<void> {
  const reconcilers = new Reconcilers(stores);
  await reconcilers.run('reshard');
  const reports = reconcilers.last?.reports ?? [];
  const drifting = reports.reduce((sum, { driftingAccounts }) => sum + driftingAccounts, 0);
  const compared = reports.filter((report) => report.compared).length;
  if (drifting > 0 || compared < stores.keys.shards) {
    throw new StartRefused(
      `${drifting} wallets disagree with Postgres, and ${stores.keys.shards - compared} shards could not be compared: ` +
        'see GET /api/v1/admin/reconciliation',
    );
  }
}

/** The id of the installation is removed last: until then nobody else takes this Redis. */
async function removeAll({ redis, keys }: ReshardStores): Promise<number> {
  let removed = 0;
  const parts = byStore(redis, Array.from(keys.open.keys()));
  for (const [store, shards] of parts) {
    const isOurs = new RegExp(
      `^(?:key|wallet|ip|open|lease|usage|mark):\\{(?:${shards.map((shard) => tagOf(keys, shard)).join('|')})\\}`,
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

/** The tag of a shard as it occurs in the names of its keys, for a regular expression. */
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
