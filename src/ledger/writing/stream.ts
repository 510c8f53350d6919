import { claimScript } from '../../platform/installation.ts';
import { isWrongType, type RedisClient } from '../../platform/redis.ts';
import type { RedisKeys } from '../../platform/redis-keys.ts';
import { deleteEntriesScript, deleteStoredScript } from '../scripts.ts';
import { decodeUsageEvent, isEvent, isNewerEvent, type UsageEvent } from '../usage-event.ts';
import { CallRows } from './call-rows.ts';
import { CallSums } from './call-sums.ts';
import type { PackedEntries } from './entry-rows.ts';
import type { Position, ReadOver } from './read-over.ts';

/** An entry of a usage stream: a settled call, one that only a newer version can read, or something that cannot be one. */
export type StreamEntry = {
  readonly shard: number;
  readonly id: string;
  /** As they stand in the stream: name, value, name, value. */
  readonly fields: readonly string[];
  readonly event: UsageEvent | null;
  /** Why there is no event. */
  readonly error: string;
  /** It stays in the stream until a newer writer comes. */
  readonly isNewer: boolean;
};

function decode(shard: number, id: string, fields: readonly string[]): StreamEntry {
  // Without an exception: each look at a stream may meet 20 000 of them again.
  if (isNewerEvent(fields[0])) return { shard, id, fields, event: null, error: 'of a newer version', isNewer: true };
  try {
    if (!isEvent(fields[0])) throw new Error('usage event: no field e1');
    return { shard, id, fields, event: decodeUsageEvent(fields[1] as string), error: '', isNewer: false };
  } catch (error) {
    return { shard, id, fields, event: null, error: (error as Error).message, isNewer: false };
  }
}

/** Most entries one command asks Redis for: longer ones would hold up calls. */
const PAGE = 1_000;
/** Events of a newer version that one look at a stream reads over, some 50 ms; the next look goes on behind them. */
const MAX_READ_OVER = 20_000;

/**
 * Consecutive entries of one stream, ready to be stored. The events themselves are not kept: 10 000 of them outlive the
 * young generation; collecting them cost 1.2 µs an event more.
 */
export type Page = {
  readonly shard: number;
  readonly ids: readonly string[];
  readonly lastFields: readonly string[];
  readonly calls: number;
  readonly rows: CallRows;
  readonly entries: PackedEntries;
  readonly sums: readonly string[];
  readonly chargedMicros: number;
  /** Those that are no events. */
  readonly rejected: readonly StreamEntry[];
  /** There are events of a newer version among them in the stream. They are not of the page, and must not be deleted. */
  readonly hasGaps: boolean;
};

/** @returns null when all of them are for a newer writer */
function newPage(read: readonly StreamEntry[], feeBasisPoints: number): Page | null {
  const hasGaps = read.some(({ isNewer }) => isNewer);
  const entries = hasGaps ? read.filter(({ isNewer }) => !isNewer) : read;
  if (entries.length === 0) return null;
  const last = entries[entries.length - 1] as StreamEntry;
  const events: UsageEvent[] = [];
  const rejected: StreamEntry[] = [];
  for (const entry of entries) {
    if (entry.event === null) rejected.push(entry);
    else events.push(entry.event);
  }
  const sums = new CallSums(events, feeBasisPoints);
  return {
    shard: last.shard,
    ids: entries.map(({ id }) => id),
    lastFields: last.fields,
    calls: events.length,
    rows: new CallRows(events, feeBasisPoints),
    entries: sums.entries(),
    sums: sums.columns(),
    chargedMicros: sums.chargedMicros,
    rejected,
    hasGaps,
  };
}

/** What the writer stores in one transaction: the oldest entries of some streams. */
export type Batch = {
  /** Those of a shard in their order. */
  readonly pages: readonly Page[];
  /** With entries in this batch, ascending. */
  readonly shards: readonly number[];
  /** Entries in it. */
  readonly size: number;
  /** Entries that were in the streams behind this batch, and may be for this writer: those that it read over are not counted. */
  readonly behind: number;
  /** How far each stream was read for it. */
  readonly readTo: ReadonlyMap<number, Position>;
};

function newBatch(pages: readonly Page[], behind: number, readTo: ReadonlyMap<number, Position>): Batch {
  const shards = Array.from(new Set(pages.map(({ shard }) => shard))).sort((a, b) => a - b);
  return { pages, shards, size: sizeOf(pages), behind, readTo };
}

/**
 * Whether every sum over these pages is what its digits say: none is larger than that of all charges. If it left the exact
 * range of numbers, the calls are stored by `FLUSH_SQL`.
 */
export function isExact(pages: readonly Page[]): boolean {
  return Number.isSafeInteger(pages.reduce((sum, { chargedMicros }) => sum + chargedMicros, 0));
}

const sizeOf = (pages: readonly Page[]): number => pages.reduce((sum, { ids }) => sum + ids.length, 0);

/** Where to read a stream, and how the calls in it are charged. */
export type StreamSource = {
  readonly redis: RedisClient;
  readonly keys: RedisKeys;
  readonly feeBasisPoints: number;
  readonly readOver: ReadOver;
  /** Told with each look at a stream from its beginning how many events of a newer version it read over. */
  readonly onNewer?: (shard: number, events: number) => void;
  /** Told with each look whether the key of a stream has another type: then it counts as empty, and keeps no other waiting. */
  readonly onLook?: (shard: number, isDamaged: boolean) => void;
};

type Stores = Pick<StreamSource, 'redis' | 'keys'>;

/** Whether a stream of `shards` has an entry that it has not read over, asked in one command: what an idle writer asks. */
export async function isAnyWaiting(
  { redis, keys, readOver }: StreamSource,
  shards: readonly number[],
): Promise<boolean> {
  if (shards.length === 0) return false;
  const streams = shards.map((shard) => keys.usage[shard] as string);
  const ids = shards.map((shard) => readOver.head(shard).id ?? '0');
  try {
    return (await redis.command('xread', ['COUNT', '1', 'STREAMS', ...streams, ...ids])) !== null;
  } catch (error) {
    // One of them is damaged: whoever reads them one by one says so, and leaves out only that one.
    if (isWrongType(error)) return true;
    throw error;
  }
}

/**
 * Reads the next entries of the streams of `shards`, at most `size`. One command at a time: Redis carries out all that a
 * client has sent before it turns to the others, and calls would wait for 10 ms. At half load and 5 000 events a batch the
 * p99 of calls was 14.1 ms with all streams at once and 10.5 like this.
 *
 * @param after a batch that is still in the streams: read on behind it
 */
export async function readBatch(
  source: StreamSource,
  shards: readonly number[],
  size: number,
  after: Batch | null,
): Promise<Batch> {
  const lengths = await Promise.all(shards.map((shard) => lengthOf(source, shard)));
  const from = shards.map((shard, i) => after?.readTo.get(shard) ?? source.readOver.head(shard, lengths[i]));
  const unread = shards.map((shard, i) => {
    const inBatch = sizeOf(after?.pages.filter((page) => page.shard === shard) ?? []);
    return Math.max(0, (lengths[i] as number) - inBatch - (from[i] as Position).newer);
  });
  const counts = shares(unread, size);
  const pages: Page[] = [];
  const readTo = new Map<number, Position>();
  let behind = unread.reduce((sum, length) => sum + length, 0);
  for (const [i, shard] of shards.entries()) {
    const start = from[i] as Position;
    const read = await readPages(source, shard, start, counts[i] as number);
    pages.push(...read.pages);
    readTo.set(shard, read.to);
    behind -= sizeOf(read.pages) + read.to.newer - start.newer;
    if (after?.readTo.has(shard)) continue;
    source.readOver.remember(shard, read.head);
    source.onNewer?.(shard, read.to.newer);
  }
  return newBatch(pages, behind, readTo);
}

async function lengthOf({ redis, keys, onLook }: StreamSource, shard: number): Promise<number> {
  try {
    const length = (await redis.command('xlen', [keys.usage[shard] as string])) as number;
    onLook?.(shard, false);
    return length;
  } catch (error) {
    if (!isWrongType(error)) throw error;
    onLook?.(shard, true);
    return 0;
  }
}

/** @returns the pages, how far it has read, and where the first of the pages begins at the earliest */
async function readPages(source: StreamSource, shard: number, from: Position, count: number) {
  const pages: Page[] = [];
  let to = from;
  let head = from;
  for (let left = count; left > 0 && to.newer - from.newer <= MAX_READ_OVER; ) {
    const asked = to.newer > from.newer ? PAGE : Math.min(left, PAGE);
    const entries = await readEntries(source, shard, to.id, asked);
    const page = newPage(entries, source.feeBasisPoints);
    if (page !== null) pages.push(page);
    const taken = page?.ids.length ?? 0;
    left -= taken;
    to = { id: entries.at(-1)?.id ?? to.id, newer: to.newer + entries.length - taken };
    if (pages.length === 0) head = to;
    if (entries.length < asked) break;
  }
  return { pages, to, head };
}

/** @param after the id of an entry: those behind it; null: the oldest */
export async function readEntries(
  { redis, keys }: Stores,
  shard: number,
  after: string | null,
  count: number,
): Promise<StreamEntry[]> {
  const from = after === null ? '-' : `(${after}`;
  const args = [keys.usage[shard] as string, from, '+', 'COUNT', String(count)];
  const entries = (await redis.command('xrange', args)) as [string, string[]][];
  return entries.map(([id, fields]) => decode(shard, id, fields));
}

/** The part of a batch that is of these shards; the rest is behind it. */
export function ofShards(batch: Batch, shards: ReadonlySet<number>): Batch {
  if (batch.shards.every((shard) => shards.has(shard))) return batch;
  const pages = batch.pages.filter(({ shard }) => shards.has(shard));
  // What was dropped is read from the head of its stream again.
  const readTo = new Map(Array.from(batch.readTo).filter(([shard]) => shards.has(shard)));
  return newBatch(pages, batch.behind + batch.size - sizeOf(pages), readTo);
}

/**
 * Whether the batch is in the streams as it was read. Entries leave only through us, or when Redis loses its data: all of
 * it, or the last moments before its end. So where the youngest entry is, all of them are. And where it still is, nobody
 * flushed Redis since it was read: so the installation whose data these are now is the one they were read from.
 *
 * @throws ForeignRedis when that is not ours
 */
export async function isStillThere(source: Stores, batch: Batch): Promise<boolean> {
  const youngest = new Map(batch.pages.map((page) => [page.shard, page]));
  const looks = Array.from(youngest.values(), (page) => isPageThere(source, page));
  const [, ...found] = await Promise.all([source.redis.script(claimScript, 0, []), ...looks]);
  return !found.includes(false);
}

async function isPageThere({ redis, keys }: Stores, { shard, ids, lastFields }: Page): Promise<boolean> {
  const id = ids[ids.length - 1] as string;
  const [entry] = (await redis.command('xrange', [keys.usage[shard] as string, id, id])) as [string, string[]][];
  return entry?.[1].join('\t') === lastFields.join('\t');
}

/** The entries of a batch that is still there, with their events. */
export async function readAgain({ redis, keys }: Stores, batch: Batch): Promise<StreamEntry[]> {
  const entries = batch.pages.map(async ({ shard, ids }) => {
    const args = [keys.usage[shard] as string, ids[0] as string, ids[ids.length - 1] as string];
    const found = (await redis.command('xrange', args)) as [string, string[]][];
    return found.map(([id, fields]) => decode(shard, id, fields)).filter(({ isNewer }) => !isNewer);
  });
  return (await Promise.all(entries)).flat();
}

/**
 * Deletes exactly these entries: those of a page at once where they are the oldest, else one by one. One command at a time, as
 * they are read. Of a page that is not there any more as it was read, nothing: what is left of it is read again, and what is
 * stored already changes nothing then.
 */
export async function deleteBatch(source: Stores, batch: Batch): Promise<void> {
  const { redis, keys } = source;
  for (const page of batch.pages) {
    const { shard, ids, lastFields } = page;
    const usage = keys.usage[shard] as string;
    const last = ids[ids.length - 1] as string;
    const args = [usage, ids[0] as string, last, lastFields.join('\t')];
    if (!page.hasGaps && (await redis.script(deleteStoredScript, 1, args)) === 1) continue;
    if (await isPageThere(source, page)) await redis.script(deleteEntriesScript, 1, [usage, ...ids]);
  }
}

/**
 * Splits a batch among streams: all of the short ones, so that a busy account does not delay the others, and the rest
 * evenly among the long ones.
 *
 * @returns how many entries to read of each; their sum is at most `total`
 */
export function shares(lengths: readonly number[], total: number): number[] {
  const counts = lengths.map(() => 0);
  const order = lengths.map((_, i) => i).sort((a, b) => (lengths[a] as number) - (lengths[b] as number));
  let left = total;
  order.forEach((stream, position) => {
    const fair = Math.floor(left / (order.length - position));
    const count = Math.min(lengths[stream] as number, fair);
    counts[stream] = count;
    left -= count;
  });
  return counts;
}
