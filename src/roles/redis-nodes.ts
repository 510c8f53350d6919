import { addressOf } from '../platform/redis-node.ts';
import type { RedisStore } from '../platform/redis-store.ts';
import type { Stores } from './stores.ts';

/** A Redis that this process uses: the only one, or a node of a cluster that has shards. */
export type RedisNode = {
  /** `host:port` */
  readonly address: string;
  /** How many shards it has. */
  readonly shards: number;
  /** Whether commands for all these shards can be sent. */
  readonly ready: boolean;
  readonly store: Pick<RedisStore, 'command'>;
};

/** The nodes as this process knows them. A slot without a node counts for none, although its shard still asks the last one. */
export function redisNodes(
  { redis, cluster, keys }: Pick<Stores, 'redis' | 'cluster' | 'keys'>,
  url: string,
): RedisNode[] {
  if (cluster === null) return [{ address: addressOf(url), shards: keys.shards, ready: redis.ready, store: redis }];
  const { owners } = cluster;
  return Array.from(cluster.byNode(), ([address, shards]) => ({
    address,
    shards: shards.filter(({ slot }) => owners[slot] !== null).length,
    ready: shards.every(({ ready }) => ready),
    store: shards[0] as RedisStore,
  }));
}
