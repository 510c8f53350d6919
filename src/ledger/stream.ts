import type { RedisClient } from '../platform/redis.ts';
import type { RedisKeys } from '../platform/redis-keys.ts';
import { decodeUsageEvent, type UsageEvent } from './usage-event.ts';

/** An entry of a usage stream: a settled call, or something that cannot be one. */
export type StreamEntry = {
  readonly shard: number;
  readonly id: string;
  /** As they stand in the stream: name, value, name, value. */
  readonly fields: readonly string[];
  readonly event: UsageEvent | null;
  /** Why there is no event. */
  readonly error: string;
};

function field(fields: readonly string[], name: string): string {
  for (let i = 0; i + 1 < fields.length; i += 2) {
    if (fields[i] === name) return fields[i + 1] as string;
  }
  throw new Error(`usage event: no field ${name}`);
}

function decode(shard: number, id: string, fields: readonly string[]): StreamEntry {
  try {
    const event = decodeUsageEvent(field(fields, 'i'), field(fields, 'h'), field(fields, 's'));
    return { shard, id, fields, event, error: '' };
  } catch (error) {
    return { shard, id, fields, event: null, error: (error as Error).message };
  }
}

/** What the writer stores in one transaction: the oldest entries of some streams. */
export type Batch = {
  /** With entries in this batch, ascending. */
  readonly shards: readonly number[];
  readonly entries: readonly StreamEntry[];
  /** Entries per shard, and the youngest of them. */
  readonly taken: ReadonlyMap<number, { readonly count: number; readonly last: StreamEntry }>;
  /** Entries that were in the streams behind this batch. */
  readonly behind: number;
};

/**
 * Reads the next entries of the streams of `shards`, at most `size`.
 *
 * @param after a batch that is still in the streams: read on behind it
 */
export async function readBatch(
  redis: RedisClient,
  keys: RedisKeys,
  shards: readonly number[],
  size: number,
  after: Batch | null,
): Promise<Batch> {
  const lengths = (await Promise.all(shards.map((s) => redis.command('xlen', [keys.usage[s] as string])))) as number[];
  const behindAfter = lengths.map((length, i) =>
    Math.max(0, length - (after?.taken.get(shards[i] as number)?.count ?? 0)),
  );
  const counts = shares(behindAfter, size);
  const reads = shards.map((shard, i) =>
    readStream(redis, keys, shard, after?.taken.get(shard)?.last.id ?? null, counts[i] as number),
  );
  const streams = (await Promise.all(reads)).filter((entries) => entries.length > 0);
  const entries = streams.flat();
  const taken = new Map(
    streams.map((stream) => {
      const last = stream[stream.length - 1] as StreamEntry;
      return [last.shard, { count: stream.length, last }];
    }),
  );
  const behind = behindAfter.reduce((sum, length) => sum + length, 0) - entries.length;
  return { shards: Array.from(taken.keys()).sort((a, b) => a - b), entries, taken, behind };
}

/** The part of a batch that is of these shards; the rest is behind it. */
export function ofShards(batch: Batch, shards: ReadonlySet<number>): Batch {
  if (batch.shards.every((shard) => shards.has(shard))) return batch;
  const entries = batch.entries.filter(({ shard }) => shards.has(shard));
  return {
    shards: batch.shards.filter((shard) => shards.has(shard)),
    entries,
    taken: new Map(Array.from(batch.taken).filter(([shard]) => shards.has(shard))),
    behind: batch.behind + batch.entries.length - entries.length,
  };
}

async function readStream(
  redis: RedisClient,
  keys: RedisKeys,
  shard: number,
  afterId: string | null,
  count: number,
): Promise<StreamEntry[]> {
  if (count === 0) return [];
  const from = afterId === null ? '-' : `(${afterId}`;
  const args = [keys.usage[shard] as string, from, '+', 'COUNT', String(count)];
  const entries = (await redis.command('xrange', args)) as [string, string[]][];
  return entries.map(([id, fields]) => decode(shard, id, fields));
}

/**
 * Whether the batch is in the streams as it was read. Entries leave only through us, or when Redis loses its data: all of
 * it, or the last moments before its end. So where the youngest entry is, all of them are.
 */
export async function isStillThere(redis: RedisClient, keys: RedisKeys, batch: Batch): Promise<boolean> {
  const found = await Promise.all(
    Array.from(batch.taken.values(), async ({ last }) => {
      const args = [keys.usage[last.shard] as string, last.id, last.id];
      const [entry] = (await redis.command('xrange', args)) as [string, string[]][];
      return entry?.[1].join('\t') === last.fields.join('\t');
    }),
  );
  return !found.includes(false);
}

/**
 * Deletes exactly these entries. XDEL costs Redis 1.1 µs an entry, XTRIM MINID 0.4; but should Redis have come back empty
 * with its clock behind, trimming by a bound would take entries that nobody has stored.
 */
export async function deleteBatch(redis: RedisClient, keys: RedisKeys, batch: Batch): Promise<void> {
  const ids = new Map<number, string[]>(batch.shards.map((shard) => [shard, []]));
  for (const { shard, id } of batch.entries) ids.get(shard)?.push(id);
  await Promise.all(Array.from(ids, ([shard, list]) => redis.command('xdel', [keys.usage[shard] as string, ...list])));
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
