import { isRedisUnavailable, type RedisStore } from './redis.ts';

type Log = { warn(fields: object, message: string): void };

/**
 * Warns if a master has fewer replicas than its trips must reach. It is no reason to refuse the start: replicas come and go, and a
 * gateway serves pages without them, and calls as soon as they are back.
 *
 * @param nodes each master once
 * @throws when Redis does not let this user WAIT
 */
export async function warnOfMissingReplicas(
  nodes: readonly { readonly address: string; readonly store: Pick<RedisStore, 'command'> }[],
  wanted: number,
  log: Log,
): Promise<void> {
  for (const { address, store } of nodes) {
    // Zero replicas: it replies at once.
    await store.command('wait', ['0', '1']).catch((error: unknown) => {
      if (isRedisUnavailable(error)) throw error;
      throw new Error(`redis ${address} refuses WAIT, which REDIS_WAIT_REPLICAS needs: ${(error as Error).message}`);
    });
    const info = String(await store.command('info', ['replication']));
    const online = info.match(/^slave\d+:.*state=online/gm)?.length ?? 0;
    if (online >= wanted) continue;
    log.warn(
      { node: address, replicas: online, wanted },
      `redis ${address} has ${online} replicas, but REDIS_WAIT_REPLICAS is ${wanted}: calls of its accounts get 503 until it has as many`,
    );
  }
}
