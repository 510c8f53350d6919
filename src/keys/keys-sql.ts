import type { Sql, Tx } from '../platform/postgres.ts';
import type { KeyRecord, Role } from './caller.ts';
import { servicesInAll } from './children/limits.ts';
import { digestOfHash } from './credentials.ts';
import { KEY_SELECT, type KeyRow, type OperatorKey } from './key-fields.ts';

// The SQL of keys and accounts. Tested by test/keys/key-feed.test.ts and test/routes/keys.test.ts.

/** Channel on which every gateway is told which keys changed; `keepKeyCacheFresh` listens to it. */
export const KEY_CHANGES = 'tollgate_keys';
/** A message with this prefix names an account, all of whose keys changed. Other messages are the id of one key. */
export const ACCOUNT_PREFIX = 'account:';

export type AccountStatus = KeyRecord['accountStatus'];

type NewKey = {
  readonly keyId: string;
  readonly accountId: string;
  readonly role: Role;
  readonly secretHash: string;
  readonly rateLimit: number;
  readonly byOperator: boolean;
  readonly label: string | null;
};

type RecordRow = Omit<
  KeyRecord,
  'secretDigest' | 'previousSecretDigest' | 'previousExpiresAtMs' | 'bearers' | 'services' | 'expiresAtMs' | 'buyer'
> & {
  readonly bearers: readonly { readonly hash: string; readonly expiresAtMs: number }[] | null;
  /** The service lists of a child key and of the keys above it. */
  readonly services: readonly (readonly string[])[] | null;
  readonly expiresAt: Date | null;
  readonly secretHash: string;
  readonly previousSecretHash: string | null;
  readonly previousExpiresAt: Date | null;
};

/** A condition on a session `s` with its key `k`: a session ends with the secret that signed in. */
export const SECRET_IS_VALID = `(s.secret_hash = k.secret_hash
  OR (s.secret_hash = k.previous_secret_hash AND k.previous_expires_at > now()))`;
/** When that secret ends, if known. NULL: it is the present secret. */
const SECRET_ENDS_AT = 'CASE WHEN s.secret_hash <> k.secret_hash THEN k.previous_expires_at END';

/** The records of these keys for `KeyCache`; the result lacks unknown ids. Limits are cut to `maxRateLimit`. */
export async function selectKeyRecords(
  sql: Sql,
  keyIds: readonly string[],
  maxRateLimit: number,
): Promise<KeyRecord[]> {
  const rows = await sql<RecordRow[]>`
    SELECT k.key_id AS "keyId", k.account_id AS "accountId", a.owner_id AS "ownerId", k.role,
           k.secret_hash AS "secretHash", k.previous_secret_hash AS "previousSecretHash",
           k.previous_expires_at AS "previousExpiresAt", k.ancestors, k.rate_limit AS "rateLimit", ${keyStatus(sql)} AS "status",
           a.status AS "accountStatus", a.suspension_reason AS "suspensionReason",
           above."maxPriceMicros", above.services, above."expiresAt", signed_in.bearers
    FROM api_keys k JOIN accounts a ON a.id = k.account_id
    LEFT JOIN LATERAL (
      SELECT min(max_price) AS "maxPriceMicros", json_agg(services) FILTER (WHERE services IS NOT NULL) AS services,
             min(expires_at) AS "expiresAt"
      FROM api_keys WHERE key_id = ANY(k.ancestors || k.key_id)
    ) AS above ON k.ancestors <> '{}'
    LEFT JOIN LATERAL (
      SELECT json_agg(json_build_object('hash', bearer.hash, 'expiresAtMs',
               floor(1000 * extract(epoch FROM least(bearer.expires_at, s.expires_at, ${sql.text(SECRET_ENDS_AT)}))))) AS bearers
      FROM sessions s CROSS JOIN LATERAL (VALUES
        (s.bearer_hash, s.bearer_expires_at), (s.previous_bearer_hash, s.previous_bearer_expires_at)) AS bearer (hash, expires_at)
      WHERE s.key_id = k.key_id AND s.expires_at > now() AND bearer.expires_at > now() AND ${sql.text(SECRET_IS_VALID)}
    ) AS signed_in ON true
    WHERE k.key_id = ANY(${keyIds}::text[])`;
  // Copied field by field: a spread row keeps the Postgres client's dictionary of columns, and reading it cost 1.6 µs a call.
  return rows.map((row) => ({
    keyId: row.keyId,
    accountId: row.accountId,
    ownerId: row.ownerId,
    role: shared(row.role),
    secretDigest: digestOfHash(row.secretHash),
    previousSecretDigest: row.previousSecretHash === null ? null : digestOfHash(row.previousSecretHash),
    previousExpiresAtMs: row.previousExpiresAt?.getTime() ?? 0,
    bearers:
      row.bearers?.map(({ hash, expiresAtMs }) => ({ digest: digestOfHash(hash), expiresAtMs: Number(expiresAtMs) })) ??
      null,
    ancestors: row.ancestors.length === 0 ? NONE : row.ancestors,
    maxPriceMicros: row.maxPriceMicros,
    services: servicesInAll(row.services),
    expiresAtMs: row.expiresAt?.getTime() ?? null,
    rateLimit: Math.min(row.rateLimit, maxRateLimit),
    status: shared(row.status),
    accountStatus: shared(row.accountStatus),
    suspensionReason: row.suspensionReason,
    buyer: null,
    lastRefill: 0,
    emptyUntilMs: 0,
  }));
}

const NONE: readonly string[] = [];
const WORDS = ['buyer', 'provider', 'admin', 'active', 'revoked', 'suspended', 'closed'];

/**
 * The equal string in `WORDS`, or `word` itself. Each row brings its own copies of these few words; caching the copies took 100
 * bytes a key.
 */
function shared<T extends string>(word: T): T {
  return (WORDS.find((known) => known === word) as T | undefined) ?? word;
}

/**
 * The key's status, from `api_keys k JOIN accounts a`. Closing an account revokes its keys. A process of an older version, which
 * does not know closed accounts, may add a key afterwards: that one counts as revoked too.
 */
const keyStatus = (sql: Tx) => sql`CASE WHEN a.status = 'closed' THEN 'revoked' ELSE k.status END`;

export async function selectKey(sql: Sql | Tx, keyId: string): Promise<KeyRow | null> {
  const rows = await sql<KeyRow[]>`
    SELECT ${sql.text(KEY_SELECT)} FROM api_keys k JOIN accounts a ON a.id = k.account_id WHERE k.key_id = ${keyId}`;
  return rows[0] ?? null;
}

/**
 * Keys of an account, newest first.
 *
 * @param below only keys below this one; null: all
 * @param after the last key of the previous page (keys are never deleted, so it still exists); null for the first page
 */
export async function selectKeysOfAccount(
  sql: Sql,
  accountId: string,
  below: string | null,
  after: string | null,
  limit: number,
): Promise<KeyRow[]> {
  // Keys made in one transaction have the same `created_at`: the id breaks the tie.
  const older =
    after === null
      ? sql``
      : sql`AND (k.created_at, k.key_id) < (SELECT created_at, key_id FROM api_keys WHERE key_id = ${after})`;
  return sql<KeyRow[]>`
    SELECT ${sql.text(KEY_SELECT)} FROM api_keys k JOIN accounts a ON a.id = k.account_id
    WHERE k.account_id = ${accountId} ${below === null ? sql`` : sql`AND k.ancestors @> ARRAY[${below}::text]`} ${older}
    ORDER BY k.created_at DESC, k.key_id DESC LIMIT ${limit}`;
}

/** The active keys that an operator issued to the account, newest first; at most `limit`. */
export function selectOperatorKeys(sql: Sql, accountId: string, limit: number): Promise<OperatorKey[]> {
  return sql<OperatorKey[]>`
    SELECT key_id, role, label, created_at FROM api_keys WHERE account_id = ${accountId} AND by_operator AND status = 'active'
    ORDER BY created_at DESC, key_id DESC LIMIT ${limit}`;
}

export async function insertAccount(tx: Tx, accountId: string, ownerId: string): Promise<void> {
  await tx`INSERT INTO accounts (id, owner_id) VALUES (${accountId}, ${ownerId})`;
}

export async function insertKey(tx: Tx, key: NewKey): Promise<void> {
  await tx`
    INSERT INTO api_keys (key_id, account_id, role, secret_hash, rate_limit, by_operator, label)
    VALUES (${key.keyId}, ${key.accountId}, ${key.role}, ${key.secretHash}, ${key.rateLimit}, ${key.byOperator}, ${key.label})`;
}

/**
 * From this number of keys, an account has sums of its own (`account_days`). With fewer keys, the sums by key are few: at most 10
 * 500 rows in a month in which each key calls fifty services every day.
 */
const KEYS_TO_SUM = 8;

/**
 * Begins the sums of an account that now has many keys, on a day that no stored call and no flush under way has reached. The
 * account must be locked. Revoked keys count: their calls are in the sums of earlier days.
 */
export async function sumIfManyKeys(tx: Tx, accountId: string): Promise<void> {
  await tx`
    UPDATE accounts SET summed_from = 2 + greatest((now() AT TIME ZONE 'UTC')::date, (
      SELECT max(last.day) FROM api_keys k, LATERAL (
        SELECT (max(hour) AT TIME ZONE 'UTC')::date AS day FROM key_hours WHERE key_id = k.key_id) AS last
      WHERE k.account_id = ${accountId}))
    WHERE id = ${accountId} AND summed_from IS NULL
      AND (SELECT count(*) FROM api_keys WHERE account_id = ${accountId}) >= ${KEYS_TO_SUM}`;
}

/**
 * Locks the account against other transactions that change its keys. `keys` counts those that are active or were made in the last
 * day. Null when there is no such account.
 */
export async function lockAccount(
  tx: Tx,
  accountId: string,
): Promise<{ ownerId: string; status: AccountStatus; keys: number } | null> {
  const accounts = await tx<{ ownerId: string; status: AccountStatus }[]>`
    SELECT owner_id AS "ownerId", status FROM accounts WHERE id = ${accountId} FOR NO KEY UPDATE`;
  const account = accounts[0];
  if (account === undefined) return null;
  const counts = await tx<{ keys: number }[]>`
    SELECT count(*)::int AS keys FROM api_keys
    WHERE account_id = ${accountId} AND ${countsAsKey(tx)}`;
  return { ownerId: account.ownerId, status: account.status, keys: counts[0]?.keys ?? 0 };
}

/** Whether a key counts against the maximum number of keys: it is active, or was made in the last day. */
export const countsAsKey = (tx: Tx) => tx`(status = 'active' OR created_at > now() - interval '1 day')`;

/** An arbitrary number. A transaction that opens the first admin account holds this advisory lock until it commits. */
const FIRST_ADMIN_LOCK = 7_014_655_002;

/**
 * Waits until nobody else is making the first admin, then says whether there is an admin key already. A revoked admin key counts.
 * Otherwise anybody could become admin after the last admin key was revoked.
 */
export async function lockFirstAdmin(tx: Tx): Promise<{ adminExists: boolean }> {
  await tx`SELECT pg_advisory_xact_lock(${FIRST_ADMIN_LOCK})`;
  return { adminExists: await hasAdmin(tx) };
}

/** Whether there is, or ever was, an admin key. Waits for nobody. */
export async function hasAdmin(sql: Sql | Tx): Promise<boolean> {
  const rows = await sql<{ adminExists: boolean }[]>`
    SELECT EXISTS (SELECT 1 FROM api_keys WHERE role = 'admin') AS "adminExists"`;
  return rows[0]?.adminExists ?? true;
}

/** Tells every gateway to forget the key, as soon as the transaction commits. */
async function announceKey(tx: Tx, keyId: string): Promise<void> {
  await tx`SELECT pg_notify(${KEY_CHANGES}, ${keyId})`;
}

/** Like `announceKey`, but also for the keys below it, whose records contain its limits. */
export async function announceTree(tx: Tx, keyId: string): Promise<void> {
  await tx`
    SELECT pg_notify(${KEY_CHANGES}, k.key_id) FROM api_keys top JOIN api_keys k ON k.account_id = top.account_id
    WHERE top.key_id = ${keyId} AND (k.key_id = ${keyId} OR k.ancestors @> ARRAY[${keyId}::text])`;
}

/**
 * Gives an active key a new secret. The secret it replaces stays valid for the overlap (0: it ends now); an older one, left from
 * an earlier rotation, ends now.
 *
 * @returns until when the replaced secret is valid, or null when there is no active key with this id
 */
export async function updateSecret(
  tx: Tx,
  keyId: string,
  secretHash: string,
  overlapSeconds: number,
): Promise<{ previousExpiresAt: Date | null } | null> {
  const rows = await tx<{ previousExpiresAt: Date | null }[]>`
    UPDATE api_keys SET
      previous_secret_hash = CASE WHEN ${overlapSeconds}::int > 0 THEN secret_hash END,
      previous_expires_at = CASE WHEN ${overlapSeconds}::int > 0 THEN now() + ${overlapSeconds}::int * interval '1 second' END,
      secret_hash = ${secretHash}
    WHERE key_id = ${keyId} AND status = 'active'
    RETURNING previous_expires_at AS "previousExpiresAt"`;
  if (rows[0] !== undefined) await announceKey(tx, keyId);
  return rows[0] ?? null;
}

/**
 * Revokes the key and those below it. It is harmless to repeat.
 *
 * @returns whether it was active until now
 */
export async function updateToRevoked(tx: Tx, keyId: string): Promise<boolean> {
  const { count } = await tx`UPDATE api_keys SET status = 'revoked' WHERE key_id = ${keyId} AND status <> 'revoked'`;
  // A separate statement, so that it sees the keys that were made while the first one waited for their makers (`lockChain`). Like
  // all code that locks several keys, it locks from the top down, so that no two wait for each other.
  await tx`
    WITH below AS (
      SELECT k.key_id FROM api_keys top JOIN api_keys k ON k.account_id = top.account_id
      WHERE top.key_id = ${keyId} AND k.ancestors @> ARRAY[${keyId}::text] AND k.status <> 'revoked'
      ORDER BY cardinality(k.ancestors), k.key_id FOR NO KEY UPDATE OF k
    )
    UPDATE api_keys SET status = 'revoked' FROM below WHERE api_keys.key_id = below.key_id`;
  await announceTree(tx, keyId);
  return count > 0;
}

/** Revokes all keys of an account, which the transaction has locked. @returns those that were active until now */
export function updateAllToRevoked(tx: Tx, accountId: string): Promise<KeyState[]> {
  return tx<KeyState[]>`
    UPDATE api_keys k SET status = 'revoked' WHERE k.account_id = ${accountId} AND k.status <> 'revoked'
    RETURNING ${tx.text(TERMS)}, k.status`;
}

/** The state of a key that Redis must have. The stored `limit` may be above MAX_RATE_LIMIT: KeyStates and Hydrator cut it. */
export type KeyState = {
  readonly keyId: string;
  readonly accountId: string;
  readonly limit: number;
  readonly status: 'active' | 'suspended' | 'revoked';
  readonly ancestors: readonly string[];
  readonly expiresAt: Date | null;
  readonly budgetMicros: number | null;
  readonly budgetPeriod: string | null;
  readonly budgetNumber: number;
};

const TERMS = `k.key_id AS "keyId", k.account_id AS "accountId", k.rate_limit AS "limit", k.ancestors, k.expires_at AS "expiresAt",
  k.budget_amount AS "budgetMicros", k.budget_period AS "budgetPeriod", k.budget_number AS "budgetNumber"`;

const state = (tx: Tx) => tx`
  ${tx.text(TERMS)},
  CASE WHEN ${keyStatus(tx)} = 'active' THEN a.status ELSE 'revoked' END AS "status"`;

/** The key and those above it, root first; empty when there is no such key. They never change. */
export async function selectChain(sql: Sql, keyId: string): Promise<readonly string[]> {
  const rows = await sql<
    { chain: string[] }[]
  >`SELECT ancestors || key_id AS chain FROM api_keys WHERE key_id = ${keyId}`;
  return rows[0]?.chain ?? [];
}

/**
 * The key's state. Until the transaction ends, nobody else can change it or publish it, alone or with the other keys of its
 * account.
 */
export async function lockKeyState(tx: Tx, keyId: string): Promise<KeyState | null> {
  const rows = await tx<KeyState[]>`
    SELECT ${state(tx)} FROM api_keys k JOIN accounts a ON a.id = k.account_id
    WHERE k.key_id = ${keyId} FOR NO KEY UPDATE OF k FOR SHARE OF a`;
  return rows[0] ?? null;
}

/** The states of the account's keys that are not revoked. Until the transaction ends, nobody else can publish one of them. */
export async function lockKeyStates(tx: Tx, accountId: string): Promise<KeyState[]> {
  // Locks the account, but no keys. So it cannot deadlock with `lockKeyState`, which locks a key and then waits for its account.
  await tx`SELECT 1 FROM accounts WHERE id = ${accountId} FOR NO KEY UPDATE`;
  return tx<KeyState[]>`
    SELECT ${state(tx)} FROM api_keys k JOIN accounts a ON a.id = k.account_id
    WHERE a.id = ${accountId} AND k.status = 'active'`;
}

/** Whether an account may act and, if it is suspended, what the operator tells it. */
export type Standing = { readonly status: AccountStatus; readonly reason: string | null };

/**
 * Sets the account's status and, for a suspended one, the reason that it is told. Does nothing to a closed account: nothing opens
 * it again. Until the transaction ends, the account is locked against new rows that refer to it. So a listing that is added at the
 * same time is either visible to the next statement of this transaction, or its insertion waits and finds the new status.
 *
 * @param reason null: an account that is already suspended keeps its reason
 * @returns the account's label, and its standing before and after; null when there is no such account
 */
export async function updateAccountStatus(
  tx: Tx,
  accountId: string,
  status: Exclude<AccountStatus, 'closed'>,
  reason: string | null,
): Promise<{ readonly ownerId: string; readonly before: Standing; readonly after: Standing } | null> {
  const rows = await tx<{ ownerId: string; status: AccountStatus; reason: string | null }[]>`
    SELECT owner_id AS "ownerId", status, suspension_reason AS "reason" FROM accounts WHERE id = ${accountId} FOR UPDATE`;
  const [row] = rows;
  if (row === undefined) return null;
  const { ownerId, ...before } = row;
  if (before.status === 'closed') return { ownerId, before, after: before };
  const after = { status, reason: status === 'active' ? null : (reason ?? before.reason) };
  if (before.status !== after.status || before.reason !== after.reason) {
    await tx`UPDATE accounts SET status = ${status}, suspension_reason = ${after.reason} WHERE id = ${accountId}`;
    await tx`SELECT pg_notify(${KEY_CHANGES}, ${ACCOUNT_PREFIX + accountId})`;
  }
  return { ownerId, before, after };
}
