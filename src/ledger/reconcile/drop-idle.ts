import { mayDrop } from '../history/may-drop.ts';
import { dropWalletsScript } from '../scripts.ts';
import { forgetTrees } from './forget-trees.ts';
import { pagesOf } from './pages.ts';
import { type NumbersRead, type ReconcileStores, type ShardView, STREAM_PAGE } from './shard-view.ts';

/** Wallets that one script judges and deletes: it takes some 3 ms, and calls wait as long. */
const DROP_AT_ONCE = 500;

/** What the script replies for a wallet that stays. */
const STAYS = -1;

type Drop = {
  readonly view: ShardView;
  readonly shard: number;
  readonly accountIds: readonly string[];
};

/**
 * In doubt, drops those of the loaded wallets that have nothing under way: they are loaded again exactly as Postgres has them when their
 * account calls. So an account can spend what its wallet has too much only until this has passed over it.
 *
 * Postgres is asked first, and then drop-wallets.lua judges each wallet and deletes it at one instant. Redis forgets the trees of keys of
 * all these accounts.
 *
 * @returns the wallets that were dropped, by account: the number of the last repair of each; 0: none
 */
export async function dropIdle(stores: ReconcileStores, drop: Drop): Promise<ReadonlyMap<string, number>> {
  const { view, shard, accountIds } = drop;
  const before = Promise.all([forgetTrees(stores, shard, accountIds), view.readAhead()]);
  const dropping = view.readNumbers(accountIds, async (read) => {
    await before;
    return view.hasUnreadable ? new Map<string, number>() : dropThese(stores, drop, read);
  });
  const [dropped] = await Promise.all([dropping, before]);
  return dropped;
}

async function dropThese(
  { redis, keys }: Pick<ReconcileStores, 'redis' | 'keys'>,
  { view, shard, accountIds }: Drop,
  { numbers: { creditSeqs, debits }, historyOf, rejected, marks }: NumbersRead,
): Promise<ReadonlyMap<string, number>> {
  const asked: (readonly [accountId: string, lastNumbers: string])[] = [];
  for (const accountId of accountIds) {
    const { debitSeq = 0, hasBegunDebit = false } = debits.get(accountId) ?? {};
    const streamed = view.hasEvents(accountId) ? 1 : 0;
    // Of holds the script knows.
    const mayLeave = mayDrop(historyOf(accountId), { holds: 0, streamed, hasBegunDebit });
    if (mayLeave && !rejected.has(accountId)) asked.push([accountId, `${creditSeqs.get(accountId) ?? 0} ${debitSeq}`]);
  }
  const names = [keys.open, keys.usage, keys.mark].map((of) => of[shard] as string);
  const args = [...marks, ...view.lastRead, String(STREAM_PAGE)];
  const drop = async (some: readonly (typeof asked)[number][]): Promise<(readonly [string, number])[]> => {
    const wallets = some.map(([accountId]) => keys.wallet(shard, accountId));
    const keysAndArgs = [...names, ...wallets, ...args, ...some.map(([, lastNumbers]) => lastNumbers)];
    const reply = (await redis.script(dropWalletsScript, names.length + wallets.length, keysAndArgs)) as number[];
    return some.map(([accountId], i) => [accountId, reply[i] ?? STAYS]);
  };
  // Sent together: between two of them Redis answers calls.
  const replies = await Promise.all(Array.from(pagesOf(asked, DROP_AT_ONCE), drop));
  return new Map(replies.flat().filter(([, repairId]) => repairId !== STAYS));
}
