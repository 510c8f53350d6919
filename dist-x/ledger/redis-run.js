import { byStore } from '../platform/redis.js';
const NO_REPLICATION_ID = '0'.repeat(40);
/** Asks Redis which process it is. Rejects when Redis is away. @param redis  of a cluster: one shard of it */
export async function readRedisRun(redis) {
    const info = String(await redis.command('info', ['server', 'replication', 'cluster']));
    const field = (name) => new RegExp(`^${name}:(\\w+)`, 'm').exec(info)?.[1] ?? '';
    const runId = field('run_id');
    return {
        runId,
        dataId: `${runId} ${field('master_replid')}`,
        uptimeSeconds: Number(field('uptime_in_seconds')),
        isHeir: field('cluster_enabled') === '1' || field('master_replid2') !== NO_REPLICATION_ID,
    };
}
/**
 * The same of a whole Redis, for what is done after any restart: in a cluster the ids of all shards' nodes, and the shortest uptime.
 * A node that is away is left out. Rejects when all are.
 */
export async function readAllRuns(redis, shards) {
    const parts = byStore(redis, Array.from({ length: shards }, (_, shard) => shard)).keys();
    const results = await Promise.allSettled(Array.from(parts, (part) => readRedisRun(part)));
    const runs = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    if (runs.length === 0)
        throw results[0].reason;
    return {
        dataId: Array.from(new Set(runs.map(({ dataId }) => dataId))).join(', '),
        uptimeSeconds: Math.min(...runs.map(({ uptimeSeconds }) => uptimeSeconds)),
    };
}
/** Redis's own clock in milliseconds. The scripts use the same clock. @param redis  of a cluster: one shard of it */
export async function readRedisTime(redis) {
    const [seconds, micros] = (await redis.command('time', []));
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}
//# sourceMappingURL=redis-run.js.map