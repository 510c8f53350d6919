import { parseBearer, splitBearer, verifySecret } from './credentials.js';
/** Turns an `Authorization` header into the record of a valid key. */
export class Authenticator {
    #cache;
    #clock;
    constructor(cache, clock) {
        this.#cache = cache;
        this.#clock = clock;
    }
    /**
     * The key that a header names, or null when the header is missing or malformed, the key unknown or revoked, or the secret
     * wrong: callers are never told which. A key in the cache with the right secret is returned at once. If Postgres must be
     * asked, the result is a promise, which rejects with `unavailable` while Postgres is away.
     *
     * Postgres is also asked when the key is in the cache and the secret does not match: another gateway may have rotated the key
     * just now, and its message has not arrived yet. A wrong secret therefore costs Postgres as much as a made-up key.
     *
     * @param mayLoad called before Postgres is asked; when it returns false, Postgres is not asked and the header counts as wrong
     */
    identify(authorization, mayLoad) {
        if (authorization === undefined)
            return null;
        const credentials = splitBearer(authorization);
        if (credentials === null)
            return null;
        const { keyId, secret } = credentials;
        const record = this.#cache.get(keyId);
        if (record !== undefined) {
            const verified = this.#verified(record, secret);
            if (verified !== null || record.status !== 'active')
                return verified;
        }
        // Postgres is asked only for credentials of the right form, checksum included.
        if (parseBearer(authorization) === null || !mayLoad())
            return null;
        const read = record === undefined ? this.#cache.load(keyId) : this.#cache.reload(keyId);
        return read.then((loaded) => (loaded === null ? null : this.#verified(loaded, secret)));
    }
    #verified(record, secret) {
        // Reading the clock takes 0.1 µs, and only a rotated key needs it.
        const nowMs = record.previousSecretDigest === null ? 0 : this.#clock();
        return record.status === 'active' && verifySecret(record, secret, nowMs) ? record : null;
    }
}
//# sourceMappingURL=authenticator.js.map