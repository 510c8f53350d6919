import { openAccount } from '../keys/keys.js';
import { adminAct, recordAct } from './audit.js';
/**
 * Opens an account with an admin key, for an operator who has the database's credentials but no admin key any more. Running
 * gateways need not be told: they look a key up when it first comes.
 */
export function createAdmin(sql, label) {
    return sql.begin(async (tx) => {
        const created = await openAccount(tx, label, 'admin');
        await recordAct(tx, adminAct({ actor: 'create-admin', actorAccountId: null, requestId: null }, created.account_id));
        return created;
    });
}
//# sourceMappingURL=create-admin.js.map