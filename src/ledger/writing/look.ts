import { byStore } from '../../platform/redis.ts';
import type { Seen } from '../history/judge.ts';
import { seeShards } from '../history/marks.ts';
import { type Batch, type Page, ShardsAway, type StreamStores } from './stream.ts';

/**
 * Looks at the shards of a batch, and at others (`also`). Entries disappear only when this writer deletes them, or when Redis loses
 * its data. A page is there if its first and its last entry are: Redis loses the youngest entries first, and a writer of a lost
 * Postgres, which comes late, trims the oldest. It also means that nobody has run FLUSHALL since the read: the installation that
 * owns Redis now owned it when the entries were read.
 *
 * @returns what was seen in each shard; null if a page is not in its stream any more, unchanged
 * @throws ForeignRedis when Redis belongs to another installation
 * @throws ShardsAway when nodes of a cluster are away
 */
export async function lookAt(
  { redis, keys }: StreamStores,
  batch: Batch,
  also: readonly number[],
): Promise<ReadonlyMap<number, Seen> | null> {
  const stores = Array.from(byStore(redis, Array.from(new Set([...batch.shards, ...also]))));
  const looks = stores.map(([store, shards]) => {
    const pages = batch.pages.filter(({ shard }) => shards.includes(shard));
    return seeShards(store, keys, shards, pages.flatMap(endsOf));
  });
  const results = await Promise.allSettled(looks);
  const away = results.flatMap((result, at) => (result.status === 'rejected' ? (stores[at]?.[1] ?? []) : []));
  const sights = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  if (away.length > 0) {
    const { reason } = results.find((result) => result.status === 'rejected') as PromiseRejectedResult;
    throw redis.isCluster ? new ShardsAway(away, reason) : reason;
  }
  if (sights.some(({ areAllThere }) => !areAllThere)) return null;
  return new Map(sights.flatMap(({ seen }) => Array.from(seen)));
}

/** The first entry, of which only the id is compared, and the last entry. */
function endsOf({ shard, ids, lastFields }: Page) {
  return [
    { shard, id: ids[0] as string, fields: [] },
    { shard, id: ids.at(-1) as string, fields: lastFields },
  ];
}
