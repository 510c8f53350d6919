import type { RedisClient } from '../../platform/redis.ts';
import type { RedisKeys } from '../../platform/redis-keys.ts';
import { putKeyScript } from '../scripts.ts';

/** Where the admission script finds the limit and status of a key: they count from the very next call. */
export class KeyStates {
  readonly #stores: { readonly redis: RedisClient; readonly keys: RedisKeys };

  constructor(stores: { readonly redis: RedisClient; readonly keys: RedisKeys }) {
    this.#stores = stores;
  }

  /** Sets both at once. Rejects when Redis cannot be reached. */
  async put(
    keyId: string,
    accountId: string,
    state: { limit: number; status: 'active' | 'suspended' | 'revoked' },
  ): Promise<void> {
    const { redis, keys } = this.#stores;
    const name = keys.key(keys.shardOf(accountId), keyId);
    await redis.script(putKeyScript, 1, [name, String(state.limit), state.status]);
  }
}
