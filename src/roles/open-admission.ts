import { Admission, type StateLoader } from '../admission/admission.ts';
import { batchScript } from '../admission/scripts.ts';
import { type CallAdmission, ShardedAdmission } from '../admission/sharded-admission.ts';
import type { Config } from '../config/config.ts';
import { CANCELLED } from '../ledger/usage-event.ts';
import type { Log } from '../observability/log.ts';
import { TripsByNode } from '../observability/node-trips.ts';
import { ClusterBatches } from '../platform/cluster/cluster-batches.ts';
import type { ShardClient } from '../platform/cluster/shard-client.ts';
import { addressOf } from '../platform/redis-node.ts';
import { warnOfMissingReplicas } from '../platform/replicas.ts';
import { ReplicaDemand, tripConnection } from '../platform/replicated-connection.ts';
import type { GatewayNodes } from './redis-node-metrics.ts';
import { redisNodes } from './redis-nodes.ts';
import type { Stores } from './stores.ts';

type Options = {
  readonly config: Pick<Config, 'redisUrl' | 'redisCommandTimeoutMs' | 'redisWaitReplicas'>;
  readonly stores: Pick<Stores, 'redis' | 'cluster' | 'keys' | 'installation'>;
  readonly instance: string;
  readonly loader: StateLoader;
  readonly log: Log;
};

type Opened = {
  readonly admission: CallAdmission;
  readonly nodes: GatewayNodes;
  /** Null if trips do not wait for replicas. */
  readonly replicaDemand: ReplicaDemand | null;
  closeBatches(): Promise<void>;
};

/**
 * Opens the connections for batches, and makes the admission that uses them: one for a single Redis, or in a cluster one for each
 * shard.
 */
export async function openAdmission(options: Options): Promise<Opened> {
  const { config, stores, instance, loader, log } = options;
  const { redis, cluster, keys, installation } = stores;
  const common = { keys, instance, loader, cancelSettlement: CANCELLED, log };
  const trips = new TripsByNode();
  const nodesReady = (isReady: (address: string) => boolean) => () =>
    redisNodes(stores, config.redisUrl).map((node) => ({ ...node, ready: node.ready && isReady(node.address) }));
  const connection = {
    url: config.redisUrl,
    name: 'tollgate-batches',
    script: batchScript,
    commandTimeoutMs: config.redisCommandTimeoutMs,
  };
  const { redisWaitReplicas, redisCommandTimeoutMs } = config;
  const demand = redisWaitReplicas === 0 ? null : new ReplicaDemand(redisWaitReplicas, redisCommandTimeoutMs);
  if (demand !== null) await warnOfMissingReplicas(redisNodes(stores, config.redisUrl), demand.replicas, log);
  if (cluster !== null) {
    const meterOf = (address: string) => trips.of(address);
    const batches = new ClusterBatches(cluster, { ...connection, meterOf }, log, demand);
    await batches.connect();
    const shards = batches.shards.map(
      (shard, at) => new Admission({ ...common, batches: shard, shards: [at], log: logOfShard(log, at, shard.client) }),
    );
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

/** Its log lines name the shard and its node. */
const logOfShard = (log: Log, shard: number, client: ShardClient): Pick<Log, 'warn'> => ({
  warn: (fields, message) => log.warn({ shard, node: client.address, ...fields }, message),
});
