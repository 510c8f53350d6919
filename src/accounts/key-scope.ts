import type { KeyRecord } from '../keys/caller.ts';
import type { Sql, Tx } from '../platform/postgres.ts';

/** Maximum keys on a page: those that spent the most. It equals the number of keys that an account may have. */
export const MAX_KEYS = 1_000;

/** Whose calls are selected: those of one key, of a key and all keys below it, or of all keys of an account. */
export type KeyScope =
  | { readonly kind: 'key'; readonly keyId: string }
  | { readonly kind: 'branch'; readonly keyId: string; readonly accountId: string }
  | { readonly kind: 'account'; readonly accountId: string };

export const onlyKey = (keyId: string): KeyScope => ({ kind: 'key', keyId });

/**
 * Whose calls the holder of a key sees. With a child key these are its own calls and those of its descendants, otherwise the calls
 * of the whole account.
 */
export const seenBy = ({ keyId, accountId, ancestors }: KeyRecord): KeyScope =>
  ancestors.length === 0 ? { kind: 'account', accountId } : { kind: 'branch', keyId, accountId };

export type SeveralKeys = Exclude<KeyScope, { readonly kind: 'key' }>;

/** A query that selects the `key_id` of each key in the scope from `api_keys`. */
export const keysOf = (sql: Sql | Tx, scope: SeveralKeys) => sql`
  SELECT key_id FROM api_keys WHERE account_id = ${scope.accountId}
    ${scope.kind === 'branch' ? sql`AND (key_id = ${scope.keyId} OR ancestors @> ARRAY[${scope.keyId}]::text[])` : sql``}`;

/** The condition on `key_id` of calls. */
export const isOfKeys = (sql: Sql | Tx, scope: KeyScope) =>
  scope.kind === 'key' ? sql`key_id = ${scope.keyId}` : sql`key_id IN (${keysOf(sql, scope)})`;

/** The condition on rows of sums by key, which also have the account. */
export const isOfSums = (sql: Sql | Tx, scope: KeyScope) =>
  scope.kind === 'account' ? sql`account_id = ${scope.accountId}` : isOfKeys(sql, scope);

/** Whether the scope has this key. */
export async function hasKey(sql: Sql, scope: KeyScope, keyId: string): Promise<boolean> {
  if (scope.kind === 'key') return scope.keyId === keyId;
  const rows = await sql`SELECT FROM (${keysOf(sql, scope)}) AS keys WHERE key_id = ${keyId}`;
  return rows.length > 0;
}
