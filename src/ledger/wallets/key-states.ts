import type { RedisStore } from '../../platform/redis.ts';
import type { RedisKeys } from '../../platform/redis-keys.ts';
import { putKeyScript } from '../scripts.ts';
import { fieldsOf, type KeyTerms } from './key-terms.ts';

type KeyStatesOptions = {
  readonly redis: RedisStore;
  readonly keys: RedisKeys;
  /** MAX_RATE_LIMIT. */
  readonly maxRateLimit: number;
};

/** Writes a key's limit, status and the like to Redis, where batch.lua reads them for each call. So a change applies to the next call. */
export class KeyStates {
  readonly #options: KeyStatesOptions;

  constructor(options: KeyStatesOptions) {
    this.#options = options;
  }

  /** Sets all of it in one step. A key that is revoked thereby revokes those below it. Rejects when Redis cannot be reached. */
  async put(keyId: string, accountId: string, terms: KeyTerms): Promise<void> {
    const { redis, keys, maxRateLimit } = this.#options;
    const name = keys.key(keys.shardOf(accountId), terms.ancestors[0] ?? keyId);
    await redis.script(putKeyScript, 1, [name, ...fieldsOf(keyId, terms, maxRateLimit)]);
  }
}
