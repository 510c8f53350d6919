import type { RedisStore } from '../platform/redis.ts';

/** Identifies the Redis process that answers. After a restart another process answers, perhaps with an older state. */
export type RedisRun = { readonly runId: string; readonly uptimeSeconds: number };

/** Asks Redis which process it is. Rejects when Redis is away. */
export async function readRedisRun(redis: RedisStore): Promise<RedisRun> {
  const info = String(await redis.command('info', ['server']));
  const field = (name: string): string => new RegExp(`^${name}:(\\w+)`, 'm').exec(info)?.[1] ?? '';
  return { runId: field('run_id'), uptimeSeconds: Number(field('uptime_in_seconds')) };
}

/** Redis's own clock in milliseconds. The scripts use the same clock. */
export async function readRedisTime(redis: RedisStore): Promise<number> {
  const [seconds, micros] = (await redis.command('time', [])) as [string, string];
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}
