import type { RedisStore } from '../../src/platform/redis.ts';

/**
 * Takes all tokens out of a token bucket, as if a minute's worth of requests had come at this moment. (All nodes of a test's cluster
 * have the clock of this machine.)
 */
export async function emptyBucket(redis: RedisStore, bucket: string): Promise<void> {
  const [seconds, micros] = (await redis.shard(0).command('time', [])) as [string, string];
  const ms = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  await redis.command('hset', [bucket, 'tokens', '0', 'ts', String(ms)]);
}
