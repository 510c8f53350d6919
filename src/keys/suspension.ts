import { announceListingsOf } from '../catalog/sql.ts';
import type { Sql } from '../platform/postgres.ts';
import { type KeyStateStore, notPublishedError } from './keys.ts';
import { type AccountStatus, lockKeyStates, updateAccountStatus } from './keys-sql.ts';

export type SuspensionOptions = {
  readonly sql: Sql;
  readonly state: KeyStateStore;
  /** This gateway's own cache: it must not wait for the message that tells the others. */
  readonly cache: { invalidateAccount(accountId: string): void };
};

export type Account = { readonly accountId: string; readonly ownerId: string; readonly status: AccountStatus };

/**
 * Suspends accounts and resumes them. As with a revoked key it commits in Postgres, with the message that makes gateways
 * forget the account's keys, and then reaches Redis: from then on no gateway admits a call of theirs. What the account sells
 * leaves the catalogs of all gateways with a message of its own.
 */
export class Suspension {
  readonly #options: SuspensionOptions;

  constructor(options: SuspensionOptions) {
    this.#options = options;
  }

  /**
   * Doing it again only tells Redis again, which is what to do when that failed. Calls under way go on.
   *
   * @returns null when there is no such account
   * @throws ApiError `unavailable` when Postgres has it but Redis could not be told
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

  /** Under the lock of the account: else the slower of two changes could have the last word in Redis. */
  async #publish(accountId: string): Promise<void> {
    const { sql, state } = this.#options;
    await sql.begin(async (tx) => {
      const keys = await lockKeyStates(tx, accountId);
      try {
        // At most MAX_ACTIVE_KEYS_PER_ACCOUNT, in one go.
        await Promise.all(keys.map(({ keyId, limit, status }) => state.put(keyId, accountId, { limit, status })));
      } catch (cause) {
        throw notPublishedError(cause);
      }
    });
  }
}
