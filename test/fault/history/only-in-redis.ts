import { untilAnswered } from '../answered.ts';
import type { Stack } from '../stack.ts';

/** Usage ids of the calls that are in Redis, open or waiting to be stored, and perhaps nowhere else. */
export function readOnlyInRedis({ stores }: Stack, shards: ReadonlySet<number>): Promise<string[]> {
  const { redis, keys } = stores;
  const of = (names: readonly string[]): string[] => names.filter((_, shard) => shards.has(shard));
  return untilAnswered(async () => {
    const holds = (await Promise.all(of(keys.open).map((open) => redis.command('hkeys', [open])))) as string[][];
    const streams = await Promise.all(of(keys.usage).map((usage) => redis.command('xrange', [usage, '-', '+'])));
    const events = (streams as [id: string, fields: string[]][][]).flat();
    return [...holds.flat(), ...events.map(([, fields]) => (fields[1] as string).split('\t', 1)[0] as string)];
  });
}
