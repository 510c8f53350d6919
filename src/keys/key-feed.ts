import { isPostgresUnavailable, type Sql } from '../platform/postgres.ts';
import type { KeyCache } from './key-cache.ts';
import { ACCOUNT_PREFIX, KEY_CHANGES } from './keys-sql.ts';

/** Applies one message of the `tollgate_keys` channel: a key id, or `account:<id>` for all keys of an account. */
export function applyKeyChange(cache: KeyCache, payload: string): void {
  if (payload.startsWith(ACCOUNT_PREFIX)) cache.invalidateAccount(payload.slice(ACCOUNT_PREFIX.length));
  else cache.invalidate(payload);
}

/**
 * Keeps the cache in step with Postgres: forgets keys as they change, and marks everything stale whenever messages may
 * have been missed, that is each time the LISTEN connection is made anew (`PostgresListener`). The
 * periodic round covers a connection that is dead without saying so.
 *
 * Resolves when it listens, or when Postgres turned out to be away: then it begins to listen as soon as it is back.
 *
 * @returns ends it
 */
export async function keepKeyCacheFresh(
  sql: Sql,
  cache: KeyCache,
  { revalidateMs = 300_000 }: { readonly revalidateMs?: number } = {},
): Promise<() => void> {
  let unlisten = (): void => {};
  try {
    unlisten = await sql.listen({
      channel: KEY_CHANGES,
      onMessage: (payload) => applyKeyChange(cache, payload),
      onListening: () => cache.markAllStale(),
    });
  } catch (error) {
    if (!isPostgresUnavailable(error)) throw error;
  }
  const timer = setInterval(() => cache.markAllStale(), revalidateMs);
  timer.unref();
  return () => {
    clearInterval(timer);
    unlisten();
  };
}
