import { isPostgresUnavailable, type Sql } from '../platform/postgres.ts';
import type { KeyCache } from './key-cache.ts';
import { ACCOUNT_PREFIX, KEY_CHANGES } from './keys-sql.ts';

/** Applies one message of the `tollgate_keys` channel: the id of a key, or `account:<id>` for all keys of an account. */
export function applyKeyChange(cache: KeyCache, payload: string): void {
  if (payload.startsWith(ACCOUNT_PREFIX)) cache.invalidateAccount(payload.slice(ACCOUNT_PREFIX.length));
  else cache.invalidate(payload);
}

/**
 * Keeps the cache up to date with Postgres. A message removes a changed key. Each time `sql` has made a new LISTEN connection
 * (it reconnects by itself), all records are marked stale, because messages may have been missed. A timer does the same
 * every `revalidateMs`, in case a connection is dead without an error.
 *
 * Resolves once it listens, or when Postgres is away; `sql` then begins to listen as soon as Postgres is back.
 *
 * @returns a function that stops it
 */
export async function keepKeyCacheFresh(
  sql: Sql,
  cache: KeyCache,
  { revalidateMs = 300_000 }: { readonly revalidateMs?: number } = {},
): Promise<() => Promise<void>> {
  let unlisten = async (): Promise<void> => {};
  try {
    const listening = await sql.listen(
      KEY_CHANGES,
      (payload) => applyKeyChange(cache, payload),
      () => cache.markAllStale(),
    );
    unlisten = listening.unlisten;
  } catch (error) {
    if (!isPostgresUnavailable(error)) throw error;
  }
  const timer = setInterval(() => cache.markAllStale(), revalidateMs);
  timer.unref();
  return async () => {
    clearInterval(timer);
    // When the connection is gone, there is no subscription left to end.
    await unlisten().catch(() => {});
  };
}
