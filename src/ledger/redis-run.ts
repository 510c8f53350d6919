import { byStore, type RedisStore } from '../platform/redis.ts';

/** Identifies the Redis process that answers. After a restart another process answers, perhaps with an older state. */
export type RedisRun = {
  readonly runId: string;
  /**
   * Changes also when the same process has taken over another's data: it was made a replica and then a master again. So `runId`
   * alone does not tell whether the data are still those that were compared.
   */
  readonly dataId: string;
  readonly uptimeSeconds: number;
  /**
   * A node of a cluster that was a replica before. Then its uptime does not say when these data were last written elsewhere, and
   * nothing can be proven from it. (A node that has restarted from a snapshot alone looks the same.)
   */
  readonly wasReplica: boolean;
};

const NO_REPLICATION = /^0*$/;

/** Asks Redis which process it is. Rejects when Redis is away. @param redis  of a cluster: one shard of it */
export async function readRedisRun(redis: Pick<RedisStore, 'command'>): Promise<RedisRun> {
  const info = String(await redis.command('info', ['server', 'replication', 'cluster']));
  const field = (name: string): string => new RegExp(`^${name}:(\\w+)`, 'm').exec(info)?.[1] ?? '';
  const runId = field('run_id');
  return {
    runId,
    dataId: `${runId} ${field('master_replid')}`,
    uptimeSeconds: Number(field('uptime_in_seconds')),
    wasReplica: field('cluster_enabled') === '1' && !NO_REPLICATION.test(field('master_replid2')),
  };
}

/**
 * The same of a whole Redis, for what is done after any restart: in a cluster the ids of all shards' nodes, and the shortest uptime.
 * A node that is away is left out. Rejects when all are.
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
