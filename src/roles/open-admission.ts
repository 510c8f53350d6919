import { Admission, type StateLoader } from '../admission/admission.ts';
import { batchScript } from '../admission/scripts.ts';
import { type CallAdmission, ShardedAdmission } from '../admission/sharded-admission.ts';
import type { Config } from '../config/config.ts';
import { CANCELLED } from '../ledger/usage-event.ts';
import type { Log } from '../observability/log.ts';
import { ClusterBatches } from '../platform/cluster/cluster-batches.ts';
import { ScriptConnection } from '../platform/script-connection.ts';
import type { Stores } from './stores.ts';

type Options = {
  readonly config: Pick<Config, 'redisUrl' | 'redisCommandTimeoutMs'>;
  readonly stores: Pick<Stores, 'redis' | 'cluster' | 'keys' | 'installation'>;
  readonly instance: string;
  readonly loader: StateLoader;
  readonly log: Log;
};

type Opened = { readonly admission: CallAdmission; closeBatches(): Promise<void> };

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
  if (cluster !== null) {
    const batches = new ClusterBatches(cluster, connection, log);
    await batches.connect();
    const shards = batches.shards.map((shard, at) => new Admission({ ...common, batches: shard, shards: [at] }));
    return { admission: new ShardedAdmission(keys, shards), closeBatches: () => batches.close() };
  }
  const batches = new ScriptConnection({ ...connection, installation }, log);
  // `redis` has found that the Redis behind it is another installation's. The connection for batches compares the
  // installation's id only when it connects, so it has to connect again to find that out.
  redis.onForeign((error) => batches.reconnect(error));
  await batches.connect();
  return { admission: new Admission({ ...common, batches }), closeBatches: () => batches.close() };
}
