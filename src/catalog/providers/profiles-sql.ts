import type { Sql, Tx } from '../../platform/postgres.ts';
import type { Profile } from './profile.ts';

/** Channel on which every change of a profile is announced, in the transaction of the change. The payload is the account's id. */
export const PROFILES_CHANNEL = 'tollgate_profiles';

type Row = Profile & { readonly accountId: string };

const columns = (sql: Tx) => sql`account_id AS "accountId", display_name AS "displayName", contact, url`;

const profileOf = ({ displayName, contact, url }: Profile): Profile => ({ displayName, contact, url });

/** Up to `limit` profiles of accounts after `afterId` (null: from the first), by id. */
export async function selectProfilesPage(
  sql: Sql,
  afterId: string | null,
  limit: number,
): Promise<[string, Profile][]> {
  const rows = await sql<Row[]>`
    SELECT ${columns(sql)} FROM profiles ${afterId === null ? sql`` : sql`WHERE account_id > ${afterId}`}
    ORDER BY account_id LIMIT ${limit}`;
  return rows.map((row) => [row.accountId, profileOf(row)]);
}

/** By account; null for one without. */
export async function selectProfiles(
  sql: Sql | Tx,
  accountIds: readonly string[],
): Promise<Map<string, Profile | null>> {
  const rows = await sql<Row[]>`SELECT ${columns(sql)} FROM profiles WHERE account_id = ANY(${accountIds}::uuid[])`;
  const found = new Map<string, Profile | null>(accountIds.map((id) => [id, null]));
  for (const row of rows) found.set(row.accountId, profileOf(row));
  return found;
}

/**
 * Sets the given fields, and announces that.
 *
 * @returns the profile after the change, null if it is empty now, or undefined if the account is closed
 */
export async function updateProfile(
  tx: Tx,
  accountId: string,
  change: Partial<Profile>,
): Promise<Profile | null | undefined> {
  const { displayName, contact, url, ...rest } = change;
  // Does not compile if a profile has a new field that is not stored here.
  rest satisfies Record<string, never>;
  // Waits for an earlier closing of the account; a later one will find the row.
  const rows = await tx<{ status: string }[]>`SELECT status FROM accounts WHERE id = ${accountId} FOR KEY SHARE`;
  if (rows[0] === undefined || rows[0].status === 'closed') return undefined;
  const isGiven = (field: unknown): boolean => field !== undefined;
  const [row] = await tx<Profile[]>`
    INSERT INTO profiles AS p (account_id, display_name, contact, url)
    VALUES (${accountId}, ${displayName ?? null}, ${contact ?? null}, ${url ?? null})
    ON CONFLICT (account_id) DO UPDATE
    SET display_name = CASE WHEN ${isGiven(displayName)} THEN excluded.display_name ELSE p.display_name END,
        contact = CASE WHEN ${isGiven(contact)} THEN excluded.contact ELSE p.contact END,
        url = CASE WHEN ${isGiven(url)} THEN excluded.url ELSE p.url END
    RETURNING display_name AS "displayName", contact, url`;
  const now = profileOf(row as Profile);
  if (now.displayName === null && now.contact === null && now.url === null) {
    await deleteProfile(tx, accountId);
    return null;
  }
  await tx`SELECT pg_notify(${PROFILES_CHANNEL}, ${accountId})`;
  return now;
}

/** @returns the former profile; null if there was none */
export async function deleteProfile(tx: Tx, accountId: string): Promise<Profile | null> {
  const rows = await tx<Profile[]>`
    DELETE FROM profiles WHERE account_id = ${accountId} RETURNING display_name AS "displayName", contact, url`;
  if (rows[0] === undefined) return null;
  await tx`SELECT pg_notify(${PROFILES_CHANNEL}, ${accountId})`;
  return profileOf(rows[0]);
}
