import { isPostgresUnavailable, type Sql, type Subscription } from '../platform/postgres.ts';
import type { KeyCache } from './key-cache.ts';
import { ACCOUNT_PREFIX, KEY_CHANGES } from './keys-sql.ts';

/** Applies one message of the `tollgate_keys` channel: the id of a key, or `account:<id>` for all keys of an account. */
export function applyKeyChange(cache: KeyCache, payload: string): void {
  if (payload.startsWith(ACCOUNT_PREFIX)) cache.invalidateAccount(payload.slice(ACCOUNT_PREFIX.length));
  else cache.invalidate(payload);
}

/**
 * Keeps the cache up to date with Postgres. A message removes a changed key. Each time `PostgresListener` has made a new LISTEN
 * connection, all records are marked stale, because messages may have been missed. A timer marks them too, every `revalidateMs`, in
 * case the connection has died without an error.
 *
 * Resolves once it listens, or if Postgres is away. The listener then begins to listen as soon as Postgres is back.
 *
 * @param options.also another channel for the same connection
 * @returns a function that stops it
 */
export async function keepKeyCacheFresh(
  sql: Sql,
  cache: KeyCache,
  {
    revalidateMs = 300_000,
    also,
  }: { readonly revalidateMs?: number; readonly also?: NonNullable<Subscription['also']> } = {},
): Promise<() => void> {
  let unlisten = (): void => {};
  try {
    unlisten = await sql.listen({
      channel: KEY_CHANGES,
      onMessage: (payload) => applyKeyChange(cache, payload),
      onListening: () => cache.markAllStale(),
      ...(also === undefined ? {} : { also }),
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
