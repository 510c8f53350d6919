import { mayDrop } from '../history/may-drop.ts';
import { dropWalletsScript } from '../scripts.ts';
import { chunksOf } from './chunks.ts';
import { forgetTrees } from './forget-trees.ts';
import { type NumbersRead, type ReconcileStores, type ShardView, STREAM_PAGE } from './shard-view.ts';

/** Maximum number of wallets that one script judges and deletes. It took 3 to 7 ms on a busy machine, and calls wait as long. */
const DROP_AT_ONCE = 500;

type Drop = {
  readonly view: ShardView;
  readonly shard: number;
  readonly accountIds: readonly string[];
};

/**
 * In doubt, drops the loaded wallets that have nothing under way. They are loaded again exactly as in Postgres when their account
 * calls. So an account can spend a surplus in its wallet only until this has passed over the wallet.
 *
 * Redis first forgets the trees of keys of all these accounts: if that fails, their wallets are still there, and the next run does
 * both. Meanwhile Postgres is asked, and then drop-wallets.lua judges and deletes each wallet at one instant. That needs no flush
 * lock: if Postgres ends the transaction meanwhile, a flush changes the mark or the stream, and the script sees both.
 *
 * @returns the dropped wallets, by account, each with the number of its last repair; 0: none
 */
export async function dropIdle(stores: ReconcileStores, drop: Drop): Promise<ReadonlyMap<string, number>> {
  const { view, shard, accountIds } = drop;
  const reading = view.readAhead();
  const dropping = view.readNumbers(
    Array.from(chunksOf(accountIds, DROP_AT_ONCE)),
    (tx) => forgetTrees(tx, stores, shard, accountIds),
    async (some, read) => {
      await reading;
      return view.hasUnreadable ? [] : dropThese(stores, { ...drop, accountIds: some }, read);
    },
  );
  const [dropped] = await Promise.all([dropping, reading]);
  return new Map(dropped.flat());
}

async function dropThese(
  { redis, keys }: Pick<ReconcileStores, 'redis' | 'keys'>,
  { view, shard, accountIds }: Drop,
  { numbers: { creditSeqs, debits }, historyOf, rejected, marks }: NumbersRead,
): Promise<(readonly [accountId: string, repairId: number])[]> {
  const names = [keys.open, keys.usage, keys.mark].map((of) => of[shard] as string);
  const lastNumbers: string[] = [];
  const asked: string[] = [];
  for (const accountId of accountIds) {
    const { debitSeq = 0, hasBegunDebit = false } = debits.get(accountId) ?? {};
    const streamed = view.hasEvents(accountId) ? 1 : 0;
    // The script itself checks for holds.
    const underWay = { holds: 0, streamed, hasBegunDebit };
    if (rejected.has(accountId) || !mayDrop(historyOf(accountId), underWay)) continue;
    asked.push(accountId);
    names.push(keys.wallet(shard, accountId));
    lastNumbers.push(`${creditSeqs.get(accountId) ?? 0} ${debitSeq}`);
  }
  const args = [...marks, ...view.lastRead, String(STREAM_PAGE), lastNumbers.join()];
  const reply = (await redis.script(dropWalletsScript, names.length, [...names, ...args])) as number[];
  const dropped = reply.map((repairId, i) => [asked[i] as string, repairId] as const);
  return dropped.filter(([, repairId]) => repairId >= 0);
}
