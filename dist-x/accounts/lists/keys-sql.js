import { KEY_SELECT } from '../../keys/key-fields.js';
/**
 * Keys of all accounts, newest first.
 *
 * @param before the last key of the previous page, or null for the first. It must exist
 */
export function selectKeys(tx, { accountId, role, status }, before, limit) {
    return tx `
    SELECT ${tx.text(KEY_SELECT)} FROM api_keys k JOIN accounts a ON a.id = k.account_id
    WHERE true ${accountId === null ? tx `` : tx `AND k.account_id = ${accountId}`}
      ${role === null ? tx `` : tx `AND k.role = ${role}`}
      ${status === null ? tx `` : tx `AND k.status = ${status}`}
      ${before === null ? tx `` : tx `AND (k.created_at, k.key_id) < (SELECT created_at, key_id FROM api_keys WHERE key_id = ${before})`}
    ORDER BY k.created_at DESC, k.key_id DESC LIMIT ${limit}`;
}
//# sourceMappingURL=keys-sql.js.map