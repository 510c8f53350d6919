import type { RedisStore } from '../platform/redis.ts';
import type { RedisKeys } from '../platform/redis-keys.ts';

/**
 * Age of each gateway's youngest lease in milliseconds, by instance. A gateway renews it while it has calls, and the sweep refunds the
 * calls of one whose lease has run out. Some hundred fields at most.
 */
export async function readLeaseAges(
  redis: Pick<RedisStore, 'shard'>,
  keys: Pick<RedisKeys, 'lease'>,
): Promise<Map<string, number>> {
  const shards = keys.lease.map(async (key, shard) => {
    const store = redis.shard(shard);
    const [time, fields] = await Promise.all([store.command('time', []), store.command('hgetall', [key])]);
    return { time: time as [string, string], fields: fields as string[] | Record<string, string> };
  });
  const ages = new Map<string, number>();
  // A shard whose node is away, or whose key is damaged, says nothing: the same gateways have leases in the others.
  for (const result of await Promise.allSettled(shards)) {
    if (result.status === 'rejected') continue;
    const { time, fields } = result.value;
    const now = Number(time[0]) * 1_000 + Number(time[1]) / 1_000;
    const pairs = Array.isArray(fields)
      ? fields.flatMap((field, at) => (at % 2 === 0 ? [[field, fields[at + 1] ?? ''] as const] : []))
      : Object.entries(fields);
    for (const [owner, renewed] of pairs) {
      // A gateway has another name after each reconnection: the instance, a dot and a number.
      const [instance = owner] = owner.split('.');
      const age = Math.max(0, Math.round(now - Number(renewed)));
      if (Number.isFinite(age)) ages.set(instance, Math.min(age, ages.get(instance) ?? age));
    }
  }
  return ages;
}
