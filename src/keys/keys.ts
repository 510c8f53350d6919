import { assert } from '../assert.ts';
import { ApiError, unauthorizedError, unavailableError } from '../errors.ts';
import { uuidv7 } from '../platform/ids.ts';
import type { Sql, Tx } from '../platform/postgres.ts';
import { countOpening, type Opener } from './account-openings.ts';
import type { Role } from './caller.ts';
import { selectBudgets } from './children/budgets-sql.ts';
import { changed, checkLimits, type KeyChange } from './children/change.ts';
import { countBelow, insertChild, lockChain, type StoredKey, updateKey } from './children/children-sql.ts';
import { type Limits, MAX_LEVELS } from './children/limits.ts';
import { hashSecret, newKeyId, newSecret } from './credentials.ts';
import type { CreatedKey, KeyRow, OperatorKey, ShownKey } from './key-fields.ts';
import {
  hasAdmin,
  insertAccount,
  insertKey,
  type KeyState,
  lockAccount,
  lockFirstAdmin,
  lockKeyState,
  selectChain,
  selectKey,
  selectKeysOfAccount,
  selectOperatorKeys,
  sumIfManyKeys,
  updateSecret,
  updateToRevoked,
} from './keys-sql.ts';

/** Requests per minute of a new key (docs/api.md, 'Keys'). */
export const DEFAULT_RATE_LIMIT = 60;
/** How long the replaced secret stays valid after a rotation, in seconds: the default, and the maximum a caller may ask for. */
export const DEFAULT_OVERLAP_SECONDS = 3_600;
export const MAX_OVERLAP_SECONDS = 86_400;
/**
 * Each key has its own rate limit. Without this bound, an account could make enough keys to send any number of requests. A revoked
 * key counts until a day after it was made, because its row stays: otherwise an account could make and revoke keys endlessly.
 */
export const MAX_KEYS_PER_ACCOUNT = 1_000;
/** Maximum keys below a child key, counted in the same way. Without this bound, an agent could use up all keys of its account. */
const MAX_KEYS_BELOW_CHILD = 100;

/**
 * Writes the limit and status of a key to where the admission script finds them. Once `put` has resolved, the next call with the
 * key sees them on every gateway. `put` rejects when Redis is unavailable.
 */
export type KeyStateStore = {
  put(keyId: string, accountId: string, state: KeyState): Promise<void>;
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
 * Runs in the transaction of a change, after it, if anything was changed. What it stores is committed together with the change.
 *
 * @param subject what the change made or replaced
 */
export type Alongside<Subject> = (tx: Tx, subject: Subject) => Promise<void>;

/** A child key to be made. Without a rate limit it gets the lowest limit of the keys above it. */
export type NewChildKey = Omit<Limits, 'rateLimit'> & {
  readonly label: string | null;
  readonly rateLimit: number | null;
};
export type ChangedKey = { readonly before: StoredKey; readonly after: StoredKey };

/** Runs the work in a transaction. */
type Begin = (work: (tx: Tx) => Promise<void>) => Promise<unknown>;

/**
 * Creates, lists and changes API keys. The routes decide who may do so.
 *
 * A change is committed in Postgres, with a message that makes all gateways forget the key. A new limit or status is then written
 * to Redis; a rotation is not, because Redis has no secrets. Creating a key needs neither: no gateway knows the key yet, and
 * admission loads any state that Redis lacks.
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
  #hadAdmin = false;
  #adminAsked: Promise<boolean> | null = null;

  constructor(options: KeysOptions) {
    this.#sql = options.sql;
    this.#state = options.state;
    this.#maxRateLimit = options.maxRateLimit;
    this.#cache = options.cache;
  }

  /**
   * Opens a new account, and creates its first key.
   *
   * @param opener null: the account counts against no limit
   * @throws ApiError `rate_limited` if the opener has opened as many as it may
   */
  createAccountWithKey(account: NewAccount, opener: Opener | null, also?: Alongside<CreatedKey>): Promise<CreatedKey> {
    return this.#sql.begin(async (tx) => {
      if (opener !== null) await countOpening(tx, opener);
      const created = await openAccount(tx, account);
      await also?.(tx, created);
      return created;
    });
  }

  /**
   * Whether a new gateway still waits for its first admin. Postgres is asked one query at a time, and never again once there was an
   * admin key, because a revoked one counts, too.
   */
  async lacksAdmin(): Promise<boolean> {
    if (this.#hadAdmin) return false;
    this.#adminAsked ??= hasAdmin(this.#sql).finally(() => {
      this.#adminAsked = null;
    });
    this.#hadAdmin = await this.#adminAsked;
    return !this.#hadAdmin;
  }

  /** Opens an account with an admin key. Null when there is, or ever was, an admin key. */
  createFirstAdmin(account: NewAccount, also?: Alongside<CreatedKey>): Promise<CreatedKey | null> {
    return this.#sql.begin(async (tx) => {
      const { adminExists } = await lockFirstAdmin(tx);
      if (adminExists) return null;
      const created = await openAccount(tx, account);
      await also?.(tx, created);
      return created;
    });
  }

  /**
   * Adds a key without a parent to an existing account; null when there is no such account.
   *
   * @param key may state the label of the account
   */
  addKey(
    { ownerId, ...key }: AccountKey & { readonly ownerId: string | null },
    also?: Alongside<CreatedKey>,
  ): Promise<CreatedKey | null> {
    return this.#sql.begin(async (tx) => {
      const account = await lockAccountForKey(tx, key.accountId);
      if (account === null) return null;
      if (ownerId !== null && ownerId !== account.ownerId) {
        throw otherOwnerError();
      }
      const created = await giveKey(tx, key, account.ownerId);
      await sumIfManyKeys(tx, key.accountId);
      await also?.(tx, created);
      return created;
    });
  }

  /**
   * Keys of an account, newest first. Revoked ones are included.
   *
   * @param below  only keys below this one; null: all
   * @param after  the last key id of the previous page, or null
   */
  async list(accountId: string, below: string | null, after: string | null, limit: number): Promise<ShownKey[]> {
    return this.shown(await selectKeysOfAccount(this.#sql, accountId, below, after, limit));
  }

  /** The active keys of the account that an operator issued, newest first. */
  listOfOperator(accountId: string, limit: number): Promise<OperatorKey[]> {
    return selectOperatorKeys(this.#sql, accountId, limit);
  }

  async find(keyId: string): Promise<ShownKey | null> {
    const key = await selectKey(this.#sql, keyId);
    return key === null ? null : ((await this.shown([key]))[0] ?? null);
  }

  /** The keys, with what their budgets have left and with the limits that are in force: stored limits are cut to `maxRateLimit`. */
  async shown(keys: readonly KeyRow[]): Promise<ShownKey[]> {
    return this.#shownIn(this.#sql, keys);
  }

  async #shownIn(sql: Sql | Tx, keys: readonly KeyRow[]): Promise<ShownKey[]> {
    const budgets = await selectBudgets(sql, keys);
    return keys.map((key) => ({
      ...key,
      rate_limit: Math.min(key.rate_limit, this.#maxRateLimit),
      budget: budgets.get(key.key_id) ?? null,
    }));
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
   * Revokes the key for good. Repeating it is harmless, and is the remedy if it failed.
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
   * Makes a child key, below a key of the account.
   *
   * @throws ApiError `invalid_request` if a limit exceeds one above it, `conflict` if there are too many keys or levels
   */
  createChild(parentId: string, { label, ...limits }: NewChildKey): Promise<CreatedKey> {
    return this.#sql.begin(async (tx) => {
      const above = await lockChain(tx, parentId);
      const parent = above.at(-1);
      if (parent === undefined || above.some(({ status }) => status !== 'active')) throw unauthorizedError();
      if (above.length >= MAX_LEVELS) {
        throw new ApiError('conflict', `A key may have at most ${MAX_LEVELS - 1} keys above it.`);
      }
      const ownLimits = { ...limits, rateLimit: limits.rateLimit ?? Math.min(...above.map((key) => key.rateLimit)) };
      await checkLimits(tx, ownLimits, above);
      const { accountId } = parent;
      await lockAccountForKey(tx, accountId);
      const [, topChild] = above;
      if (topChild !== undefined && (await countBelow(tx, topChild)) >= MAX_KEYS_BELOW_CHILD) {
        const message = `A child key may have at most ${MAX_KEYS_BELOW_CHILD} keys below it. A revoked key still counts until a day after it was made.`;
        throw new ApiError('conflict', message);
      }
      const keyId = newKeyId();
      const secret = newSecret();
      const ancestors = above.map((key) => key.keyId);
      await insertChild(tx, { keyId, accountId, secretHash: hashSecret(secret), ancestors, label, limits: ownLimits });
      await sumIfManyKeys(tx, accountId);
      const row = await selectKey(tx, keyId);
      assert(row !== null, 'the key was just inserted');
      const [key] = await this.#shownIn(tx, [row]);
      return { ...(key as ShownKey), secret };
    });
  }

  /**
   * @param also called with what was changed
   * @throws as `createChild` and `revoke` do
   */
  async change(keyId: string, change: KeyChange, also?: Alongside<ChangedKey>): Promise<void> {
    await this.#sql.begin(async (tx) => {
      const chain = await lockChain(tx, keyId);
      const before = chain.at(-1);
      if (before === undefined) return;
      const after = await changed(tx, before, change, chain.slice(0, -1));
      await updateKey(tx, after);
      await also?.(tx, { before, after });
    });
    await this.#publishState(keyId);
  }

  /**
   * Copies the key's state from Postgres to Redis again, because Redis and the cache disagree. The cache may be the wrong one, so
   * it drops the key's record and reads it again at the next use. Throws as `revoke` does.
   *
   * @param begin opens a transaction, or refuses: a Postgres that went back in time would bring a revoked key back
   */
  async restoreState(keyId: string, begin: Begin): Promise<void> {
    // Redis may instead have lost the state of a key above it. The keys are copied one after the other, because each is locked
    // until Redis has it.
    for (const id of await selectChain(this.#sql, keyId)) await this.#copyState(id, begin);
    this.#cache.invalidate(keyId);
  }

  async #publishState(keyId: string): Promise<void> {
    this.#cache.invalidate(keyId);
    await this.#copyState(keyId, (work) => this.#sql.begin(work));
  }

  /**
   * Copies the committed state to Redis, with the key's row locked. Without the lock, a change of the limit that reached Redis late
   * could overwrite a later revocation.
   */
  async #copyState(keyId: string, begin: Begin): Promise<void> {
    await begin(async (tx) => {
      const key = await lockKeyState(tx, keyId);
      if (key === null) return;
      try {
        await this.#state.put(keyId, key.accountId, key);
      } catch (cause) {
        throw notPublishedError(cause);
      }
    });
  }
}

export const otherOwnerError = (): ApiError =>
  new ApiError('invalid_request', 'owner_id: is not the label of this account. Leave it out.');

export function notPublishedError(cause: unknown): ApiError {
  return unavailableError(cause, 'The change is stored, but has not reached every gateway yet. Please send it again.');
}

/** `ownerId` is the label of the account; `role` and `label` belong to its first key. */
type NewAccount = { readonly ownerId: string; readonly role: Role; readonly label: string | null };

export async function openAccount(tx: Tx, { ownerId, role, label }: NewAccount): Promise<CreatedKey> {
  const accountId = uuidv7();
  await insertAccount(tx, accountId, ownerId);
  return giveKey(tx, { accountId, role, byOperator: false, label }, ownerId);
}

type AccountKey = {
  readonly accountId: string;
  readonly role: Role;
  readonly byOperator: boolean;
  readonly label: string | null;
};

async function giveKey(
  tx: Tx,
  { accountId, role, byOperator, label }: AccountKey,
  ownerId: string,
): Promise<CreatedKey> {
  const keyId = newKeyId();
  const secret = newSecret();
  const rateLimit = DEFAULT_RATE_LIMIT;
  await insertKey(tx, { keyId, accountId, role, secretHash: hashSecret(secret), rateLimit, byOperator, label });
  return {
    ...{ key_id: keyId, secret, role, owner_id: ownerId, rate_limit: rateLimit, account_id: accountId, label },
    ...{ parent_key_id: null, budget: null, max_price: null, services: null, expires_at: null },
  };
}

/** The account, locked; null if there is none. Throws `conflict` if it may not have another key. */
async function lockAccountForKey(tx: Tx, accountId: string): Promise<{ readonly ownerId: string } | null> {
  const account = await lockAccount(tx, accountId);
  if (account?.status === 'closed') throw new ApiError('conflict', 'This account is closed.');
  if (account !== null && account.keys >= MAX_KEYS_PER_ACCOUNT) {
    const message = `An account may have at most ${MAX_KEYS_PER_ACCOUNT} keys. Revoke one first. A revoked key still counts until a day after it was made.`;
    throw new ApiError('conflict', message);
  }
  return account;
}
