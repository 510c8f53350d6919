import { deleteProfile } from '../catalog/providers/profiles-sql.ts';
import { closeListingsOf } from '../catalog/sql.ts';
import { ApiError, unavailableError } from '../errors.ts';
import type { KeyStateStore } from '../keys/keys.ts';
import {
  ACCOUNT_PREFIX,
  type AccountStatus,
  KEY_CHANGES,
  type KeyState,
  updateAllToRevoked,
} from '../keys/keys-sql.ts';
import { formatUsd } from '../platform/money.ts';
import type { Sql, Tx } from '../platform/postgres.ts';
import { type Actor, recordAct } from './audit.ts';
import { PROFILE_CLEARED } from './profile-acts.ts';

type ClosingOptions = {
  readonly sql: Sql;
  readonly state: KeyStateStore;
  /** This gateway's own cache. It is told directly, without waiting for the message that tells the other gateways. */
  readonly cache: { invalidateAccount(accountId: string): void };
  readonly wallets: { read(accountId: string): Promise<{ balanceMicros: number; heldMicros: number }> };
};

type ClosedAccount = { readonly accountId: string; readonly ownerId: string; readonly closedAt: Date };

/** The label that replaces the own label of every closed account. */
const CLOSED_LABEL = '(closed)';

/**
 * The fields that are kept in the record of a change to a closed account's listing. All others may name somebody: names,
 * descriptions, endpoints, paths, links. Fields that listings get later are erased until they are listed here.
 */
const KEPT_OF_LISTINGS = ['status', 'price', 'max_price', 'free_calls', 'category', 'protocol', 'timeout_seconds'];

/**
 * Closes accounts for good: revokes their keys, removes their listings, and erases names. Calls, the journal and balances keep the
 * account's id, because the books of others refer to it.
 *
 * Tested by test/integration/operators.test.ts.
 */
export class Closing {
  readonly #options: ClosingOptions;

  constructor(options: ClosingOptions) {
    this.#options = options;
  }

  /**
   * Closes the account, or does nothing if it is closed already. Once this has resolved, no gateway admits a call of it.
   *
   * Calls of its listings that are under way go on. Their earnings become payable even after the account was closed.
   *
   * @returns null when there is no such account
   * @throws ApiError `conflict` while the account has money or open calls, `unavailable` when Redis is away; then nothing changed
   */
  async close(accountId: string, by: Actor): Promise<ClosedAccount | null> {
    const { sql, cache } = this.#options;
    const closed = await sql.begin(async (tx) => {
      const account = await lock(tx, accountId);
      if (account === null || account.status === 'closed') return account;
      await this.#refuseWhileMoneyIsLeft(tx, accountId);
      const keys = await updateAllToRevoked(tx, accountId);
      const listings = await closeListingsOf(tx, accountId);
      await deleteProfile(tx, accountId);
      await eraseNames(tx, accountId);
      await eraseTagSums(tx, accountId);
      await tx`DELETE FROM sessions WHERE key_id IN (SELECT key_id FROM api_keys WHERE account_id = ${accountId})`;
      const closing = await setClosed(tx, accountId);
      const after = { status: 'closed', keys_revoked: keys.length, services_removed: listings };
      const subject = { subjectType: 'account', subjectId: accountId } as const;
      await recordAct(tx, { ...by, action: 'account.close', ...subject, before: { status: account.status }, after });
      await this.#bar(keys);
      return closing;
    });
    cache.invalidateAccount(accountId);
    return closed === null ? null : { accountId, ownerId: closed.ownerId, closedAt: closed.closedAt as Date };
  }

  /**
   * The balance in Postgres is the sum of the wallet in Redis, open holds and calls that are not stored yet. Only the wallet can be
   * negative, after Redis came back older. So if balance and wallet are zero, the others are zero too. They stay zero, because the
   * locked account accepts no credit. A call that costs nothing may slip in: it moves no money.
   */
  async #refuseWhileMoneyIsLeft(tx: Tx, accountId: string): Promise<void> {
    const rows = await tx<{ ledger: string; balance: number }[]>`
      SELECT ledger, balance FROM balances WHERE account_id = ${accountId} AND ledger IN ('wallet', 'earnings')`;
    const balanceOf = (name: string): number => rows.find(({ ledger }) => ledger === name)?.balance ?? 0;
    const { balanceMicros, heldMicros } = await this.#options.wallets.read(accountId);
    const payable = balanceOf('earnings');
    const left = [
      ...(balanceMicros > 0 ? [`the wallet has ${formatUsd(balanceMicros)} USD (debit it)`] : []),
      ...(balanceMicros < 0 ? [`the wallet owes ${formatUsd(-balanceMicros)} USD (credit it)`] : []),
      ...(heldMicros === 0 ? [] : [`open calls hold ${formatUsd(heldMicros)} USD (wait for their end)`]),
      // A negative `payable` is what the platform carries for the account, and goes on carrying for good.
      ...(payable <= 0 ? [] : [`${formatUsd(payable)} USD are payable (pay them out)`]),
    ];
    if (left.length === 0 && balanceOf('wallet') !== 0) left.push('its last calls are still being stored (try again)');
    if (left.length > 0) throw new ApiError('conflict', `This account cannot be closed yet: ${left.join(', ')}.`);
  }

  /**
   * Tells Redis before the commit, with the account locked. If the commit then fails, Redis bars keys that are active in Postgres.
   * The gate notices this at the next request and has their state copied to Redis again.
   */
  async #bar(keys: readonly KeyState[]): Promise<void> {
    const { state } = this.#options;
    try {
      // There are at most MAX_KEYS_PER_ACCOUNT keys, so they are written all at once.
      await Promise.all(keys.map((key) => state.put(key.keyId, key.accountId, key)));
    } catch (cause) {
      throw unavailableError(cause);
    }
  }
}

type Locked = { readonly ownerId: string; readonly status: AccountStatus; readonly closedAt: Date | null };

/**
 * Locks the account's keys, then the account, in the order of `lockKeyState`. In another order the two could wait for each other.
 * The lock on the account also keeps out new rows that refer to it, so that no key or listing is added meanwhile.
 */
async function lock(tx: Tx, accountId: string): Promise<Locked | null> {
  await tx`
    SELECT FROM api_keys WHERE account_id = ${accountId} AND status = 'active'
    ORDER BY cardinality(ancestors), key_id FOR NO KEY UPDATE`;
  const rows = await tx<Locked[]>`
    SELECT owner_id AS "ownerId", status, closed_at AS "closedAt" FROM accounts WHERE id = ${accountId} FOR UPDATE`;
  return rows[0] ?? null;
}

async function setClosed(tx: Tx, accountId: string): Promise<Locked> {
  const rows = await tx<Locked[]>`
    UPDATE accounts SET status = 'closed', owner_id = ${CLOSED_LABEL}, closed_at = now(), suspension_reason = NULL
    WHERE id = ${accountId}
    RETURNING owner_id AS "ownerId", status, closed_at AS "closedAt"`;
  await tx`SELECT pg_notify(${KEY_CHANGES}, ${ACCOUNT_PREFIX + accountId})`;
  return rows[0] as Locked;
}

/** Tags may name customers of the account. Its calls keep their tags and paths until their day is dropped. */
async function eraseTagSums(tx: Tx, accountId: string): Promise<void> {
  await tx`DELETE FROM tag_days WHERE account_id = ${accountId}`;
  await tx`DELETE FROM tag_months WHERE account_id = ${accountId}`;
}

async function eraseNames(tx: Tx, accountId: string): Promise<void> {
  await tx`UPDATE api_keys SET label = NULL WHERE account_id = ${accountId}`;
  await tx`
    UPDATE audit SET before = (before::jsonb - 'label')::json, after = (after::jsonb - 'label')::json
    WHERE subject_type = 'key' AND subject_id IN (SELECT key_id FROM api_keys WHERE account_id = ${accountId})`;
  const kept = (state: 'before' | 'after') => tx`
    (SELECT json_object_agg(key, value) FROM json_each(${state === 'before' ? tx`before` : tx`after`})
     WHERE key = ANY(${KEPT_OF_LISTINGS}::text[]))`;
  await tx`
    UPDATE audit SET before = ${kept('before')}, after = ${kept('after')}
    WHERE subject_type = 'service'
      AND subject_id IN (SELECT id::text FROM services WHERE provider_id = ${accountId})`;
  await tx`
    UPDATE audit SET before = NULL
    WHERE subject_type = 'account' AND subject_id = ${accountId} AND action = ${PROFILE_CLEARED}`;
}
