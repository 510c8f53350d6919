// @ts-check
// Lends a Redis client, and closes it in any case: a client that stays open would keep the benchmark from ending.

import { Redis } from 'ioredis';

/**
 * @template T
 * @param {string} url
 * @param {(redis: Redis) => Promise<T>} use
 * @returns {Promise<T>} what `use` returns. Rejects at once if the Redis is gone
 */
export async function withRedis(url, use) {
  const redis = new Redis(url, { retryStrategy: () => null });
  // Errors reach the caller through the commands, which fail. Without a listener the event would end the process.
  redis.on('error', () => {});
  try {
    return await use(redis);
  } finally {
    redis.disconnect();
  }
}
