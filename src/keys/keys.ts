import { ApiError, unavailableError } from '../errors.ts';
import { uuidv7 } from '../platform/ids.ts';
import type { Sql, Tx } from '../platform/postgres.ts';
import { countOpening, type Opener } from './account-openings.ts';
import type { Role } from './caller.ts';
import { hashSecret, newKeyId, newSecret } from './credentials.ts';
import type { CreatedKey, KeyRow, OperatorKey } from './key-fields.ts';
import {
  insertAccount,
  insertKey,
  type KeyState,
  lockAccount,
  lockFirstAdmin,
  lockKeyState,
  selectKey,
  selectKeysOfAccount,
  selectOperatorKeys,
  updateRateLimit,
  updateSecret,
  updateToRevoked,
} from './keys-sql.ts';

/** Requests per minute of a new key (docs/api.md, 'Keys'). */
export const DEFAULT_RATE_LIMIT = 60;
/** How long the replaced secret stays valid after a rotation, in seconds: the default, and the maximum a caller may ask for. */
export const DEFAULT_OVERLAP_SECONDS = 3_600;
export const MAX_OVERLAP_SECONDS = 86_400;
/**
 * Each key has a rate limit of its own: without this bound, an account could make keys to send any number of requests. A revoked key
 * counts until a day after it was made, because its row stays: otherwise an account could make and revoke keys without end.
 */
export const MAX_KEYS_PER_ACCOUNT = 1_000;

/**
 * Writes the limit and status of a key to where the admission script finds them. Once `put` has resolved, the next call with the
 * key sees them on every gateway. `put` rejects when Redis is unavailable.
 */
export type KeyStateStore = {
  put(keyId: string, accountId: string, state: Pick<KeyState, 'limit' | 'status'>): Promise<void>;
};

type KeysOptions = {
  readonly sql: Sql;
  readonly state: KeyStateStore;
  /** MAX_RATE_LIMIT. */
  readonly maxRateLimit: number;
  /** This gateway's own cache. It is told directly, without waiting for the message that tells the other gateways. */
  readonly cache: { invalidate(keyId: string): void };
};

/**
 * Runs in the transaction of a change, after it, if the change changed anything. What it stores is stored with the change or not
 * at all.
 *
 * @param subject what the change made or replaced
 */
export type Alongside<Subject> = (tx: Tx, subject: Subject) => Promise<void>;

/** Runs the work in a transaction. */
type Begin = (work: (tx: Tx) => Promise<void>) => Promise<unknown>;

/**
 * Creates, lists and changes API keys. The routes decide who may do so.
 *
 * A change is committed in Postgres, with a message that makes all gateways forget the key. A new limit or status is then written
 * to Redis. (A rotation is not: Redis has no secrets.) Creating a key needs neither message nor write: no gateway knows the key
 * yet, and admission loads into Redis the state of a key that Redis does not have.
 *
 * All methods pass on the errors of Postgres.
 *
 * Tested by test/keys/key-feed.test.ts and test/routes/keys.test.ts.
 */
export class Keys {
  readonly #sql: Sql;
  readonly #state: KeyStateStore;
  readonly #maxRateLimit: number;
  readonly #cache: { invalidate(keyId: string): void };

  constructor(options: KeysOptions) {
    this.#sql = options.sql;
    this.#state = options.state;
    this.#maxRateLimit = options.maxRateLimit;
    this.#cache = options.cache;
  }

  /**
   * Opens a new account with `ownerId` as its label, and creates its first key.
   *
   * @param opener  null if the account counts against nobody's limit
   * @throws ApiError `rate_limited` if the opener has opened as many as it may
   */
  createAccountWithKey(
    ownerId: string,
    role: Role,
    opener: Opener | null,
    also?: Alongside<CreatedKey>,
  ): Promise<CreatedKey> {
    return this.#sql.begin(async (tx) => {
      if (opener !== null) await countOpening(tx, opener);
      const created = await openAccount(tx, ownerId, role);
      await also?.(tx, created);
      return created;
    });
  }

  /** Opens an account with an admin key. Null when there is, or ever was, an admin key. */
  createFirstAdmin(ownerId: string, also?: Alongside<CreatedKey>): Promise<CreatedKey | null> {
    return this.#sql.begin(async (tx) => {
      const { adminExists } = await lockFirstAdmin(tx);
      if (adminExists) return null;
      const created = await openAccount(tx, ownerId, 'admin');
      await also?.(tx, created);
      return created;
    });
  }

  /** Adds a key to an existing account; null when there is no such account. */
  addKey(
    { accountId, role, byOperator }: { accountId: string; role: Role; byOperator: boolean },
    also?: Alongside<CreatedKey>,
  ): Promise<CreatedKey | null> {
    return this.#sql.begin(async (tx) => {
      const account = await lockAccount(tx, accountId);
      if (account === null) return null;
      if (account.status === 'closed') throw new ApiError('conflict', 'This account is closed.');
      if (account.keys >= MAX_KEYS_PER_ACCOUNT) {
        const message = `An account may have ${MAX_KEYS_PER_ACCOUNT} keys. Revoke one first; it counts until a day after it was made.`;
        throw new ApiError('conflict', message);
      }
      const created = await giveKey(tx, accountId, account.ownerId, role, byOperator);
      await also?.(tx, created);
      return created;
    });
  }

  /** Keys of an account, newest first, including revoked ones. `after` is the last key id of the previous page, or null. */
  async list(accountId: string, after: string | null, limit: number): Promise<KeyRow[]> {
    return (await selectKeysOfAccount(this.#sql, accountId, after, limit)).map((key) => this.capped(key));
  }

  /** The active keys of the account that an operator issued, newest first. */
  listOfOperator(accountId: string, limit: number): Promise<OperatorKey[]> {
    return selectOperatorKeys(this.#sql, accountId, limit);
  }

  async find(keyId: string): Promise<KeyRow | null> {
    const key = await selectKey(this.#sql, keyId);
    return key === null ? null : this.capped(key);
  }

  /** The key with the limit that counts for it: no stored one counts beyond `maxRateLimit`. */
  capped(key: KeyRow): KeyRow {
    return { ...key, rate_limit: Math.min(key.rate_limit, this.#maxRateLimit) };
  }

  /**
   * Gives the key a new secret. The secret it replaces stays valid for `overlapSeconds` (0–86 400). An older one that is still
   * valid from an earlier rotation ends now. Null when there is no active key with this id.
   */
  async rotate(
    keyId: string,
    overlapSeconds: number,
    also?: Alongside<{ previousExpiresAt: Date | null }>,
  ): Promise<{ secret: string; previousExpiresAt: Date | null } | null> {
    const secret = newSecret();
    const rotated = await this.#sql.begin(async (tx) => {
      const updated = await updateSecret(tx, keyId, hashSecret(secret), overlapSeconds);
      if (updated !== null) await also?.(tx, updated);
      return updated;
    });
    this.#cache.invalidate(keyId);
    return rotated === null ? null : { secret, previousExpiresAt: rotated.previousExpiresAt };
  }

  /**
   * Revokes the key for good. Repeating it does no harm, and is the remedy when it failed.
   *
   * @throws ApiError `unavailable` when the change is stored in Postgres but could not be written to Redis
   */
  async revoke(keyId: string, also?: Alongside<string>): Promise<void> {
    await this.#sql.begin(async (tx) => {
      if (await updateToRevoked(tx, keyId)) await also?.(tx, keyId);
    });
    await this.#publishState(keyId);
  }

  /**
   * @param rateLimit requests per minute, 1 to `maxRateLimit`
   * @param also is told the limit that this one replaces
   * @throws as `revoke` does
   */
  async setRateLimit(keyId: string, rateLimit: number, also?: Alongside<number>): Promise<void> {
    await this.#sql.begin(async (tx) => {
      const before = await updateRateLimit(tx, keyId, rateLimit);
      if (before !== undefined && before !== rateLimit) await also?.(tx, before);
    });
    await this.#publishState(keyId);
  }

  /**
   * Copies the key's state from Postgres to Redis again, because Redis and the cache disagree about it. The cache may be the one
   * that is wrong, so the key's record is then dropped from it and read again at its next use. Throws as `revoke` does.
   *
   * @param begin opens a transaction, or refuses: a Postgres that went back in time would bring a revoked key back
   */
  async restoreState(keyId: string, begin: Begin): Promise<void> {
    await this.#copyState(keyId, begin);
    this.#cache.invalidate(keyId);
  }

  async #publishState(keyId: string): Promise<void> {
    this.#cache.invalidate(keyId);
    await this.#copyState(keyId, (work) => this.#sql.begin(work));
  }

  /**
   * Copies the committed state to Redis, with the key's row locked. Without the lock, a change of the limit that was slow to
   * reach Redis could overwrite a later revocation.
   */
  async #copyState(keyId: string, begin: Begin): Promise<void> {
    await begin(async (tx) => {
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

export async function openAccount(tx: Tx, ownerId: string, role: Role): Promise<CreatedKey> {
  const accountId = uuidv7();
  await insertAccount(tx, accountId, ownerId);
  return giveKey(tx, accountId, ownerId, role);
}

async function giveKey(
  tx: Tx,
  accountId: string,
  ownerId: string,
  role: Role,
  byOperator = false,
): Promise<CreatedKey> {
  const keyId = newKeyId();
  const secret = newSecret();
  const rateLimit = DEFAULT_RATE_LIMIT;
  await insertKey(tx, { keyId, accountId, role, secretHash: hashSecret(secret), rateLimit, byOperator });
  return { key_id: keyId, secret, role, owner_id: ownerId, rate_limit: rateLimit, account_id: accountId };
}
