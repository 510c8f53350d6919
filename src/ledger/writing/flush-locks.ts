import type { PostgresSession } from '../../platform/postgres.ts';
import { FLUSH_LOCK } from '../locks.ts';

/**
 * Longest wait for the flush lock of one shard. A flush leaves out a shard that another process has locked (to load its wallets or
 * to compare it). A shard that others lock repeatedly for short times would be left out each time, so the writer sometimes queues
 * for its lock. If it does not get the lock within this time, the whole flush is rolled back and tried again.
 */
const LOCK_WAIT_MS = 250;

/**
 * Takes all flush locks of `shards` that are free. Before that it waits for the flush lock of `waitFor`, and throws Postgres'
 * `lock_not_available` if that lock is not free within `LOCK_WAIT_MS`.
 *
 * @param waitFor a shard; null: wait for none
 * @returns the shards that this transaction has locked until it ends
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
