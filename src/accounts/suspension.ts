import { announceListingsOf } from '../catalog/sql.ts';
import { type KeyStateStore, notPublishedError } from '../keys/keys.ts';
import { type AccountStatus, lockKeyStates, type Standing, updateAccountStatus } from '../keys/keys-sql.ts';
import type { Sql } from '../platform/postgres.ts';
import { type Act, type Actor, recordAct } from './audit.ts';

type SuspensionOptions = {
  readonly sql: Sql;
  readonly state: KeyStateStore;
  /** This gateway's own cache. It is told directly, without waiting for the message that tells the other gateways. */
  readonly cache: { invalidateAccount(accountId: string): void };
};

type Account = Standing & { readonly ownerId: string };

/**
 * Suspends and resumes accounts, in the same way as keys are revoked. Postgres commits the change and tells gateways to forget the
 * account's keys. Then the change is written to Redis; after that no gateway admits a call of a suspended account. One more message
 * per listing makes all catalogs read the account's listings again.
 */
export class Suspension {
  readonly #options: SuspensionOptions;

  constructor(options: SuspensionOptions) {
    this.#options = options;
  }

  /**
   * Sets the status and the reason of a suspension, unless the account is closed, and records who asked for it. Calls under way go
   * on. If writing to Redis failed, repeat the call: a status that is already set is only written to Redis again.
   *
   * @returns the account as it is now (a closed one stays closed); null when there is no such account
   * @throws ApiError `unavailable` when the change is stored in Postgres but could not be written to Redis
   */
  async set(
    accountId: string,
    status: Exclude<AccountStatus, 'closed'>,
    reason: string | null,
    by: Actor,
  ): Promise<Account | null> {
    const { sql, cache } = this.#options;
    const account = await sql.begin(async (tx) => {
      const found = await updateAccountStatus(tx, accountId, status, reason);
      if (found === null) return null;
      const { before, after } = found;
      if (before.status !== after.status) await announceListingsOf(tx, accountId);
      if (before.status !== after.status || before.reason !== after.reason) {
        await recordAct(tx, suspensionAct(accountId, before, after, by));
      }
      return found;
    });
    if (account === null) return null;
    const { ownerId, after } = account;
    if (after.status === 'closed') return { ownerId, ...after };
    cache.invalidateAccount(accountId);
    await this.#publish(accountId);
    return { ownerId, ...after };
  }

  /** Writes the keys' states to Redis with the account locked. Otherwise the older of two changes could arrive there last. */
  async #publish(accountId: string): Promise<void> {
    const { sql, state } = this.#options;
    await sql.begin(async (tx) => {
      const keys = await lockKeyStates(tx, accountId);
      try {
        // There are at most MAX_KEYS_PER_ACCOUNT keys, so they are written all at once.
        await Promise.all(keys.map((key) => state.put(key.keyId, accountId, key)));
      } catch (cause) {
        throw notPublishedError(cause);
      }
    });
  }
}

function suspensionAct(accountId: string, before: Standing, after: Standing, by: Actor): Act {
  const action = after.status === 'suspended' ? 'account.suspend' : 'account.resume';
  const subject = { subjectType: 'account', subjectId: accountId } as const;
  return { ...by, action, ...subject, before: actFields(before), after: actFields(after) };
}

const actFields = ({ status, reason }: Standing): Act['before'] => ({
  status,
  ...(reason === null ? {} : { reason }),
});
