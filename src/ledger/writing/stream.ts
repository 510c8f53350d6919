import { byStore, isWrongType, type RedisStore } from '../../platform/redis.ts';
import type { RedisKeys } from '../../platform/redis-keys.ts';
import { decodeUsageEvent, isEvent, isNewerEvent, NEWER_EVENT, type UsageEvent } from '../usage-event.ts';
import { CallRows } from './call-rows.ts';
import { CallSums, type PageSums } from './call-sums.ts';
import type { Position, ReadOver } from './read-over.ts';

/** An entry of a usage stream: a settled call, an event that only a newer version can read, or something that is not an event. */
export type StreamEntry = {
  readonly shard: number;
  readonly id: string;
  /** The entry's fields as they are in the stream: name, value, name, value. */
  readonly fields: readonly string[];
  readonly event: UsageEvent | null;
  /** Why `event` is null. */
  readonly error: string;
  /** Whether the entry is of a newer version. It then stays in the stream until a newer writer comes. */
  readonly isNewer: boolean;
};

/** An entry as Redis has it. */
export type RawEntry = readonly [id: string, fields: readonly string[]];

export function decodeEntry(shard: number, id: string, fields: readonly string[]): StreamEntry {
  // Events of a newer version throw no exception, because one look at a stream may meet 20 000 of them (`MAX_READ_OVER`).
  if (isNewerEvent(fields[0])) return { shard, id, fields, event: null, error: 'of a newer version', isNewer: true };
  try {
    if (!isEvent(fields[0])) throw new Error('usage event: field e1 is missing');
    return { shard, id, fields, event: decodeUsageEvent(fields[1] as string), error: '', isNewer: false };
  } catch (error) {
    return { shard, id, fields, event: null, error: (error as Error).message, isNewer: error === NEWER_EVENT };
  }
}

/**
 * Maximum number of entries that one command reads; for several streams the number is approximate. A longer command would delay
 * calls in Redis.
 */
const PAGE = 1_000;
/**
 * About how many events of a newer version one look at a stream skips at most: 20 000 take about 50 ms. The next look continues
 * after them.
 */
const MAX_READ_OVER = 20_000;

/**
 * Consecutive entries of one stream, prepared for storing. The decoded events are not kept: 10 000 of them would survive the
 * garbage collector's young generation, and collecting them cost 1.2 µs more per event.
 */
export type Page = PageSums & {
  readonly shard: number;
  readonly ids: readonly string[];
  readonly lastFields: readonly string[];
  readonly calls: number;
  readonly rows: CallRows;
  /** Entries that are not events. */
  readonly rejected: readonly StreamEntry[];
  /** Whether the stream has events of a newer version between these entries. They are not in the page and must not be deleted. */
  readonly hasGaps: boolean;
};

/**
 * Groups the calls by key, and otherwise keeps the order of the stream. So Postgres finds the page of the index by key still in the
 * processor's cache. With 2 000 keys this saved Postgres 0.3 to 1.3 µs per event. Sorting by id, across all pages of a batch, cost
 * 1.8 µs more: fewer steps in the index by id, but each into another part of the index by key.
 */
function byKey(events: readonly UsageEvent[]): UsageEvent[] {
  const keys = new Map<string, UsageEvent[]>();
  for (const event of events) {
    const ofKey = keys.get(event.keyId);
    if (ofKey === undefined) keys.set(event.keyId, [event]);
    else ofKey.push(event);
  }
  return Array.from(keys.values()).flat();
}

/** @returns null when no entry was read, or all of them are of a newer version */
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
  return {
    shard: last.shard,
    ids: entries.map(({ id }) => id),
    lastFields: last.fields,
    calls: events.length,
    rows: new CallRows(byKey(events), feeBasisPoints),
    ...new CallSums(events, feeBasisPoints).page(),
    rejected,
    hasGaps,
  };
}

/** What the writer stores in one transaction: the oldest entries of some streams. */
export type Batch = {
  /** The pages of one shard are in the order of its stream. */
  readonly pages: readonly Page[];
  /** Shards with entries in this batch, ascending. */
  readonly shards: readonly number[];
  /** Number of entries in the batch. */
  readonly size: number;
  /** Number of entries after this batch in the streams, without the events of a newer version that were skipped. */
  readonly behind: number;
  /** How far each stream was read to make this batch. */
  readonly readTo: ReadonlyMap<number, Position>;
};

function newBatch(pages: readonly Page[], behind: number, readTo: ReadonlyMap<number, Position>): Batch {
  const shards = Array.from(new Set(pages.map(({ shard }) => shard))).sort((a, b) => a - b);
  return { pages, shards, size: sizeOf(pages), behind, readTo };
}

const sizeOf = (pages: readonly Page[]): number => pages.reduce((sum, { ids }) => sum + ids.length, 0);

/** The streams that the writer reads, and how their calls are charged. */
export type StreamSource = {
  readonly redis: RedisStore;
  readonly keys: RedisKeys;
  readonly feeBasisPoints: number;
  readonly readOver: ReadOver;
  /** Called after each look at the head of a stream, with the number of events of a newer version that it skipped. */
  readonly onNewer?: (shard: number, events: number) => void;
  /**
   * Called at each look. `isDamaged`: the stream's key in Redis is not a stream. It then counts as an empty stream, so that the
   * other streams are still stored.
   */
  readonly onLook?: (shard: number, isDamaged: boolean) => void;
  /** In a cluster: the node of this shard did not answer. */
  readonly onAway?: (shard: number) => void;
};

export type StreamStores = Pick<StreamSource, 'redis' | 'keys'>;

/** Some shards of a cluster cannot be used now: their node is away, refuses writes, or has only a part of them. */
export class ShardsAway extends Error {
  readonly shards: readonly number[];

  constructor(shards: readonly number[], reason: unknown) {
    super(reason instanceof Error ? reason.message : String(reason));
    this.shards = shards;
  }
}

/**
 * Whether any stream of `shards` has an entry after the events of a newer version that were skipped. An idle writer asks this
 * with a single command.
 */
export async function isAnyWaiting(
  { redis, keys, readOver }: StreamSource,
  shards: readonly number[],
): Promise<boolean> {
  if (shards.length === 0) return false;
  const looks = Array.from(byStore(redis, shards), ([store, its]) => isOneWaiting({ store, keys, readOver }, its));
  return anyTrue(await Promise.allSettled(looks));
}

/** @throws the first failure when no Redis answered */
function anyTrue(results: readonly PromiseSettledResult<boolean>[]): boolean {
  if (results.some((result) => result.status === 'fulfilled' && result.value)) return true;
  const failed = results.find((result) => result.status === 'rejected');
  if (failed !== undefined && results.every(({ status }) => status === 'rejected')) throw failed.reason;
  return false;
}

async function isOneWaiting(
  { store, keys, readOver }: Pick<StreamSource, 'keys' | 'readOver'> & { readonly store: RedisStore },
  shards: readonly number[],
): Promise<boolean> {
  const streams = shards.map((shard) => keys.usage[shard] as string);
  const ids = shards.map((shard) => readOver.head(shard).id ?? '0');
  try {
    return (await store.command('xread', ['COUNT', '1', 'STREAMS', ...streams, ...ids])) !== null;
  } catch (error) {
    // One of the keys is no stream, so the whole XREAD fails. Answer yes: `readBatch` then reads them one by one and leaves out only the damaged one.
    if (isWrongType(error)) return true;
    throw error;
  }
}

/**
 * Reads the next entries of the streams of `shards`, at most `size`. One command reads several streams, but at most about `PAGE`
 * entries, and the next command is sent after its reply: Redis executes everything that a client has sent before it turns to other
 * clients, and calls would wait 10 ms. At half load with 5 000 events per batch, the calls' p99 was 14.1 ms when all streams were
 * read at once, and 10.5 one after the other.
 *
 * @param after a batch whose entries are still in the streams: read the entries after it; null: read from the oldest
 */
export async function readBatch(
  source: StreamSource,
  shards: readonly number[],
  size: number,
  after: Batch | null,
): Promise<Batch> {
  const lengths = await lengthsOf(source, shards);
  const from = shards.map((shard, i) => after?.readTo.get(shard) ?? source.readOver.head(shard, lengths[i]));
  const unread = shards.map((shard, i) => {
    const inBatch = sizeOf(after?.pages.filter((page) => page.shard === shard) ?? []);
    return Math.max(0, (lengths[i] as number) - inBatch - (from[i] as Position).newer);
  });
  const counts = shares(unread, size);
  const pages: Page[] = [];
  const readTo = new Map<number, Position>();
  let behind = unread.reduce((sum, length) => sum + length, 0);
  const wanted = shards.map((shard, i) => ({ shard, from: from[i] as Position, count: counts[i] as number }));
  for (const group of readTogether(source.redis, wanted)) {
    const heads = await readHeads(source, group);
    for (const [i, { shard, from: start, count }] of group.streams.entries()) {
      const read = await readPages(source, shard, start, count, heads[i] as readonly StreamEntry[]);
      pages.push(...read.pages);
      readTo.set(shard, read.to);
      behind -= sizeOf(read.pages) + read.to.newer - start.newer;
      if (after?.readTo.has(shard)) continue;
      source.readOver.remember(shard, read.head);
      source.onNewer?.(shard, read.to.newer);
    }
  }
  return newBatch(pages, behind, readTo);
}

/**
 * The lengths of the streams. In a cluster a shard whose node does not answer counts as empty, so that the others are still stored.
 *
 * @throws the first failure when no Redis answers
 */
async function lengthsOf(source: StreamSource, shards: readonly number[]): Promise<number[]> {
  const results = await Promise.allSettled(shards.map((shard) => lengthOf(source, shard)));
  const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
  if (failures.length > 0 && (!source.redis.isCluster || failures.length === shards.length)) throw failures[0];
  return results.map((result, at) => {
    if (result.status === 'fulfilled') return result.value;
    source.onAway?.(shards[at] as number);
    return 0;
  });
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

/** What a batch needs from a stream: `count` entries after `from`. */
type Wanted = { readonly shard: number; readonly from: Position; readonly count: number };
/** Streams of one store whose first entries are read by one command, and the largest number that it reads from one of them. */
type Group = { readonly store: RedisStore; readonly streams: readonly Wanted[]; readonly count: number };

/**
 * Divides streams into groups, each read by one command. XREAD has one bound for the entries of every stream, so the streams of a
 * group need about the same number. Additional entries (added since the lengths were read) are dropped, and read with the next
 * batch.
 */
function readTogether(redis: RedisStore, wanted: readonly Wanted[]): Group[] {
  const groups: Group[] = [];
  for (const [store, shards] of byStore(
    redis,
    wanted.map(({ shard }) => shard),
  )) {
    const its = wanted.filter(({ shard }) => shards.includes(shard)).sort((a, b) => a.count - b.count);
    let streams: Wanted[] = [];
    for (const one of its) {
      if (streams.length > 0 && (streams.length + 1) * one.count > PAGE) {
        groups.push({ store, streams, count: countOf(streams) });
        streams = [];
      }
      streams.push(one);
    }
    if (streams.length > 0) groups.push({ store, streams, count: countOf(streams) });
  }
  return groups;
}

const countOf = (streams: readonly Wanted[]): number => Math.min(PAGE, streams.at(-1)?.count ?? 0);

/** The first entries of the streams of a group, at most `PAGE` and at most as many as the group needs from each. */
async function readHeads({ keys }: StreamStores, { store, streams, count }: Group): Promise<StreamEntry[][]> {
  const asked = streams.filter((stream) => stream.count > 0);
  if (asked.length === 0) return streams.map(() => []);
  const names = asked.map(({ shard }) => keys.usage[shard] as string);
  const ids = asked.map(({ from }) => from.id ?? '0');
  const reply = await store.command('xread', ['COUNT', String(count), 'STREAMS', ...names, ...ids]);
  const found = new Map(reply as readonly (readonly [name: string, entries: readonly RawEntry[]])[] | null);
  return streams.map(({ shard, count: most }) => decodeEntries(shard, found.get(keys.usage[shard] as string), most));
}

function decodeEntries(shard: number, entries: readonly RawEntry[] = [], most = entries.length): StreamEntry[] {
  const read: StreamEntry[] = [];
  for (const [id, fields] of entries) {
    if (read.length === most) break;
    read.push(decodeEntry(shard, id, fields));
  }
  return read;
}

/**
 * @param first the first entries after `from`, which were read already: at most `PAGE`, and at most `count`
 * @returns the pages; `to`: how far the stream was read; `head`: the last position before the first page
 */
async function readPages(
  source: StreamSource,
  shard: number,
  from: Position,
  count: number,
  first: readonly StreamEntry[],
) {
  const pages: Page[] = [];
  let to = from;
  let head = from;
  let ready: readonly StreamEntry[] | null = first;
  for (let left = count; left > 0 && to.newer - from.newer <= MAX_READ_OVER; ) {
    const asked = to.newer > from.newer ? PAGE : Math.min(left, PAGE);
    const entries = ready ?? (await readEntries(source, shard, to.id, asked));
    ready = null;
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

/** @param after id of an entry: read the entries after it; null: read from the oldest */
async function readEntries(
  { redis, keys }: StreamStores,
  shard: number,
  after: string | null,
  count: number,
): Promise<StreamEntry[]> {
  const from = after === null ? '-' : `(${after}`;
  const args = [keys.usage[shard] as string, from, '+', 'COUNT', String(count)];
  return decodeEntries(shard, (await redis.command('xrange', args)) as RawEntry[]);
}

/** The part of a batch that belongs to `shards`. Entries that are left out count as not read: they are added to `behind`. */
export function ofShards(batch: Batch, shards: ReadonlySet<number>): Batch {
  if (batch.shards.every((shard) => shards.has(shard))) return batch;
  const pages = batch.pages.filter(({ shard }) => shards.has(shard));
  // The streams left out will be read again from their heads.
  const readTo = new Map(Array.from(batch.readTo).filter(([shard]) => shards.has(shard)));
  return newBatch(pages, batch.behind + batch.size - sizeOf(pages), readTo);
}

/** Reads the entries of a batch from the streams again, because its pages do not keep the decoded events (see `Page`). */
export async function readAgain({ redis, keys }: StreamStores, batch: Batch): Promise<StreamEntry[]> {
  const entries = batch.pages.map(async ({ shard, ids }) => {
    const args = [keys.usage[shard] as string, ids[0] as string, ids[ids.length - 1] as string];
    const found = (await redis.command('xrange', args)) as RawEntry[];
    return decodeEntries(shard, found).filter(({ isNewer }) => !isNewer);
  });
  return (await Promise.all(entries)).flat();
}

/**
 * Splits a batch among streams. Short streams are read whole, so that a busy account does not delay the others; the long ones
 * share the rest evenly.
 *
 * @returns how many entries to read from each stream; their sum is at most `total`
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
