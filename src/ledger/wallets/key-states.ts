import type { RedisStore } from '../../platform/redis.ts';
import type { RedisKeys } from '../../platform/redis-keys.ts';
import { putKeyScript } from '../scripts.ts';

type KeyStatesOptions = {
  readonly redis: RedisStore;
  readonly keys: RedisKeys;
  /** MAX_RATE_LIMIT. */
  readonly maxRateLimit: number;
};

/** Writes a key's limit and status to Redis, where batch.lua reads them for each call. So a change applies to the next call. */
export class KeyStates {
  readonly #options: KeyStatesOptions;

  constructor(options: KeyStatesOptions) {
    this.#options = options;
  }

  /** Sets limit and status in one step. Rejects when Redis cannot be reached. */
  async put(
    keyId: string,
    accountId: string,
    state: { limit: number; status: 'active' | 'suspended' | 'revoked' },
  ): Promise<void> {
    const { redis, keys, maxRateLimit } = this.#options;
    const name = keys.key(keys.shardOf(accountId), keyId);
    await redis.script(putKeyScript, 1, [name, String(Math.min(state.limit, maxRateLimit)), state.status]);
  }
}
