import { type Judged, judgeShards } from '../history/histories-sql.ts';
import { isInDoubt } from '../history/judge.ts';
import { seeShards } from '../history/marks.ts';
import type { ReconcileStores } from './shard-view.ts';

/** What both stores say about shards, without reading any wallet. */
export type StoresLook = {
  readonly judged: ReadonlyMap<number, Judged>;
  /** Whether Redis may have changed since the last clean comparison. */
  readonly isInDoubt: boolean;
  /** The youngest row of the journal, of any shard. Everything that moves money in Postgres makes one. */
  readonly newestPosting: number;
};

/** Looks at shards of one Redis: one script and two short queries. Redis comes first, as `judgeShards` requires. */
export async function lookAtStores(
  { sql, redis, keys }: ReconcileStores,
  shards: readonly number[],
): Promise<StoresLook> {
  const { seen } = await seeShards(redis, keys, shards);
  const judged = await judgeShards(sql.unsafe, seen);
  const [row] = await sql<{ newest: number }[]>`SELECT coalesce(max(id), 0) AS newest FROM journal`;
  return {
    judged,
    isInDoubt: Array.from(judged.values()).some(({ history }) => isInDoubt(history)),
    newestPosting: row?.newest ?? 0,
  };
}
