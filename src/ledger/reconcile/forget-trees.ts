import type { Tx } from '../../platform/postgres.ts';
import { chunksOf } from './chunks.ts';
import type { ReconcileStores } from './shard-view.ts';

/** Maximum number of trees that one command removes, at 2 µs each: calls wait as long. */
const FORGET_AT_ONCE = 500;

/**
 * In doubt, removes from Redis what it knows about the child keys of these accounts and the keys above them. It is loaded again
 * from Postgres. An older Redis may have former budgets, and nothing else would notice, because its replies do not tell them. The
 * token buckets of root keys are full afterwards; those of child keys are in the wallet.
 */
export async function forgetTrees(
  tx: Tx,
  { redis, keys }: Pick<ReconcileStores, 'redis' | 'keys'>,
  shard: number,
  accountIds: readonly string[],
): Promise<void> {
  const list = `{${accountIds.join(',')}}`;
  const roots = await tx<{ keyId: string }[]>`
    SELECT DISTINCT ancestors[1] AS "keyId" FROM api_keys WHERE account_id = ANY(${list}::uuid[]) AND ancestors <> '{}'`;
  for (const some of chunksOf(roots, FORGET_AT_ONCE)) {
    await redis.command(
      'del',
      some.map(({ keyId }) => keys.key(shard, keyId)),
    );
  }
}
