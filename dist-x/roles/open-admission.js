import { Admission } from '../admission/admission.js';
import { batchScript } from '../admission/scripts.js';
import { ShardedAdmission } from '../admission/sharded-admission.js';
import { CANCELLED } from '../ledger/usage-event.js';
import { TripsByNode } from '../observability/node-trips.js';
import { ClusterBatches } from '../platform/cluster/cluster-batches.js';
import { addressOf } from '../platform/redis-node.js';
import { warnOfMissingReplicas } from '../platform/replicas.js';
import { ReplicaDemand, tripConnection } from '../platform/replicated-connection.js';
import { redisNodes } from './redis-nodes.js';
/** Opens the connections for batches, and puts an admission on top: one for a single Redis, in a cluster one for each shard. */
export async function openAdmission(options) {
    const { config, stores, instance, loader, log } = options;
    const { redis, cluster, keys, installation } = stores;
    const common = { keys, instance, loader, cancelSettlement: CANCELLED, log };
    const trips = new TripsByNode();
    const nodesReady = (isReady) => () => redisNodes(stores, config.redisUrl).map((node) => ({ ...node, ready: node.ready && isReady(node.address) }));
    const connection = {
        url: config.redisUrl,
        name: 'tollgate-batches',
        script: batchScript,
        commandTimeoutMs: config.redisCommandTimeoutMs,
    };
    const { redisWaitReplicas, redisCommandTimeoutMs } = config;
    const demand = redisWaitReplicas === 0 ? null : new ReplicaDemand(redisWaitReplicas, redisCommandTimeoutMs);
    if (demand !== null)
        await warnOfMissingReplicas(redisNodes(stores, config.redisUrl), demand.replicas, log);
    if (cluster !== null) {
        const meterOf = (address) => trips.of(address);
        const batches = new ClusterBatches(cluster, { ...connection, meterOf }, log, demand);
        await batches.connect();
        const shards = batches.shards.map((shard, at) => new Admission({ ...common, batches: shard, shards: [at], log: logOfShard(log, at, shard.client) }));
        return {
            admission: new ShardedAdmission(keys, shards),
            nodes: { nodes: nodesReady((address) => batches.isReady(address)), moves: () => cluster.moves, trips },
            replicaDemand: demand,
            closeBatches: () => batches.close(),
        };
    }
    const meter = trips.of(addressOf(config.redisUrl));
    const batches = tripConnection({ ...connection, installation, meter }, log, demand);
    // `redis` has found that the Redis behind it is another installation's. The connection for batches compares the
    // installation's id only when it connects, so it has to connect again to find that out.
    redis.onForeign((error) => batches.reconnect(error));
    await batches.connect();
    return {
        admission: new Admission({ ...common, batches }),
        nodes: { nodes: nodesReady(() => batches.ready), moves: () => 0, trips },
        replicaDemand: demand,
        closeBatches: () => batches.close(),
    };
}
/** Its lines say whose they are, and which node has the shard. */
const logOfShard = (log, shard, client) => ({
    warn: (fields, message) => log.warn({ shard, node: client.address, ...fields }, message),
});
//# sourceMappingURL=open-admission.js.map