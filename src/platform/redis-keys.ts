import { shardOf } from './shards.ts';

/** Names of the Redis keys (docs/design.md, 'Redis'). `{s}` is the shard tag: all keys of an account share one cluster slot. */
export class RedisKeys {
  readonly shards: number;
  /** The key names that a shard has only once, by shard. Prepared, because every batch uses them. */
  readonly open: readonly string[];
  readonly lease: readonly string[];
  readonly usage: readonly string[];

  constructor(shards: number) {
    this.shards = shards;
    const perShard = (name: string): string[] => Array.from({ length: shards }, (_, s) => `${name}:{${s}}`);
    this.open = perShard('open');
    this.lease = perShard('lease');
    this.usage = perShard('usage');
  }

  shardOf(id: string): number {
    return shardOf(id, this.shards);
  }

  /** Hash: token bucket (`tokens`, `ts`) beside the key's `limit` and `status`. */
  key(shard: number, keyId: string): string {
    return `key:{${shard}}:${keyId}`;
  }

  /** Hash: `balance`, `credit_seq`, `free:<service_id>` (free calls used); `ticket` and `repair` are for the reconciliation. */
  wallet(shard: number, accountId: string): string {
    return `wallet:{${shard}}:${accountId}`;
  }

  /** Hash: token bucket of an address, for callers without a key. */
  ip(address: string): string {
    return `ip:{${this.shardOf(address)}}:${address}`;
  }
}

export const freeField = (serviceId: string): string => `free:${serviceId}`;
