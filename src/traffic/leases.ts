import type { RedisStore } from '../platform/redis.ts';
import type { RedisKeys } from '../platform/redis-keys.ts';

/**
 * Age of each gateway's youngest lease in milliseconds, by instance. A gateway renews it while it has calls, and the sweep refunds the
 * calls of one whose lease has run out. Some hundred fields at most.
 */
export async function readLeaseAges(
  redis: Pick<RedisStore, 'command'>,
  keys: Pick<RedisKeys, 'lease'>,
): Promise<Map<string, number>> {
  const [time, ...leases] = await Promise.all([
    redis.command('time', []) as Promise<[string, string]>,
    ...keys.lease.map((key) => redis.command('hgetall', [key]).catch(() => [])),
  ]);
  const now = Number(time[0]) * 1_000 + Number(time[1]) / 1_000;
  const ages = new Map<string, number>();
  for (const fields of leases as (string[] | Record<string, string>)[]) {
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
