import type { RedisStore } from '../../platform/redis.ts';
import type { RedisKeys } from '../../platform/redis-keys.ts';
import { putKeyScript } from '../scripts.ts';
import { fieldsOf, type KeyTerms } from './key-terms.ts';

type KeyStatesOptions = {
  readonly redis: RedisStore;
  readonly keys: RedisKeys;
  /** MAX_RATE_LIMIT. */
  readonly maxRateLimit: number;
  /** REDIS_COMMAND_TIMEOUT_MS: a caller of `put` waits this long for Redis, and keeps its lock. */
  readonly commandTimeoutMs: number;
};

/** Writes a key's limits and status to Redis, where batch.lua reads them for each call. So a change applies to the next call. */
export class KeyStates {
  readonly #options: KeyStatesOptions;

  constructor(options: KeyStatesOptions) {
    this.#options = options;
  }

  /**
   * Sets everything in one step. Revoking a key also revokes those below it. The caller has locked the key in Postgres, and keeps
   * the lock until this has ended. A change that Redis has not carried out by then, on a link that stood still or for a process
   * that was suspended, is never carried out. Otherwise an older budget could overwrite a newer one.
   *
   * @throws when Redis cannot be reached, or was reached too late
   */
  async put(keyId: string, accountId: string, terms: KeyTerms): Promise<void> {
    const { redis, keys, maxRateLimit, commandTimeoutMs } = this.#options;
    const shard = keys.shardOf(accountId);
    const [seconds, micros] = (await redis.shard(shard).command('time', [])) as [string, string];
    // The time before the script is sent, because its reply is awaited for that long.
    const untilMs = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000) + commandTimeoutMs;
    const name = keys.key(shard, terms.ancestors[0] ?? keyId);
    const args = [name, String(untilMs), ...fieldsOf(keyId, terms, maxRateLimit)];
    if ((await redis.script(putKeyScript, 1, args)) !== 1) throw new Error('redis was reached too late');
  }
}
