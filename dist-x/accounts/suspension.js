import { announceListingsOf } from '../catalog/sql.js';
import { notPublishedError } from '../keys/keys.js';
import { lockKeyStates, updateAccountStatus } from '../keys/keys-sql.js';
import { recordAct } from './audit.js';
/**
 * Suspends and resumes accounts, in the way that keys are revoked. Postgres commits the change and tells gateways to forget the
 * account's keys. Then the change is written to Redis: after that no gateway admits a call of a suspended account. Further
 * messages, one per listing, make all catalogs read the account's listings again.
 */
export class Suspension {
    #options;
    constructor(options) {
        this.#options = options;
    }
    /**
     * Sets the status, unless the account is closed, and records who asked for it. Calls under way go on. If writing to Redis failed, repeat the call: with the same status it only writes to
     * Redis again.
     *
     * @returns the account as it is now (a closed one stays closed); null when there is no such account
     * @throws ApiError `unavailable` when the change is stored in Postgres but could not be written to Redis
     */
    async set(accountId, status, by) {
        const { sql, cache } = this.#options;
        const account = await sql.begin(async (tx) => {
            const found = await updateAccountStatus(tx, accountId, status);
            if (found === null || found.before === status || found.before === 'closed')
                return found;
            await announceListingsOf(tx, accountId);
            await recordAct(tx, suspensionAct(accountId, found.before, status, by));
            return found;
        });
        if (account === null)
            return null;
        if (account.before === 'closed')
            return { accountId, ownerId: account.ownerId, status: 'closed' };
        cache.invalidateAccount(accountId);
        await this.#publish(accountId);
        return { accountId, ownerId: account.ownerId, status };
    }
    /** Writes the keys' states to Redis with the account locked. Otherwise the older of two changes could arrive there last. */
    async #publish(accountId) {
        const { sql, state } = this.#options;
        await sql.begin(async (tx) => {
            const keys = await lockKeyStates(tx, accountId);
            try {
                // At most MAX_ACTIVE_KEYS_PER_ACCOUNT keys, so they are written all at once.
                await Promise.all(keys.map(({ keyId, limit, status }) => state.put(keyId, accountId, { limit, status })));
            }
            catch (cause) {
                throw notPublishedError(cause);
            }
        });
    }
}
function suspensionAct(accountId, before, after, by) {
    const action = after === 'suspended' ? 'account.suspend' : 'account.resume';
    const subject = { subjectType: 'account', subjectId: accountId };
    return { ...by, action, ...subject, before: { status: before }, after: { status: after } };
}
//# sourceMappingURL=suspension.js.map