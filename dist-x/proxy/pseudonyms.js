import { createHmac } from 'node:crypto';
/** Maximum number of pseudonyms kept. At the bound all are dropped, and made again when they are needed, in about 3 µs each. */
const MAX_CACHED = 100_000;
/**
 * The name under which a provider knows a buyer. It is the same on every call, so a provider can recognise its customers. It
 * differs between providers, so two providers cannot find out that they have the same customer. The hash is keyed with a secret
 * of the installation.
 */
export class Pseudonyms {
    #secret;
    /** By provider, then by buyer. A single map would need both ids joined: every call would build and hash a new string. */
    #cache = new Map();
    #size = 0;
    constructor(secret) {
        this.#secret = secret;
    }
    /** The buyer object remembers the pseudonym for the provider it called last, so that most calls need no look-up. */
    of(buyer, providerId) {
        if (buyer.providerId !== providerId) {
            buyer.pseudonym = this.ofAccount(buyer.accountId, providerId);
            buyer.providerId = providerId;
        }
        return buyer.pseudonym;
    }
    /** 32 hex digits (128 bits) of HMAC-SHA-256 over buyer and provider. */
    ofAccount(accountId, providerId) {
        const cached = this.#cache.get(providerId)?.get(accountId);
        if (cached !== undefined)
            return cached;
        const pseudonym = createHmac('sha256', this.#secret)
            .update(`${accountId}:${providerId}`)
            .digest()
            // Converts only 16 bytes: a slice of the whole hex text would keep all of that text in memory.
            .toString('hex', 0, 16);
        this.#keep(accountId, providerId, pseudonym);
        return pseudonym;
    }
    #keep(accountId, providerId, pseudonym) {
        if (this.#size++ >= MAX_CACHED) {
            this.#cache = new Map();
            this.#size = 1;
        }
        let ofProvider = this.#cache.get(providerId);
        if (ofProvider === undefined) {
            ofProvider = new Map();
            this.#cache.set(providerId, ofProvider);
        }
        ofProvider.set(accountId, pseudonym);
    }
}
//# sourceMappingURL=pseudonyms.js.map