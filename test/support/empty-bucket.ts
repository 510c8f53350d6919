import type { RedisClient } from '../../src/platform/redis.ts';

/** Leaves a rate limit's bucket without a token as of now, as after a minute's worth of requests in one moment. */
export async function emptyBucket(redis: RedisClient, bucket: string): Promise<void> {
  const [seconds, micros] = (await redis.command('time', [])) as [string, string];
  const ms = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  await redis.command('hset', [bucket, 'tokens', '0', 'ts', String(ms)]);
}
