import type { RedisStore } from '../platform/redis.ts';
import type { RedisKeys } from '../platform/redis-keys.ts';
import { StartRefused } from '../platform/start-refused.ts';
import { Sleeper } from '../platform/timing.ts';

/** Longest time that a start waits for its first lease. Redis normally has it after a round trip or two. */
const FIRST_LEASE_MS = 10_000;
const LOOK_MS = 10;

/**
 * Age of each gateway's youngest lease in milliseconds, by instance. A gateway renews its lease while it has calls; when a lease
 * has run out, the sweep refunds the calls of that gateway. A few hundred fields at most.
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
  // A shard whose node is away, or whose key is damaged, is skipped: the same gateways have leases in other shards.
  for (const result of await Promise.allSettled(shards)) {
    if (result.status === 'rejected') continue;
    const { time, fields } = result.value;
    const now = Number(time[0]) * 1_000 + Number(time[1]) / 1_000;
    const pairs = Array.isArray(fields)
      ? fields.flatMap((field, at) => (at % 2 === 0 ? [[field, fields[at + 1] ?? ''] as const] : []))
      : Object.entries(fields);
    for (const [owner, renewed] of pairs) {
      // A gateway gets a new name after each reconnection: the instance, a dot and a number.
      const [instance = owner] = owner.split('.');
      const age = Math.max(0, Math.round(now - Number(renewed)));
      if (Number.isFinite(age)) ages.set(instance, Math.min(age, ages.get(instance) ?? age));
    }
  }
  return ages;
}

/**
 * Resolves once `readLeaseAges` shows this gateway.
 *
 * @throws StartRefused when Redis has no lease of this gateway after FIRST_LEASE_MS
 */
export async function untilLeased(
  ...[redis, keys, instance]: [...Parameters<typeof readLeaseAges>, string]
): Promise<void> {
  const startedAt = performance.now();
  const pause = new Sleeper();
  while (!(await readLeaseAges(redis, keys)).has(instance)) {
    if (performance.now() - startedAt > FIRST_LEASE_MS)
      throw new StartRefused('redis does not store the lease of this gateway');
    await pause.sleep(LOOK_MS);
  }
}
