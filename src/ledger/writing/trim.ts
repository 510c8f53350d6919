import { byStore, type RedisStore } from '../../platform/redis.ts';
import type { RedisKeys } from '../../platform/redis-keys.ts';
import type { Mark } from '../history/judge.ts';
import { entryText, markText } from '../history/marks.ts';
import { trimStreamScript } from '../scripts.ts';
import { type Batch, type Page, ShardsAway, type StreamStores } from './stream.ts';

/** A batch whose flush was committed, and may leave the streams. */
export type Stored = {
  readonly batch: Batch;
  /** The mark of the flush. */
  readonly mark: Mark;
  /** The mark that the flush saw in each shard. */
  readonly saw: ReadonlyMap<number, Mark | null>;
};

/** Maximum number of entries that one command deletes, and so of a page. A longer command would delay calls in Redis. */
const MOST_ENTRIES = 1_000;

/**
 * Deletes exactly the entries of this batch, and leaves the mark of its flush: a whole page at once if its entries are the oldest
 * of the stream, otherwise by their ids. Small pages of one store share a command, and the next one is sent after its reply, as
 * `readBatch` does. If a page is no longer unchanged in the stream, or Redis has the mark of another flush, nothing of it is
 * deleted: the rest of it is read again, and calls that are already stored then change nothing.
 */
export async function trim(stores: StreamStores, stored: Stored): Promise<void> {
  const { redis } = stores;
  const failed = new Map<number, unknown>();
  for (const [store, shards] of byStore(redis, stored.batch.shards)) {
    const pages = stored.batch.pages.filter(({ shard }) => shards.includes(shard));
    try {
      for (const group of groupsOf(pages)) await trimPages(store, stores.keys, group, stored);
    } catch (error) {
      if (!redis.isCluster) throw error;
      for (const shard of shards) failed.set(shard, error);
    }
  }
  const [first] = failed.values();
  if (failed.size > 0) throw new ShardsAway(Array.from(failed.keys()), first);
}

function groupsOf(pages: readonly Page[]): Page[][] {
  const groups: Page[][] = [];
  let size = MOST_ENTRIES;
  for (const page of pages) {
    size += page.ids.length;
    if (size > MOST_ENTRIES) {
      groups.push([]);
      size = page.ids.length;
    }
    groups.at(-1)?.push(page);
  }
  return groups;
}

async function trimPages(store: RedisStore, keys: RedisKeys, pages: readonly Page[], stored: Stored): Promise<void> {
  const run = async (its: readonly Page[], tailOf: (page: Page) => readonly string[]): Promise<number[]> => {
    const names = its.flatMap(({ shard }) => [keys.usage[shard] as string, keys.mark[shard] as string]);
    const args = its.flatMap((page) => [...headOf(page, stored), ...tailOf(page)]);
    return (await store.script(trimStreamScript, names.length, [...names, ...args])) as number[];
  };
  const byIds = ({ ids }: Page): string[] => ['', String(ids.length), ...ids];
  const done = await run(pages, (page) => (page.hasGaps ? byIds(page) : [page.ids[0] as string]));
  const left = pages.filter(({ hasGaps }, at) => !hasGaps && done[at] !== 1);
  if (left.length > 0) await run(left, byIds);
}

/** What the script compares before it deletes a page. */
const headOf = ({ shard, ids, lastFields }: Page, { mark, saw }: Stored): string[] => [
  markText(saw.get(shard) ?? null),
  markText(mark),
  ids.at(-1) as string,
  entryText(lastFields),
];
