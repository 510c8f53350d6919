import { announceListingsOf } from '../catalog/sql.ts';
import { type KeyStateStore, notPublishedError } from '../keys/keys.ts';
import { type AccountStatus, lockKeyStates, updateAccountStatus } from '../keys/keys-sql.ts';
import type { Sql } from '../platform/postgres.ts';

export type SuspensionOptions = {
  readonly sql: Sql;
  readonly state: KeyStateStore;
  /** This gateway's own cache. It is told directly, without waiting for the message that tells the other gateways. */
  readonly cache: { invalidateAccount(accountId: string): void };
};

export type Account = { readonly accountId: string; readonly ownerId: string; readonly status: AccountStatus };

/**
 * Suspends and resumes accounts, in the way that keys are revoked. Postgres commits the change and tells gateways to forget the
 * account's keys. Then the change is written to Redis: after that no gateway admits a call of a suspended account. Further
 * messages, one per listing, make all catalogs read the account's listings again.
 */
export class Suspension {
  readonly #options: SuspensionOptions;

  constructor(options: SuspensionOptions) {
    this.#options = options;
  }

  /**
   * Sets the status. Calls under way go on. If writing to Redis failed, repeat the call: with the same status it only writes to
   * Redis again.
   *
   * @returns null when there is no such account
   * @throws ApiError `unavailable` when the change is stored in Postgres but could not be written to Redis
   */
  async set(accountId: string, status: AccountStatus): Promise<Account | null> {
    const { sql, cache } = this.#options;
    const account = await sql.begin(async (tx) => {
      const found = await updateAccountStatus(tx, accountId, status);
      if (found?.isChanged) await announceListingsOf(tx, accountId);
      return found;
    });
    if (account === null) return null;
    cache.invalidateAccount(accountId);
    await this.#publish(accountId);
    return { accountId, ownerId: account.ownerId, status };
  }

  /** Writes the keys' states to Redis with the account locked. Otherwise the older of two changes could arrive there last. */
  async #publish(accountId: string): Promise<void> {
    const { sql, state } = this.#options;
    await sql.begin(async (tx) => {
      const keys = await lockKeyStates(tx, accountId);
      try {
        // At most MAX_ACTIVE_KEYS_PER_ACCOUNT keys, so they are written all at once.
        await Promise.all(keys.map(({ keyId, limit, status }) => state.put(keyId, accountId, { limit, status })));
      } catch (cause) {
        throw notPublishedError(cause);
      }
    });
  }
}
