import { shardOf } from './shards.ts';

/** @param tag the hash tag of a shard of a cluster */
export const installationKey = (tag: string): string => `tollgate:installation:{${tag}}`;

/** Hash tag of the keys that belong to no shard: reports of processes while an operator is watching (src/traffic/). */
export const SHARED_TAG = 'traffic';

/** Names of the Redis keys (docs/design.md, 'Redis'). `{s}` is the shard tag: all keys of an account share one cluster slot. */
export class RedisKeys {
  readonly shards: number;
  /** The names of keys that a shard has once, by shard. They are prepared, because every batch uses them. */
  readonly open: readonly string[];
  readonly lease: readonly string[];
  readonly usage: readonly string[];
  /** A string that names the last flush after which the shard's stream was trimmed (`markText` in src/ledger/history/marks.ts). */
  readonly mark: readonly string[];

  /** A hash with the answers to calls with idempotency keys, and their sizes in bytes (replay/scripts/keep-answer.lua). */
  readonly answers: readonly string[];
  /** A sorted set with the time at which each of these answers was kept. */
  readonly answerTimes: readonly string[];

  readonly #tags: readonly string[];

  /** @param tags  the hash tag of each shard; by default its number */
  constructor(shards: number, tags = Array.from({ length: shards }, (_, shard) => String(shard))) {
    this.shards = shards;
    this.#tags = tags;
    const perShard = (name: string): string[] => tags.map((tag) => `${name}:{${tag}}`);
    this.open = perShard('open');
    this.lease = perShard('lease');
    this.usage = perShard('usage');
    this.mark = perShard('mark');
    this.answers = perShard('answers');
    this.answerTimes = perShard('answers-at');
  }

  shardOf(id: string): number {
    return shardOf(id, this.shards);
  }

  /** A hash with a root key's token bucket (`tokens`, `ts`), `limit` and `status`, and a field for each key below it. */
  key(shard: number, keyId: string): string {
    return `key:{${this.#tags[shard]}}:${keyId}`;
  }

  /**
   * A hash with `balance`, `credit_seq`, `debit_seq`, `debited`, `free:<service_id>` (free calls used), `<key_id>` (state of a child
   * key, see CHILD_FIELD) and, for the reconciliation, `ticket` and `repair`.
   */
  wallet(shard: number, accountId: string): string {
    return `wallet:{${this.#tags[shard]}}:${accountId}`;
  }

  /** A hash with the idempotency keys that an account's calls have claimed (admission/scripts/includes/claims.lua). */
  claims(shard: number, accountId: string): string {
    return `claims:{${this.#tags[shard]}}:${accountId}`;
  }

  /** A sorted set with the time at which each of these claims was made. */
  claimTimes(shard: number, accountId: string): string {
    return `claims-at:{${this.#tags[shard]}}:${accountId}`;
  }

  /** A sorted set with the time at which each of an account's answers was kept. */
  answersOf(shard: number, accountId: string): string {
    return `answers-of:{${this.#tags[shard]}}:${accountId}`;
  }

  /** A string with the installation's id, in a shard of a cluster. A single Redis has `INSTALLATION_KEY` instead. */
  installation(shard: number): string {
    return installationKey(this.#tags[shard] as string);
  }

  /** A hash with the token bucket for a key's reads (`KeyBucket`). */
  reads(shard: number, keyId: string): string {
    return `reads:{${this.#tags[shard]}}:${keyId}`;
  }

  /** A hash with the token bucket for what people do who are signed in with a key (`KeyBucket`). */
  person(shard: number, keyId: string): string {
    return `person:{${this.#tags[shard]}}:${keyId}`;
  }

  /** A hash with the token bucket for an account's changes to its keys (`KeyBucket`). */
  control(shard: number, accountId: string): string {
    return `control:{${this.#tags[shard]}}:${accountId}`;
  }

  /** A hash with the token bucket of an address, for callers without a key. */
  ip(address: string): string {
    return `ip:{${this.#tags[this.shardOf(address)]}}:${address}`;
  }
}

/**
 * Each key id begins with these characters, and so does a wallet's field for a child key. The field has the key's bucket, and what
 * the key and those below it have spent of its budget, in which period (src/keys/budget-period.ts). child-state.lua defines its 32
 * bytes, and in-text.lua the text that the comparison reads.
 */
export const CHILD_FIELD = 'acf_';
export const freeField = (serviceId: string): string => `free:${serviceId}`;
