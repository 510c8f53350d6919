import { Admission, type StateLoader } from '../admission/admission.ts';
import { batchScript } from '../admission/scripts.ts';
import { type CallAdmission, ShardedAdmission } from '../admission/sharded-admission.ts';
import type { Config } from '../config/config.ts';
import { CANCELLED } from '../ledger/usage-event.ts';
import type { Log } from '../observability/log.ts';
import { ClusterBatches } from '../platform/cluster/cluster-batches.ts';
import { warnOfMissingReplicas } from '../platform/replicas.ts';
import { ReplicaDemand, tripConnection } from '../platform/replicated-connection.ts';
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
  /** Null if no replica is waited for. */
  readonly replicaDemand: ReplicaDemand | null;
  closeBatches(): Promise<void>;
};

/** Opens the connections for batches, and puts an admission on top: one for a single Redis, in a cluster one for each shard. */
export async function openAdmission(options: Options): Promise<Opened> {
  const { config, stores, instance, loader, log } = options;
  const { redis, cluster, keys, installation } = stores;
  const common = { keys, instance, loader, cancelSettlement: CANCELLED, log };
  const connection = {
    url: config.redisUrl,
    name: 'tollgate-batches',
    script: batchScript,
    commandTimeoutMs: config.redisCommandTimeoutMs,
  };
  const { redisWaitReplicas, redisCommandTimeoutMs } = config;
  const demand = redisWaitReplicas === 0 ? null : new ReplicaDemand(redisWaitReplicas, redisCommandTimeoutMs);
  if (demand !== null) await warnOfMissingReplicas(cluster?.onePerNode() ?? [redis], demand.replicas, log);
  if (cluster !== null) {
    const batches = new ClusterBatches(cluster, connection, log, demand);
    await batches.connect();
    const shards = batches.shards.map((shard, at) => new Admission({ ...common, batches: shard, shards: [at] }));
    const admission = new ShardedAdmission(keys, shards);
    return { admission, replicaDemand: demand, closeBatches: () => batches.close() };
  }
  const batches = tripConnection({ ...connection, installation }, log, demand);
  // `redis` has found that the Redis behind it is another installation's. The connection for batches compares the
  // installation's id only when it connects, so it has to connect again to find that out.
  redis.onForeign((error) => batches.reconnect(error));
  await batches.connect();
  const admission = new Admission({ ...common, batches });
  return { admission, replicaDemand: demand, closeBatches: () => batches.close() };
}
