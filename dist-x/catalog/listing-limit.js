import { ApiError } from '../errors.js';
/**
 * Refuses one more listing of an account that has as many as it may, or is closed. Until the transaction ends, nobody else can add
 * one to the account.
 *
 * A removed listing counts until a day after it was listed. Otherwise an account could list and remove without end, and the rows stay
 * because usage and earnings refer to them.
 *
 * @throws ApiError `conflict`. It is no 429, because waiting does not help
 */
export async function refuseBeyondLimit(tx, accountId, maxListings) {
    const [account] = await tx `
    SELECT status FROM accounts WHERE id = ${accountId} FOR NO KEY UPDATE`;
    // The key was valid when the request came. Then it may have waited here for the account to be closed.
    if (account?.status === 'closed')
        throw new ApiError('conflict', 'This account is closed.');
    const [row] = await tx `
    SELECT count(*)::int AS listings FROM services
    WHERE provider_id = ${accountId} AND (status <> 'removed' OR created_at > now() - interval '1 day')`;
    if (row.listings < maxListings)
        return;
    throw new ApiError('conflict', `An account may have ${maxListings} listings. Remove one first; it counts until a day after it was listed.`);
}
//# sourceMappingURL=listing-limit.js.map