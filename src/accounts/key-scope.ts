import type { KeyRecord } from '../keys/caller.ts';
import type { Sql, Tx } from '../platform/postgres.ts';

/** Maximum keys of a page: those that spent the most. As many as an account may have at a time. */
export const MAX_KEYS = 1_000;

/** Whose calls are meant: those of one key, of a key and all keys below it, or of all keys of an account. */
export type KeyScope =
  | { readonly kind: 'key'; readonly keyId: string }
  | { readonly kind: 'branch'; readonly keyId: string; readonly accountId: string }
  | { readonly kind: 'account'; readonly accountId: string };

export const onlyKey = (keyId: string): KeyScope => ({ kind: 'key', keyId });

/** Whose calls the holder of a key sees: those of the whole account or, with a child key, its own and those of its descendants. */
export const seenBy = ({ keyId, accountId, ancestors }: KeyRecord): KeyScope =>
  ancestors.length === 0 ? { kind: 'account', accountId } : { kind: 'branch', keyId, accountId };

export type SeveralKeys = Exclude<KeyScope, { readonly kind: 'key' }>;

/** A query of `api_keys` whose `key_id` are the keys of the scope. */
export const keysOf = (sql: Sql | Tx, scope: SeveralKeys) => sql`
  SELECT key_id FROM api_keys WHERE account_id = ${scope.accountId}
    ${scope.kind === 'branch' ? sql`AND (key_id = ${scope.keyId} OR ancestors @> ARRAY[${scope.keyId}]::text[])` : sql``}`;

/** The condition on `key_id` of calls. */
export const isOfKeys = (sql: Sql | Tx, scope: KeyScope) =>
  scope.kind === 'key' ? sql`key_id = ${scope.keyId}` : sql`key_id IN (${keysOf(sql, scope)})`;

/** The condition on sums by key, which have the account beside the key. */
export const isOfSums = (sql: Sql | Tx, scope: KeyScope) =>
  scope.kind === 'account' ? sql`account_id = ${scope.accountId}` : isOfKeys(sql, scope);

/** Whether the scope has this key. */
export async function hasKey(sql: Sql, scope: KeyScope, keyId: string): Promise<boolean> {
  if (scope.kind === 'key') return scope.keyId === keyId;
  const rows = await sql`SELECT FROM (${keysOf(sql, scope)}) AS keys WHERE key_id = ${keyId}`;
  return rows.length > 0;
}
