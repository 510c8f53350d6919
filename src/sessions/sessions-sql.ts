import type { Role } from '../keys/caller.ts';
import { KEY_CHANGES, SECRET_IS_VALID } from '../keys/keys-sql.ts';
import type { Sql, Tx } from '../platform/postgres.ts';

// The SQL of sessions. Tested by test/integration/sessions.test.ts.

export type SessionRow = {
  readonly id: string;
  readonly key_id: string;
  readonly account_id: string;
  readonly owner_id: string;
  readonly role: Role;
  readonly label: string | null;
  readonly created_at: Date;
  readonly last_used_at: Date;
  readonly expires_at: Date;
  readonly browser_hash: string;
};

const COLUMNS = `s.id, s.key_id, k.account_id, a.owner_id, k.role, k.label, s.created_at, s.last_used_at, s.expires_at, s.browser_hash`;
const FROM = 'sessions s JOIN api_keys k ON k.key_id = s.key_id JOIN accounts a ON a.id = k.account_id';
/**
 * A session ends by itself, with its key, or with the secret that signed in. One that never got a bearer ends after a minute: the
 * answer to the sign-in was lost, so no page has it.
 */
const IS_LIVE = `s.expires_at > now() AND (s.bearers > 0 OR s.created_at > now() - interval '1 minute') AND k.status = 'active' AND a.status <> 'closed' AND ${SECRET_IS_VALID}
  AND NOT EXISTS (SELECT FROM api_keys above WHERE above.key_id = ANY(k.ancestors || k.key_id) AND above.expires_at <= now())`;

/** Maximum sessions listed for all browsers together. */
const MAX_LISTED = 200;

/**
 * The sessions of browsers, by the hash of what they show. The previous cookie stays valid until a minute after the new one got its
 * first bearer: the answer with the new cookie may be lost, and other tabs may have requests under way.
 */
const isOf = (sql: Sql | Tx, browserHashes: readonly string[]) => sql`
  (s.browser_hash = ANY(${browserHashes}::text[])
   OR (s.previous_browser_hash = ANY(${browserHashes}::text[]) AND (s.previous_until IS NULL OR s.previous_until > now())))`;

/** The live sessions of these browsers, last used first. */
export async function selectSessions(sql: Sql | Tx, browserHashes: readonly string[]): Promise<SessionRow[]> {
  return sql<SessionRow[]>`
    SELECT ${sql.text(COLUMNS)} FROM ${sql.text(FROM)}
    WHERE ${isOf(sql, browserHashes)} AND ${sql.text(IS_LIVE)}
    ORDER BY s.last_used_at DESC, s.id DESC`;
}

/**
 * The keys whose sessions this browser may see and end in any browser: those of the accounts that are signed in here, with no
 * higher role. A child key reaches only itself and the keys below it.
 */
const reach = (tx: Sql | Tx, browserHash: string) => tx`
  SELECT other.key_id FROM ${tx.text(FROM)} JOIN api_keys other ON other.account_id = k.account_id
  WHERE s.browser_hash = ${browserHash} AND ${tx.text(IS_LIVE)}
    AND (k.ancestors = '{}' OR other.key_id = k.key_id OR other.ancestors @> ARRAY[k.key_id])
    AND array_position(${ROLE_ORDER}::text[], other.role) <= array_position(${ROLE_ORDER}::text[], k.role)`;
const ROLE_ORDER = ['buyer', 'provider', 'admin'];

/** The live sessions that this browser may end, in any browser, last used first; at most 200. */
export async function selectSessionsInReach(sql: Sql, browserHash: string): Promise<SessionRow[]> {
  return sql<SessionRow[]>`
    SELECT ${sql.text(COLUMNS)} FROM ${sql.text(FROM)}
    WHERE s.key_id IN (${reach(sql, browserHash)}) AND ${sql.text(IS_LIVE)}
    ORDER BY s.last_used_at DESC, s.id DESC LIMIT ${MAX_LISTED}`;
}

type NewSession = {
  readonly id: string;
  readonly keyId: string;
  /** The hash of the secret that signs in. */
  readonly secretHash: string;
  readonly browserHash: string;
  /** The hash of what the browser shows until it has its new cookie; null: nobody was signed in. */
  readonly previousHash: string | null;
  /** Until when it may show the previous cookie; null: until a minute after its new cookie got its first bearer. */
  readonly previousUntil: Date | null;
  readonly seconds: number;
};

/** @returns whether the key is active and the secret valid */
export async function insertSession(tx: Tx, session: NewSession): Promise<boolean> {
  const { id, keyId, secretHash, browserHash, previousHash, previousUntil, seconds } = session;
  const { count } = await tx`
    WITH s AS (SELECT ${secretHash}::text AS secret_hash)
    INSERT INTO sessions (id, key_id, browser_hash, previous_browser_hash, previous_until, secret_hash, expires_at)
    SELECT ${id}, k.key_id, ${browserHash}, ${previousHash}, ${previousUntil}::timestamptz, s.secret_hash,
           now() + ${seconds}::int * interval '1 second'
    FROM s, api_keys k JOIN accounts a ON a.id = k.account_id
    WHERE k.key_id = ${keyId} AND k.status = 'active' AND a.status <> 'closed' AND ${tx.text(SECRET_IS_VALID)}`;
  return count === 1;
}

/** Gives the browser's sessions a new cookie. */
export async function moveSessions(tx: Tx, from: string, to: string): Promise<void> {
  await tx`
    UPDATE sessions SET browser_hash = ${to}, previous_browser_hash = ${from}, previous_until = NULL WHERE browser_hash = ${from}`;
}

/** The browser has its new cookie. The previous one stays valid for a minute, for requests that are under way. */
export async function confirmBrowser(tx: Tx, browserHash: string): Promise<void> {
  await tx`
    UPDATE sessions SET previous_until = now() + interval '1 minute'
    WHERE browser_hash = ${browserHash} AND previous_browser_hash IS NOT NULL AND previous_until IS NULL`;
}

/** Ends the sessions that a browser, or a key, has beyond its maximum: those used least recently. @returns their keys */
export async function deleteBeyond(
  tx: Tx,
  of: { browserHash: string } | { keyId: string },
  max: number,
): Promise<string[]> {
  const which = 'keyId' in of ? tx`s.key_id = ${of.keyId}` : tx`s.browser_hash = ${of.browserHash}`;
  const live = tx`
    SELECT s.id FROM ${tx.text(FROM)} WHERE ${which} AND ${tx.text(IS_LIVE)} ORDER BY s.last_used_at DESC, s.id DESC OFFSET ${max}`;
  return deleted(tx, tx`id IN (${live})`);
}

/** Removes the rows of sessions that ended by themselves, with their key, or with the secret that signed in. @returns how many */
export async function deleteEnded(sql: Sql, max: number): Promise<number> {
  const { count } = await sql`
    DELETE FROM sessions WHERE id IN (
      SELECT s.id FROM ${sql.text(FROM)} WHERE (${sql.text(IS_LIVE)}) IS NOT TRUE LIMIT ${max} FOR UPDATE OF s SKIP LOCKED)`;
  return count;
}

/** Ends the session of the key in this browser, because another one follows. @returns the keys that ended */
export const deleteOfKey = (tx: Tx, browserHash: string, keyId: string): Promise<string[]> =>
  deleted(tx, tx`browser_hash = ${browserHash} AND key_id = ${keyId}`);

export const deleteOfBrowser = (tx: Tx, browserHash: string): Promise<string[]> =>
  deleted(tx, tx`browser_hash = ${browserHash}`);

/** The sessions that the browser may end. @param id  only this one; null: all */
export const deleteInReach = (tx: Tx, browserHash: string, id: string | null): Promise<string[]> =>
  deleted(tx, tx`key_id IN (${reach(tx, browserHash)}) ${id === null ? tx`` : tx`AND id = ${id}`}`);

/** Ends sessions. As soon as the transaction commits, every gateway is told to forget the bearers of their keys. */
async function deleted(tx: Tx, which: ReturnType<Tx>): Promise<string[]> {
  const rows = await tx<{ key_id: string }[]>`
    WITH ended AS (DELETE FROM sessions WHERE ${which} RETURNING key_id)
    SELECT key_id, pg_notify(${KEY_CHANGES}, key_id) IS NULL AS told FROM ended`;
  return rows.map(({ key_id: keyId }) => keyId);
}

export type BearerRow = SessionRow & {
  readonly previous_browser_hash: string | null;
  readonly previous_until: Date | null;
  readonly bearers: number;
  readonly bearer_hash: string | null;
  readonly bearer_expires_at: Date | null;
  readonly is_fresh: boolean | null;
};

/** The live sessions of these browsers, locked. */
export async function lockSessions(
  tx: Tx,
  browserHashes: readonly string[],
  freshSeconds: number,
): Promise<BearerRow[]> {
  return tx<BearerRow[]>`
    SELECT ${tx.text(COLUMNS)}, s.previous_browser_hash, s.previous_until, s.bearers, s.bearer_hash, s.bearer_expires_at,
           s.bearer_expires_at > now() + ${freshSeconds}::int * interval '1 second' AS is_fresh
    FROM ${tx.text(FROM)}
    WHERE ${isOf(tx, browserHashes)} AND ${tx.text(IS_LIVE)}
    ORDER BY s.id FOR UPDATE OF s`;
}

/** Gives the session its next bearer; the present one stays valid beside it. @returns when it expires */
export async function updateBearer(tx: Tx, id: string, bearerHash: string, seconds: number): Promise<Date> {
  const rows = await tx<{ expires_at: Date }[]>`
    UPDATE sessions SET bearers = bearers + 1, last_used_at = now(),
      previous_bearer_hash = bearer_hash, previous_bearer_expires_at = bearer_expires_at,
      bearer_hash = ${bearerHash},
      bearer_expires_at = least(now() + ${seconds}::int * interval '1 second', expires_at)
    WHERE id = ${id} RETURNING bearer_expires_at AS expires_at`;
  return (rows[0] as { expires_at: Date }).expires_at;
}
