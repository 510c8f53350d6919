import { bulk, bulkHead } from '../platform/trip-encoder.js';
import { Buyer } from './buyer.js';
const KEY_ID_CHARS = 26;
const ACCOUNT_ID_CHARS = 36;
/**
 * The KEYS of commands, encoded for a trip. All key ids have the same length, and so have all account ids. So the text around the
 * ids is the same for all keys of a shard, and is prepared once. A name with an id of any other length is encoded anew.
 */
export class EncodedKeys {
    #names;
    /**
     * Per shard, of the KEYS of an admission: the text before the key id, between key id and account id, and after the account id.
     */
    #admit;
    /** Per shard: all KEYS of a settlement. */
    #settle;
    /** Per shard: the KEYS of a refund up to the account id. */
    #refund;
    constructor(names) {
        this.#names = names;
        const shards = Array.from({ length: names.shards }, (_, shard) => shard);
        const wallet = (shard) => withoutId(names.wallet(shard, ''), ACCOUNT_ID_CHARS);
        this.#admit = shards.map((shard) => [
            withoutId(names.key(shard, ''), KEY_ID_CHARS),
            `\r\n${wallet(shard)}`,
            `\r\n${bulk(names.open[shard])}`,
        ]);
        this.#settle = shards.map((shard) => bulk(names.open[shard]) + bulk(names.usage[shard]));
        this.#refund = shards.map((shard) => this.#settle[shard] + wallet(shard));
    }
    buyer(keyId, accountId) {
        return new Buyer(keyId, accountId, flat(this.admit(keyId, accountId)), this.settle(accountId));
    }
    /** KEYS of an admission: bucket, wallet, open. */
    admit(keyId, accountId) {
        const shard = this.#names.shardOf(accountId);
        if (keyId.length !== KEY_ID_CHARS || accountId.length !== ACCOUNT_ID_CHARS) {
            const names = this.#names;
            return bulk(names.key(shard, keyId)) + bulk(names.wallet(shard, accountId)) + bulk(names.open[shard]);
        }
        const [before, between, after] = this.#admit[shard];
        return before + keyId + between + accountId + after;
    }
    /** KEYS of a settlement: open, usage. */
    settle(accountId) {
        return this.#settle[this.#names.shardOf(accountId)];
    }
    /** KEYS of a refund or a cancellation: open, usage, wallet. */
    refund(accountId) {
        const shard = this.#names.shardOf(accountId);
        if (accountId.length !== ACCOUNT_ID_CHARS) {
            return this.#settle[shard] + bulk(this.#names.wallet(shard, accountId));
        }
        return `${this.#refund[shard]}${accountId}\r\n`;
    }
}
/** The same text in one piece. V8 stores a concatenated string as its parts, and would join them each time it is written. */
const flat = (text) => Buffer.from(text, 'latin1').toString('latin1');
/** The encoded name of a key up to where its id begins. */
const withoutId = (name, idChars) => bulkHead(name.length + idChars) + name;
//# sourceMappingURL=encoded-keys.js.map