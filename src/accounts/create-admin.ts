import type { CreatedKey } from '../keys/key-fields.ts';
import { openAccount } from '../keys/keys.ts';
import type { Sql } from '../platform/postgres.ts';
import { adminAct, recordAct } from './audit.ts';

/**
 * Opens an account with an admin key, for an operator who has access to the database but no admin key any more. Running gateways
 * need not be told: they look a key up when it is first used.
 */
export function createAdmin(sql: Sql, label: string): Promise<CreatedKey> {
  return sql.begin(async (tx) => {
    const created = await openAccount(tx, { ownerId: label, role: 'admin', label: null });
    await recordAct(tx, adminAct({ actor: 'create-admin', actorAccountId: null, requestId: null }, created.account_id));
    return created;
  });
}
