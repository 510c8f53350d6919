import type { RedisKeys } from '../platform/redis-keys.ts';
import { bulk, bulkHead } from '../platform/trip-encoder.ts';
import { Buyer, chainOf } from './buyer.ts';

const KEY_ID_CHARS = 26;
const ACCOUNT_ID_CHARS = 36;

/**
 * The KEYS of commands, encoded for a trip. All key ids have the same length, and so have all account ids. So the text around the
 * ids is the same for all keys of a shard, and is prepared once. A name with an id of any other length is encoded anew.
 */
export class EncodedKeys {
  readonly #names: RedisKeys;
  /**
   * Per shard, parts of the KEYS of an admission: the text before the key id, between key id and account id, and after the account
   * id.
   */
  readonly #admit: readonly (readonly [string, string, string])[];
  /** Per shard: all KEYS of a settlement. */
  readonly #settle: readonly string[];
  /** Per shard: the KEYS of a refund up to the account id. */
  readonly #refund: readonly string[];

  constructor(names: RedisKeys) {
    this.#names = names;
    const shards = Array.from({ length: names.shards }, (_, shard) => shard);
    const wallet = (shard: number): string => withoutId(names.wallet(shard, ''), ACCOUNT_ID_CHARS);
    this.#admit = shards.map((shard) => [
      withoutId(names.key(shard, ''), KEY_ID_CHARS),
      `\r\n${wallet(shard)}`,
      `\r\n${bulk(names.open[shard] as string)}`,
    ]);
    this.#settle = shards.map((shard) => bulk(names.open[shard] as string) + bulk(names.usage[shard] as string));
    this.#refund = shards.map((shard) => this.#settle[shard] + wallet(shard));
  }

  /** @param ancestors  the keys above this one, root first */
  buyer(keyId: string, accountId: string, ancestors: readonly string[] = NONE): Buyer {
    const chain = chainOf(keyId, ancestors);
    const admitKeys = flat(this.admit(chain?.rootId ?? keyId, accountId));
    return new Buyer(keyId, accountId, admitKeys, this.settle(accountId), chain);
  }

  /** KEYS of an admission: bucket of a key without a parent, wallet, open. */
  admit(keyId: string, accountId: string): string {
    const shard = this.#names.shardOf(accountId);
    if (keyId.length !== KEY_ID_CHARS || accountId.length !== ACCOUNT_ID_CHARS) {
      const names = this.#names;
      return bulk(names.key(shard, keyId)) + bulk(names.wallet(shard, accountId)) + bulk(names.open[shard] as string);
    }
    const [before, between, after] = this.#admit[shard] as readonly [string, string, string];
    return before + keyId + between + accountId + after;
  }

  /** KEYS of a settlement: open, usage. */
  settle(accountId: string): string {
    return this.#settle[this.#names.shardOf(accountId)] as string;
  }

  /** KEYS of a refund or a capture. They are kept: encoding them anew took 0.17 µs of each captured call. */
  refundOf(buyer: Buyer): string {
    if (buyer.refundKeys === '') buyer.refundKeys = flat(this.refund(buyer.accountId));
    return buyer.refundKeys;
  }

  /** KEYS for claims: claims, and their times. */
  claims(accountId: string): string {
    const names = this.#names;
    const shard = names.shardOf(accountId);
    return bulk(names.claims(shard, accountId)) + bulk(names.claimTimes(shard, accountId));
  }

  /** KEYS of a refund or a cancellation: open, usage, wallet. */
  refund(accountId: string): string {
    const shard = this.#names.shardOf(accountId);
    if (accountId.length !== ACCOUNT_ID_CHARS) {
      return this.#settle[shard] + bulk(this.#names.wallet(shard, accountId));
    }
    return `${this.#refund[shard]}${accountId}\r\n`;
  }
}

const NONE: readonly string[] = [];

/** The same text in one piece. V8 stores a concatenated string as its parts, and would join them each time it is written. */
const flat = (text: string): string => Buffer.from(text, 'latin1').toString('latin1');

/** The encoded name of a key up to where its id begins. */
const withoutId = (name: string, idChars: number): string => bulkHead(name.length + idChars) + name;
