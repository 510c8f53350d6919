// @ts-check
// Asks a Redis something, and lets go of it whatever comes of it: a client that stays keeps the benchmark from ending.

import { Redis } from 'ioredis';

/**
 * @template T
 * @param {string} url
 * @param {(redis: Redis) => Promise<T>} use
 * @returns {Promise<T>} rejects at once when there is no such Redis any more
 */
export async function withRedis(url, use) {
  const redis = new Redis(url, { retryStrategy: () => null });
  // Every command fails by itself.
  redis.on('error', () => {});
  try {
    return await use(redis);
  } finally {
    redis.disconnect();
  }
}
