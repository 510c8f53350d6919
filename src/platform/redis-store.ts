import type { ForeignRedis } from './installation.ts';
import type { Script } from './script.ts';

/** An argument of a script or a command. A number must be passed as its text, which saves the encoder a case. */
export type RedisArg = string | Buffer;

/** Thrown when a command was certainly not sent. After any other error, Redis may have carried it out. */
export class RedisNotSent extends Error {
  constructor(message = 'redis is not connected') {
    super(message);
    this.name = 'RedisNotSent';
  }
}

/**
 * A node of a cluster has refused a command because its keys are elsewhere now. This counts as not sent: nothing was carried out.
 */
export class RedisNotCarriedOut extends RedisNotSent {
  constructor(reason: string) {
    super(reason);
    this.name = 'RedisNotCarriedOut';
  }
}

/**
 * The shards, grouped by the store that can be asked about several of them at once: a single Redis has all; in a cluster each shard
 * is separate.
 */
export function byStore(redis: RedisStore, shards: readonly number[]): Map<RedisStore, readonly number[]> {
  if (!redis.isCluster) return new Map([[redis, shards]]);
  return new Map(shards.map((shard) => [redis.shard(shard), [shard]]));
}

/**
 * Redis as all code except the batches sees it: one server (`RedisClient`), one shard of a cluster (`ShardClient`), or a whole
 * cluster (`RedisCluster`), which sends each command to the node that has its key.
 */
export interface RedisStore {
  /** Sends a command, whose first argument is its key if it has one. Rejects with `RedisNotSent` when it was certainly not sent. */
  command(name: string, args: readonly RedisArg[]): Promise<unknown>;
  /** Runs a script by its digest, provided that the data are ours. */
  script(script: Script, numberOfKeys: number, keysAndArgs: readonly RedisArg[]): Promise<unknown>;
  /** Resolves if the data are ours now. @throws ForeignRedis when they are another installation's */
  confirmOwner(): Promise<void>;
  /** Whether shards are in several nodes, so that a script or a command may name keys of one shard only. */
  readonly isCluster: boolean;
  /** The store of one shard. It also sends INFO, TIME and SCAN to the node that has the shard. A single Redis has all shards. */
  shard(shard: number): RedisStore;
  readonly ready: boolean;
  /** Calls `listener` each time this store becomes ready, including the first. */
  onReady(listener: () => void): void;
  /** Calls `listener` each time the data turn out to be another installation's. */
  onForeign(listener: (error: ForeignRedis) => void): void;
}
