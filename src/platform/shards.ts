/**
 * The shard of an account, or of an address without a key. Every Redis key of the account has the shard's number as its hash tag,
 * `{shard}`, so all of them are in one cluster slot. The number of shards is fixed for an installation: after a change most wallets
 * would be looked for in the wrong shard.
 *
 * The hash is FNV-1a: it spreads UUIDs evenly and costs less than any cryptographic hash.
 */
export function shardOf(id: string, shards: number): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < id.length; i++) {
    hash ^= id.charCodeAt(i);
    hash = Math.imul(hash, 0x01000193);
  }
  return (hash >>> 0) % shards;
}
