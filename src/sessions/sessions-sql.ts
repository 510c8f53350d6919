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
/** A session ends by itself, with its key, or with the secret that signed in. */
const IS_LIVE = `s.expires_at > now() AND k.status = 'active' AND a.status <> 'closed' AND ${SECRET_IS_VALID}
  AND NOT EXISTS (SELECT FROM api_keys above WHERE above.key_id = ANY(k.ancestors || k.key_id) AND above.expires_at <= now())`;

/** Maximum sessions that are listed of all browsers together. */
const MAX_LISTED = 200;

/** The live sessions of these browsers, the last used first. */
export async function selectSessions(sql: Sql | Tx, browserHashes: readonly string[]): Promise<SessionRow[]> {
  return sql<SessionRow[]>`
    SELECT ${sql.text(COLUMNS)} FROM ${sql.text(FROM)}
    WHERE s.browser_hash = ANY(${browserHashes}::text[]) AND ${sql.text(IS_LIVE)}
    ORDER BY s.last_used_at DESC, s.id DESC`;
}

/**
 * The keys whose sessions this browser may see and end, wherever they are: those of the accounts that are signed in here, with no
 * higher role; for a child key itself and the keys below it.
 */
const reach = (tx: Sql | Tx, browserHash: string) => tx`
  SELECT other.key_id FROM ${tx.text(FROM)} JOIN api_keys other ON other.account_id = k.account_id
  WHERE s.browser_hash = ${browserHash} AND ${tx.text(IS_LIVE)}
    AND (k.ancestors = '{}' OR other.key_id = k.key_id OR other.ancestors @> ARRAY[k.key_id])
    AND array_position(${ROLE_ORDER}::text[], other.role) <= array_position(${ROLE_ORDER}::text[], k.role)`;
const ROLE_ORDER = ['buyer', 'provider', 'admin'];

/** The live sessions that the browser may end, in whichever browser they are, the last used first; 200 at most. */
export async function selectSessionsInReach(sql: Sql, browserHash: string): Promise<SessionRow[]> {
  return sql<SessionRow[]>`
    SELECT ${sql.text(COLUMNS)} FROM ${sql.text(FROM)}
    WHERE s.key_id IN (${reach(sql, browserHash)}) AND ${sql.text(IS_LIVE)}
    ORDER BY s.last_used_at DESC, s.id DESC LIMIT ${MAX_LISTED}`;
}

type NewSession = {
  readonly id: string;
  readonly keyId: string;
  /** Of the secret that signs in. */
  readonly secretHash: string;
  readonly browserHash: string;
  readonly seconds: number;
};

/** @returns whether the key is active and the secret valid */
export async function insertSession(tx: Tx, session: NewSession): Promise<boolean> {
  const { id, keyId, secretHash, browserHash, seconds } = session;
  const { count } = await tx`
    WITH s AS (SELECT ${secretHash}::text AS secret_hash)
    INSERT INTO sessions (id, key_id, browser_hash, secret_hash, expires_at)
    SELECT ${id}, k.key_id, ${browserHash}, s.secret_hash, now() + ${seconds}::int * interval '1 second'
    FROM s, api_keys k JOIN accounts a ON a.id = k.account_id
    WHERE k.key_id = ${keyId} AND k.status = 'active' AND a.status <> 'closed' AND ${tx.text(SECRET_IS_VALID)}`;
  return count === 1;
}

/** Gives the browser's sessions a new cookie, except that of the key, which another one follows. @returns the keys that ended */
export async function moveSessions(tx: Tx, from: string, to: string, except: string): Promise<string[]> {
  const ended = await deleted(tx, tx`browser_hash = ${from} AND key_id = ${except}`);
  await tx`UPDATE sessions SET browser_hash = ${to} WHERE browser_hash = ${from}`;
  return ended;
}

/** Ends what a browser, or a key, has too many of: those that were used least recently. @returns their keys */
export async function deleteBeyond(
  tx: Tx,
  of: { browserHash: string } | { keyId: string },
  max: number,
): Promise<string[]> {
  const which = 'keyId' in of ? tx`key_id = ${of.keyId}` : tx`browser_hash = ${of.browserHash}`;
  return deleted(
    tx,
    tx`id IN (SELECT id FROM sessions WHERE ${which} ORDER BY last_used_at DESC, id DESC OFFSET ${max})`,
  );
}

/** Removes what is left of sessions that ended by themselves, with their key, or with the secret that signed in. @returns how many */
export async function deleteEnded(sql: Sql, max: number): Promise<number> {
  const { count } = await sql`
    DELETE FROM sessions WHERE id IN (
      SELECT s.id FROM ${sql.text(FROM)} WHERE (${sql.text(IS_LIVE)}) IS NOT TRUE LIMIT ${max} FOR UPDATE OF s SKIP LOCKED)`;
  return count;
}

export const deleteOfBrowser = (tx: Tx, browserHash: string): Promise<string[]> =>
  deleted(tx, tx`browser_hash = ${browserHash}`);

/** The sessions that the browser may end. @param id  only this one; null: all */
export const deleteInReach = (tx: Tx, browserHash: string, id: string | null): Promise<string[]> =>
  deleted(tx, tx`key_id IN (${reach(tx, browserHash)}) ${id === null ? tx`` : tx`AND id = ${id}`}`);

/** Ends sessions, and tells every gateway to forget the bearers of their keys, as soon as the transaction commits. */
async function deleted(tx: Tx, which: ReturnType<Tx>): Promise<string[]> {
  const rows = await tx<{ key_id: string }[]>`
    WITH ended AS (DELETE FROM sessions WHERE ${which} RETURNING key_id)
    SELECT key_id, pg_notify(${KEY_CHANGES}, key_id) IS NULL AS told FROM ended`;
  return rows.map(({ key_id: keyId }) => keyId);
}

type BearerRow = SessionRow & {
  readonly bearers: number;
  readonly bearer_hash: string | null;
  readonly bearer_expires_at: Date | null;
  readonly is_fresh: boolean | null;
};

/** A live session of these browsers, locked: the one with the id, or the last used. Null if there is none. */
export async function lockSession(
  tx: Tx,
  browserHashes: readonly string[],
  id: string | null,
  freshSeconds: number,
): Promise<BearerRow | null> {
  const rows = await tx<BearerRow[]>`
    SELECT ${tx.text(COLUMNS)}, s.bearers, s.bearer_hash, s.bearer_expires_at,
           s.bearer_expires_at > now() + ${freshSeconds}::int * interval '1 second' AS is_fresh
    FROM ${tx.text(FROM)}
    WHERE s.browser_hash = ANY(${browserHashes}::text[]) AND ${tx.text(IS_LIVE)} ${id === null ? tx`` : tx`AND s.id = ${id}`}
    ORDER BY s.last_used_at DESC, s.id DESC LIMIT 1 FOR UPDATE OF s`;
  return rows[0] ?? null;
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
