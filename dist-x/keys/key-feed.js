import { isPostgresUnavailable } from '../platform/postgres.js';
import { ACCOUNT_PREFIX, KEY_CHANGES } from './keys-sql.js';
/** Applies one message of the `tollgate_keys` channel: the id of a key, or `account:<id>` for all keys of an account. */
export function applyKeyChange(cache, payload) {
    if (payload.startsWith(ACCOUNT_PREFIX))
        cache.invalidateAccount(payload.slice(ACCOUNT_PREFIX.length));
    else
        cache.invalidate(payload);
}
/**
 * Keeps the cache up to date with Postgres. A message removes a changed key. Each time `PostgresListener` has made a new LISTEN
 * connection, all records are marked stale, because messages may have been missed. A timer marks them too, every `revalidateMs`,
 * in case the connection is dead without an error.
 *
 * Resolves once it listens, or when Postgres is away; the listener then begins to listen as soon as Postgres is back.
 *
 * @param options.also  another channel, for which the same connection listens
 * @returns a function that stops it
 */
export async function keepKeyCacheFresh(sql, cache, { revalidateMs = 300_000, also, } = {}) {
    let unlisten = () => { };
    try {
        unlisten = await sql.listen({
            channel: KEY_CHANGES,
            onMessage: (payload) => applyKeyChange(cache, payload),
            onListening: () => cache.markAllStale(),
            ...(also === undefined ? {} : { also }),
        });
    }
    catch (error) {
        if (!isPostgresUnavailable(error))
            throw error;
    }
    const timer = setInterval(() => cache.markAllStale(), revalidateMs);
    timer.unref();
    return () => {
        clearInterval(timer);
        unlisten();
    };
}
//# sourceMappingURL=key-feed.js.map