import { mayDrop } from '../history/may-drop.ts';
import { dropWalletsScript } from '../scripts.ts';
import { type NumbersRead, type ReconcileStores, type ShardView, STREAM_PAGE } from './shard-view.ts';

type Drop = {
  readonly view: ShardView;
  readonly shard: number;
  readonly accountIds: readonly string[];
};

/**
 * In doubt, drops those of the loaded wallets that have nothing under way: they are loaded again exactly as Postgres has them when their
 * account calls. So an account can spend what its wallet has too much only until this has passed over it.
 *
 * Postgres is asked first, and then drop-wallets.lua judges and deletes at one instant.
 *
 * @returns the wallets that were dropped, by account: the number of the last repair of each; 0: none
 */
export async function dropIdle(
  stores: Pick<ReconcileStores, 'redis' | 'keys'>,
  drop: Drop,
): Promise<ReadonlyMap<string, number>> {
  const { view, accountIds } = drop;
  await view.readAhead();
  return view.hasUnreadable ? new Map() : view.readNumbers(accountIds, (read) => dropThese(stores, drop, read));
}

async function dropThese(
  { redis, keys }: Pick<ReconcileStores, 'redis' | 'keys'>,
  { view, shard }: Drop,
  { numbers, historyOf, rejected, marks }: NumbersRead,
): Promise<ReadonlyMap<string, number>> {
  const names = [keys.open, keys.usage, keys.mark].map((of) => of[shard] as string);
  const args = [...marks, ...view.lastRead, String(STREAM_PAGE)];
  const asked: string[] = [];
  for (const [accountId, { creditSeq, debitSeq, begunDebitSeq }] of numbers) {
    const streamed = view.hasEvents(accountId) ? 1 : 0;
    // Of holds the script knows.
    const underWay = { holds: 0, streamed, hasBegunDebit: begunDebitSeq !== null };
    if (rejected.has(accountId) || !mayDrop(historyOf(accountId), underWay)) continue;
    asked.push(accountId);
    names.push(keys.wallet(shard, accountId));
    args.push(accountId, String(creditSeq), String(debitSeq));
  }
  const reply = (await redis.script(dropWalletsScript, names.length, [...names, ...args])) as number[];
  const dropped = reply.map((repairId, i) => [asked[i] as string, repairId] as const);
  return new Map(dropped.filter(([, repairId]) => repairId >= 0));
}
