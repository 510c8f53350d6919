import { byStore, type RedisStore } from '../platform/redis.ts';

/** Identifies the Redis process that answers, and its data. After a restart another process answers, perhaps with an older state. */
export type RedisRun = {
  readonly runId: string;
  /**
   * The run id and the replication id. The latter changes when the same process may have taken over another's data: it was a
   * replica, and is a master again. It also changes when a first replica follows, and an hour after the last one has left
   * (`repl-backlog-ttl`). The data are then compared once more than necessary.
   */
  readonly dataId: string;
  readonly uptimeSeconds: number;
};

/** Asks Redis which process it is. Rejects when Redis is away. @param redis  of a cluster: one shard of it */
export async function readRedisRun(redis: Pick<RedisStore, 'command'>): Promise<RedisRun> {
  const info = String(await redis.command('info', ['server', 'replication']));
  const field = (name: string): string => new RegExp(`^${name}:(\\w+)`, 'm').exec(info)?.[1] ?? '';
  const runId = field('run_id');
  return {
    runId,
    dataId: `${runId} ${field('master_replid')}`,
    uptimeSeconds: Number(field('uptime_in_seconds')),
  };
}

/**
 * The same for a whole Redis, used by work that follows any restart: in a cluster the ids of all shards' nodes, and the shortest
 * uptime. A node that is away is left out. Rejects when all are.
 */
export async function readAllRuns(
  redis: RedisStore,
  shards: number,
): Promise<Pick<RedisRun, 'dataId' | 'uptimeSeconds'>> {
  const parts = byStore(
    redis,
    Array.from({ length: shards }, (_, shard) => shard),
  ).keys();
  const results = await Promise.allSettled(Array.from(parts, (part) => readRedisRun(part)));
  const runs = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  if (runs.length === 0) throw (results[0] as PromiseRejectedResult).reason;
  return {
    dataId: Array.from(new Set(runs.map(({ dataId }) => dataId))).join(', '),
    uptimeSeconds: Math.min(...runs.map(({ uptimeSeconds }) => uptimeSeconds)),
  };
}

/** Redis's own clock in milliseconds. The scripts use the same clock. @param redis  of a cluster: one shard of it */
export async function readRedisTime(redis: Pick<RedisStore, 'command'>): Promise<number> {
  const [seconds, micros] = (await redis.command('time', [])) as [string, string];
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}
