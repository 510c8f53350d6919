import type { Source } from '../observability/metrics.ts';
import type { NodeTrips, TripsByNode } from '../observability/node-trips.ts';
import type { NodeWatch } from '../platform/node-watch.ts';
import type { NodeInfo } from '../platform/redis-node.ts';
import type { RedisNode } from './redis-nodes.ts';

/** The Redis nodes that a gateway uses. */
export type GatewayNodes = {
  nodes(): readonly RedisNode[];
  /** How often a shard has got another node since the start. */
  moves(): number;
  readonly trips: TripsByNode;
};

/**
 * A single Redis is a cluster of one node here, so that the same alerts and the same dashboard serve both.
 * Tested by test/deploy/published-metrics.test.ts and test/integration/redis-cluster.test.ts.
 */
export function gatewayNodeMetrics({ nodes, moves, trips }: GatewayNodes): Source[] {
  const tripsOf = <T>(pick: (trips: NodeTrips) => T): ReadonlyMap<string, T> =>
    trips.read(
      nodes().map(({ address }) => address),
      pick,
    );
  return [
    ready('tollgate_redis_node_ready', 'gateway', nodes),
    {
      name: 'tollgate_redis_node_shards',
      help: 'Shards that this Redis has',
      type: 'gauge',
      label: 'node',
      read: () => byNode(nodes(), ({ shards }) => shards),
    },
    {
      name: 'tollgate_redis_shard_moves_total',
      help: 'How often a shard has got another Redis, after a failover or because its slot was moved',
      type: 'counter',
      read: moves,
    },
    {
      name: 'tollgate_redis_trip_seconds',
      help: 'From sending a batch to its reply; batches without a reply are not in it',
      type: 'histogram',
      label: 'node',
      histogram: () => tripsOf(({ latency }) => latency),
    },
    {
      name: 'tollgate_redis_trips_refused_total',
      help: 'Batches that this Redis answered with an error, such as MOVED: nothing of them was carried out',
      type: 'counter',
      label: 'node',
      read: () => tripsOf(({ refusals }) => refusals),
    },
    {
      name: 'tollgate_redis_trips_lost_total',
      help: 'Batches that got no reply in time, or whose connection broke: whether they were carried out is unknown',
      type: 'counter',
      label: 'node',
      read: () => tripsOf(({ losses }) => losses),
    },
  ];
}

export function writerNodeMetrics(nodes: () => readonly RedisNode[], watch: NodeWatch): Source[] {
  const gauge = (name: string, help: string, pick: (info: NodeInfo) => number): Source => ({
    name,
    help,
    type: 'gauge',
    label: 'node',
    read: () => new Map(Array.from(watch.infos, ([address, info]) => [address, pick(info)])),
  });
  return [
    ready('tollgate_writer_redis_node_ready', 'writer', nodes),
    gauge('tollgate_redis_node_replicas', 'Replicas that follow this Redis', ({ replicas }) => replicas),
    gauge('tollgate_redis_node_memory_bytes', 'Memory that this Redis uses', ({ memoryBytes }) => memoryBytes),
    gauge(
      'tollgate_redis_node_memory_max_bytes',
      'maxmemory of this Redis; 0: without a bound',
      ({ maxMemoryBytes }) => maxMemoryBytes,
    ),
    gauge(
      'tollgate_redis_node_misconfigured',
      '1 if a start would refuse this Redis, because it may evict keys or is too old; the log of the writer says which',
      ({ fault }) => (fault === null ? 0 : 1),
    ),
  ];
}

const ready = (name: string, who: string, nodes: () => readonly RedisNode[]): Source => ({
  name,
  help: `1 while this ${who} can use all shards of this Redis, else 0`,
  type: 'gauge',
  label: 'node',
  read: () => byNode(nodes(), (node) => (node.ready ? 1 : 0)),
});

const byNode = (nodes: readonly RedisNode[], pick: (node: RedisNode) => number): ReadonlyMap<string, number> =>
  new Map(nodes.map((node) => [node.address, pick(node)]));
