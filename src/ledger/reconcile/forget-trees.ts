import type { ReconcileStores } from './shard-view.ts';

/**
 * In doubt, removes from Redis what it knows of the child keys of these accounts, with the keys above them, to be loaded again as
 * Postgres has it. An older Redis may have former budgets, and nothing else would notice: its replies do not tell them.
 * The token buckets of the keys at the top are full then; those of child keys are in the wallet.
 */
export async function forgetTrees(
  { sql, redis, keys }: ReconcileStores,
  shard: number,
  accountIds: readonly string[],
): Promise<void> {
  const list = `{${accountIds.join(',')}}`;
  const roots = await sql<{ keyId: string }[]>`
    SELECT DISTINCT ancestors[1] AS "keyId" FROM api_keys WHERE account_id = ANY(${list}::uuid[]) AND ancestors <> '{}'`;
  if (roots.length === 0) return;
  await redis.command(
    'del',
    roots.map(({ keyId }) => keys.key(shard, keyId)),
  );
}
