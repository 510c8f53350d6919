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

/**
 * Deletes exactly the entries of this batch, and leaves the mark of its flush: a whole page at once if its entries are the oldest of the
 * stream, otherwise by their ids. It sends one command at a time, as `readBatch` does. If a page is no longer in the stream as it
 * was read, or Redis has the mark of another flush, nothing of it is deleted: what is left of it is read again, and the calls in it that are
 * stored already change nothing then.
 */
export async function trim(stores: StreamStores, stored: Stored): Promise<void> {
  const failed = new Map<number, unknown>();
  for (const page of stored.batch.pages) {
    if (failed.has(page.shard)) continue;
    try {
      await trimPage(stores, page, stored);
    } catch (error) {
      if (!stores.redis.isCluster) throw error;
      failed.set(page.shard, error);
    }
  }
  const [first] = failed.values();
  if (failed.size > 0) throw new ShardsAway(Array.from(failed.keys()), first);
}

async function trimPage({ redis, keys }: StreamStores, page: Page, { mark, saw }: Stored): Promise<void> {
  const { shard, ids, lastFields } = page;
  const names = [keys.usage[shard] as string, keys.mark[shard] as string];
  const marks = [markText(saw.get(shard) ?? null), markText(mark)];
  const last = [ids.at(-1) as string, entryText(lastFields)];
  const run = async (...which: readonly string[]): Promise<boolean> =>
    (await redis.script(trimStreamScript, 2, [...names, ...marks, ...last, ...which])) === 1;
  if (!page.hasGaps && (await run(ids[0] as string))) return;
  await run('', ...ids);
}
