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

/** Number of entries in the stream of each of these shards. */
export async function streamLengths(redis: RedisClient, keys: RedisKeys, shards: readonly number[]): Promise<number[]> {
  const replies = shards.map((shard) => redis.command('xlen', [keys.usage[shard] as string]));
  return (await Promise.all(replies)) as number[];
}

/** The oldest entries of a shard's stream, at most `count`. */
export async function readStream(
  redis: RedisClient,
  keys: RedisKeys,
  shard: number,
  count: number,
): Promise<StreamEntry[]> {
  const args = [keys.usage[shard] as string, '-', '+', 'COUNT', String(count)];
  const entries = (await redis.command('xrange', args)) as [string, string[]][];
  return entries.map(([id, fields]) => decode(shard, id, fields));
}

/** Deletes exactly these entries. */
export async function deleteEntries(
  redis: RedisClient,
  keys: RedisKeys,
  entries: readonly StreamEntry[],
): Promise<void> {
  const byShard = new Map<number, string[]>();
  for (const { shard, id } of entries) {
    const ids = byShard.get(shard);
    if (ids === undefined) byShard.set(shard, [id]);
    else ids.push(id);
  }
  await Promise.all(
    Array.from(byShard, ([shard, ids]) => redis.command('xdel', [keys.usage[shard] as string, ...ids])),
  );
}
