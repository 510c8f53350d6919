import type { Role } from '../../keys/caller.ts';
import { KEY_SELECT, type KeyRow } from '../../keys/key-fields.ts';
import type { Tx } from '../../platform/postgres.ts';

type KeyFilter = {
  readonly accountId: string | null;
  readonly role: Role | null;
  readonly status: 'active' | 'revoked' | null;
};

/**
 * Keys of all accounts, newest first.
 *
 * @param before the last key of the previous page, or null for the first. It must exist
 */
export function selectKeys(
  tx: Tx,
  { accountId, role, status }: KeyFilter,
  before: string | null,
  limit: number,
): Promise<KeyRow[]> {
  return tx<KeyRow[]>`
    SELECT ${tx.text(KEY_SELECT)} FROM api_keys k JOIN accounts a ON a.id = k.account_id
    WHERE true ${accountId === null ? tx`` : tx`AND k.account_id = ${accountId}`}
      ${role === null ? tx`` : tx`AND k.role = ${role}`}
      ${status === null ? tx`` : tx`AND k.status = ${status}`}
      ${before === null ? tx`` : tx`AND (k.created_at, k.key_id) < (SELECT created_at, key_id FROM api_keys WHERE key_id = ${before})`}
    ORDER BY k.created_at DESC, k.key_id DESC LIMIT ${limit}`;
}
