import { ApiError, unavailableError } from '../errors.ts';
import { uuidv7 } from '../platform/ids.ts';
import type { Sql, Tx } from '../platform/postgres.ts';
import type { Role } from './caller.ts';
import { hashSecret, newKeyId, newSecret } from './credentials.ts';
import {
  insertAccount,
  insertKey,
  type KeyDescription,
  type KeyState,
  lockAccount,
  lockFirstAdmin,
  lockKeyState,
  selectKey,
  selectKeysOfAccount,
  updateRateLimit,
  updateSecret,
  updateToRevoked,
} from './keys-sql.ts';

/** Requests per minute of a new key, and the most an admin may give (API.md, 'Keys'). */
export const DEFAULT_RATE_LIMIT = 60;
export const MAX_RATE_LIMIT = 300;
/** How long the secret before a rotation stays good, in seconds, unless the caller says otherwise; and the longest. */
export const DEFAULT_OVERLAP_SECONDS = 3_600;
export const MAX_OVERLAP_SECONDS = 86_400;
/** Every key brings a rate limit of its own, so an account must not make keys without end. */
export const MAX_ACTIVE_KEYS_PER_ACCOUNT = 1_000;

/**
 * Where the admission script finds the limit and status of a key. After `put` resolves, the next call with the key sees
 * them on every gateway. It rejects when Redis cannot be reached.
 */
export type KeyStateStore = {
  put(keyId: string, accountId: string, state: Pick<KeyState, 'limit' | 'status'>): Promise<void>;
};

export type KeysOptions = {
  readonly sql: Sql;
  readonly state: KeyStateStore;
  /** This gateway's own cache: it must not wait for the message that tells the others. */
  readonly cache: { invalidate(keyId: string): void };
};

/** A key that was just made, with the only copy of its secret in clear. */
export type CreatedKey = {
  readonly keyId: string;
  readonly secret: string;
  readonly accountId: string;
  readonly ownerId: string;
  readonly role: Role;
  /** Requests per minute. */
  readonly rateLimit: number;
};

/**
 * What can be done with accounts' keys. Who may do it is decided by the routes.
 *
 * A change commits in Postgres (with the message that makes gateways forget the key), then reaches Redis. Creating a
 * key tells nobody: no gateway knows it, and without a state in Redis the admission takes that of the record.
 *
 * All methods throw Postgres errors as they are.
 */
export class Keys {
  readonly #sql: Sql;
  readonly #state: KeyStateStore;
  readonly #cache: { invalidate(keyId: string): void };

  constructor(options: KeysOptions) {
    this.#sql = options.sql;
    this.#state = options.state;
    this.#cache = options.cache;
  }

  /** Opens a new account, with `ownerId` as its label, and gives it a key. */
  createAccountWithKey(ownerId: string, role: Role): Promise<CreatedKey> {
    return this.#sql.begin((tx) => openAccount(tx, ownerId, role));
  }

  /** Opens an account with an admin key if there has never been an admin key; null when there has. */
  createFirstAdmin(ownerId: string): Promise<CreatedKey | null> {
    return this.#sql.begin(async (tx) => {
      const { adminExists } = await lockFirstAdmin(tx);
      return adminExists ? null : openAccount(tx, ownerId, 'admin');
    });
  }

  /**
   * Adds a key to an account, whose label stays as it is; null when there is no such account.
   *
   * @throws ApiError `conflict` when the account has MAX_ACTIVE_KEYS_PER_ACCOUNT already
   */
  addKey(accountId: string, role: Role): Promise<CreatedKey | null> {
    return this.#sql.begin(async (tx) => {
      const account = await lockAccount(tx, accountId);
      if (account === null) return null;
      if (account.activeKeys >= MAX_ACTIVE_KEYS_PER_ACCOUNT) {
        throw new ApiError('conflict', `This account has ${MAX_ACTIVE_KEYS_PER_ACCOUNT} keys: revoke one first.`);
      }
      return giveKey(tx, accountId, account.ownerId, role);
    });
  }

  /** Keys of an account, newest first, revoked ones included; `after`: the last key id of the page before, or null. */
  list(accountId: string, after: string | null, limit: number): Promise<KeyDescription[]> {
    return selectKeysOfAccount(this.#sql, accountId, after, limit);
  }

  find(keyId: string): Promise<KeyDescription | null> {
    return selectKey(this.#sql, keyId);
  }

  /**
   * Gives the key a new secret; the present one stays good for `overlapSeconds` (0–86 400), one before it ends now.
   * Null when there is no active key with this id.
   */
  async rotate(
    keyId: string,
    overlapSeconds: number,
  ): Promise<{ secret: string; previousExpiresAt: Date | null } | null> {
    const secret = newSecret();
    const rotated = await this.#sql.begin((tx) => updateSecret(tx, keyId, hashSecret(secret), overlapSeconds));
    this.#cache.invalidate(keyId);
    return rotated === null ? null : { secret, previousExpiresAt: rotated.previousExpiresAt };
  }

  /**
   * Revokes the key for good. Doing it again is harmless, and is what to do when it failed.
   *
   * @throws ApiError `unavailable` when Postgres has it but Redis could not be told
   */
  async revoke(keyId: string): Promise<void> {
    await this.#sql.begin((tx) => updateToRevoked(tx, keyId));
    await this.#publishState(keyId);
  }

  /** @param rateLimit requests per minute, 1–300. Throws as `revoke` does. */
  async setRateLimit(keyId: string, rateLimit: number): Promise<void> {
    await this.#sql.begin((tx) => updateRateLimit(tx, keyId, rateLimit));
    await this.#publishState(keyId);
  }

  /**
   * Copies the state to Redis again, which has another; for the case that it is the cache that is wrong, that is read again
   * as well, once Postgres has answered. Throws as `revoke` does.
   */
  async restoreState(keyId: string): Promise<void> {
    await this.#copyState(keyId);
    this.#cache.invalidate(keyId);
  }

  async #publishState(keyId: string): Promise<void> {
    this.#cache.invalidate(keyId);
    await this.#copyState(keyId);
  }

  /**
   * Copies the committed state to Redis under the lock of its row. Without the lock, a change of the limit that was
   * slow to reach Redis could overwrite a revocation that came after it.
   */
  async #copyState(keyId: string): Promise<void> {
    await this.#sql.begin(async (tx) => {
      const key = await lockKeyState(tx, keyId);
      if (key === null) return;
      try {
        await this.#state.put(keyId, key.accountId, { limit: key.limit, status: key.status });
      } catch (cause) {
        throw notPublishedError(cause);
      }
    });
  }
}

export function notPublishedError(cause: unknown): ApiError {
  return unavailableError(cause, 'The change is stored, but has not reached every gateway yet. Please send it again.');
}

async function openAccount(tx: Tx, ownerId: string, role: Role): Promise<CreatedKey> {
  const accountId = uuidv7();
  await insertAccount(tx, accountId, ownerId);
  return giveKey(tx, accountId, ownerId, role);
}

async function giveKey(tx: Tx, accountId: string, ownerId: string, role: Role): Promise<CreatedKey> {
  const keyId = newKeyId();
  const secret = newSecret();
  const rateLimit = DEFAULT_RATE_LIMIT;
  await insertKey(tx, { keyId, accountId, role, secretHash: hashSecret(secret), rateLimit });
  return { keyId, secret, accountId, ownerId, role, rateLimit };
}
