import { ApiError } from '../errors.ts';
import type { Tx } from '../platform/postgres.ts';

/**
 * Refuses another listing for an account that is closed or has the maximum number. Until the transaction ends, nobody else can add
 * one to the account.
 *
 * A removed listing counts until a day after it was listed. Otherwise an account could list and remove endlessly, and the rows
 * would stay, because usage and earnings refer to them.
 *
 * @throws ApiError `conflict`. It is not a 429, because waiting does not help
 */
export async function refuseBeyondLimit(tx: Tx, accountId: string, maxListings: number): Promise<void> {
  const [account] = await tx<{ status: string }[]>`
    SELECT status FROM accounts WHERE id = ${accountId} FOR NO KEY UPDATE`;
  // The key was valid when the request arrived. Since then the request may have waited here while the account was closed.
  if (account?.status === 'closed') throw new ApiError('conflict', 'This account is closed.');
  const [row] = await tx<{ listings: number }[]>`
    SELECT count(*)::int AS listings FROM services
    WHERE provider_id = ${accountId} AND (status <> 'removed' OR created_at > now() - interval '1 day')`;
  if ((row as { listings: number }).listings < maxListings) return;
  throw new ApiError(
    'conflict',
    `An account may have at most ${maxListings} listings. Remove one first. A removed listing still counts until a day after it was listed.`,
  );
}
