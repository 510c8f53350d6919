import type { Damage } from '../ledger/damage-log.ts';
import type { RedisKeys } from '../platform/redis-keys.ts';
import type { Admission } from './admission.ts';
import type { Buyer, KeyInTree } from './buyer.ts';
import type { EndedClaim } from './claims.ts';
import type { AdmissionListener, AdmitRequest, KeyBucket, TakeResult } from './commands.ts';
import type { HoldOwner } from './hold-owners.ts';

type Parts = 'start' | 'answering' | 'buyer' | 'admit' | 'takeForKey' | 'takeForAddress' | 'settle';

/** The interface of admission for calls, pages and metrics. */
export type CallAdmission = Pick<Admission, Parts | 'unsettled' | 'drain' | 'damage' | 'settlementsWithoutHold'>;

/**
 * Admission with a Redis Cluster: an `Admission` of its own for each shard. A script may touch keys of only one shard, so each
 * shard has its own batches anyway. Health, leases, waiting commands and commands to be sent again are also kept by shard: if a
 * node is away, calls of accounts on other nodes are not affected.
 */
export class ShardedAdmission implements CallAdmission {
  readonly #keys: RedisKeys;
  readonly #shards: readonly Admission[];

  /** @param shards by number, each for one shard */
  constructor(keys: RedisKeys, shards: readonly Admission[]) {
    this.#keys = keys;
    this.#shards = shards;
  }

  start(): void {
    for (const shard of this.#shards) shard.start();
  }

  /** Whether the commands of any shard are carried out. A gateway that can serve some accounts must get their calls. */
  get answering(): boolean {
    return this.#shards.some(({ answering }) => answering);
  }

  buyer(keyId: string, accountId: string, ancestors: readonly string[]): Buyer {
    return this.#of(accountId).buyer(keyId, accountId, ancestors);
  }

  admit(request: AdmitRequest, listener: AdmissionListener): void {
    this.#of(request.buyer.accountId).admit(request, listener);
  }

  takeForKey(key: KeyInTree, done: (result: TakeResult) => void, bucket?: KeyBucket): void {
    this.#of(key.accountId).takeForKey(key, done, bucket);
  }

  takeForAddress(address: string, limitPerMinute: number, done: (result: TakeResult) => void): void {
    this.#of(address).takeForAddress(address, limitPerMinute, done);
  }

  settle(
    usageId: string,
    buyer: Buyer,
    refund: boolean,
    settlement: string,
    owner: HoldOwner,
    capturedMicros?: number | null,
    claim?: EndedClaim | null,
  ): void {
    this.#of(buyer.accountId).settle(usageId, buyer, refund, settlement, owner, capturedMicros, claim);
  }

  get unsettled(): number {
    return this.#sum(({ unsettled }) => unsettled);
  }

  get settlementsWithoutHold(): number {
    return this.#sum(({ settlementsWithoutHold }) => settlementsWithoutHold);
  }

  get damage(): ReadonlyMap<Damage, number> {
    const counts = new Map<Damage, number>();
    for (const { damage } of this.#shards) {
      for (const [what, count] of damage) counts.set(what, (counts.get(what) ?? 0) + count);
    }
    return counts;
  }

  async drain(timeoutMs: number): Promise<number> {
    const left = await Promise.all(this.#shards.map((shard) => shard.drain(timeoutMs)));
    return left.reduce((sum, unsettled) => sum + unsettled, 0);
  }

  #of(subject: string): Admission {
    return this.#shards[this.#keys.shardOf(subject)] as Admission;
  }

  #sum(read: (shard: Admission) => number): number {
    return this.#shards.reduce((sum, shard) => sum + read(shard), 0);
  }
}
