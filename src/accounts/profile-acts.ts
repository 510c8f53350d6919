import type { Profile } from '../catalog/providers/profile.ts';
import { deleteProfile } from '../catalog/providers/profiles-sql.ts';
import type { Sql } from '../platform/postgres.ts';
import { type Actor, recordAct } from './audit.ts';

/** The act of an operator who removes a provider's profile. Its record keeps the profile until the account is closed. */
export const PROFILE_CLEARED = 'account.clear_profile';

/** @returns the label of the account, or null if there is no such account. An account without a profile is not changed */
export function clearProfile(sql: Sql, accountId: string, by: Actor): Promise<string | null> {
  return sql.begin(async (tx) => {
    // Keeps out a concurrent closing of the account, which erases the records of such acts.
    const rows = await tx<{ ownerId: string }[]>`
      SELECT owner_id AS "ownerId" FROM accounts WHERE id = ${accountId} FOR KEY SHARE`;
    const before = await deleteProfile(tx, accountId);
    if (before !== null) {
      const subject = { subjectType: 'account', subjectId: accountId } as const;
      await recordAct(tx, { ...by, action: PROFILE_CLEARED, ...subject, before: profileJson(before), after: null });
    }
    return rows[0]?.ownerId ?? null;
  });
}

/** As the API shows it. */
export const profileJson = (profile: Profile | null) => ({
  display_name: profile?.displayName ?? null,
  contact: profile?.contact ?? null,
  url: profile?.url ?? null,
});
