import { isRedisUnavailable, type RedisStore } from './redis.ts';
import { replicasOf } from './redis-node.ts';
import { StartRefused } from './start-refused.ts';

type Log = { warn(fields: object, message: string): void };

/**
 * Warns if a master has fewer replicas than its trips must reach. This is no reason to refuse the start: replicas come and go. A
 * gateway serves pages without them, and serves calls as soon as they are back.
 *
 * @param nodes each master once
 * @throws StartRefused when Redis does not let this user WAIT
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
      throw new StartRefused(
        `redis ${address} refuses WAIT, which REDIS_WAIT_REPLICAS needs: ${(error as Error).message}`,
      );
    });
    const replicas = replicasOf(String(await store.command('info', ['replication'])));
    if (replicas >= wanted) continue;
    log.warn(
      { node: address, replicas, wanted },
      `redis ${address} has ${replicas} replicas, but REDIS_WAIT_REPLICAS is ${wanted}: calls of its accounts get 503 until it has as many`,
    );
  }
}
