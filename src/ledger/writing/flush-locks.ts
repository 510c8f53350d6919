import type { PostgresSession } from '../../platform/postgres.ts';
import { FLUSH_LOCK } from '../locks.ts';

/**
 * A shard that somebody has locked (wallets are loaded, or it is compared) is left out of the flush. So that it has its
 * turn among many short locks, the writer queues for one such shard now and then, for so long.
 */
const LOCK_WAIT_MS = 250;

/**
 * Takes the flush locks that are free, and waits for one that is not if asked to.
 *
 * @param waitFor a shard, or null
 * @returns the shards whose locks are ours until the end of the transaction
 */
export async function lockShards(
  session: PostgresSession,
  shards: readonly number[],
  waitFor: number | null,
): Promise<Set<number>> {
  if (waitFor !== null) {
    await session.query(`SET LOCAL lock_timeout = ${LOCK_WAIT_MS}`);
    await session.query('SELECT pg_advisory_xact_lock($1::int, $2::int)', [FLUSH_LOCK, waitFor]);
    await session.query('SET LOCAL lock_timeout TO DEFAULT');
  }
  const rows = await session.query<{ shard: number; locked: boolean }>(
    `SELECT shard, pg_try_advisory_xact_lock($1::int, shard) AS locked
     FROM (SELECT unnest($2::int[]) AS shard) AS shards`,
    [FLUSH_LOCK, `{${shards.join(',')}}`],
  );
  return new Set(rows.filter(({ locked }) => locked).map(({ shard }) => shard));
}
