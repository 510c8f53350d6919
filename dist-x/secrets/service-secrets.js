import { randomBytes } from 'node:crypto';
import { originOf, storedHeaders, storedSigningKeys, textOf, } from '../catalog/listing-secrets.js';
/** After a new signing secret was made, calls are signed with the one before, too, for this long. */
export const OVERLAP_MS = 86_400_000;
/** A header is for the server at the listing's endpoint: where else the row may be made to point, the header does not open. */
const placeOfHeader = ({ id, endpoint }, name) => `header ${id} ${originOf(endpoint)} ${name}`;
const placeOfKey = (id, keyid) => `signing ${id} ${keyid}`;
/**
 * The secrets of listings: headers that the gateway adds to their calls, and keys that sign them. Each secret is sealed for its
 * listing and its name, and a header for the origin of the endpoint, too.
 *
 * Tested by test/secrets/service-secrets.test.ts.
 */
export class ServiceSecrets {
    #sealer;
    constructor(sealer) {
        this.#sealer = sealer;
    }
    /** Whether there is a key: without one, no listing can get secrets. */
    get canSeal() {
        return this.#sealer.canSeal;
    }
    /** @returns `Listing.upstreamHeaders` */
    sealHeaders(listing, headers) {
        const sealed = headers.map(([name, value]) => [name, this.#sealer.seal(value, placeOfHeader(listing, name))]);
        return textOf(sealed);
    }
    /**
     * Makes a new signing key. The present one signs for a day more; one before that ends now. A present one that cannot be decrypted
     * ends now, too: it signs nothing, and all calls would be refused as long as it is there.
     *
     * @param before  the listing's `signingKeys`
     * @returns the new key, shown to the provider once, and the listing's new `signingKeys`
     */
    newSigningKey(id, before, nowMs) {
        const key = {
            keyid: `sgk_${randomBytes(12).toString('base64url')}`,
            secret: `sgs_${randomBytes(32).toString('base64url')}`,
        };
        const sealed = { keyid: key.keyid, secret: this.#sealer.seal(key.secret, placeOfKey(id, key.keyid)) };
        const previous = storedSigningKeys(before)
            .slice(0, 1)
            .filter(({ keyid, secret }) => this.#sealer.open(secret, placeOfKey(id, keyid)) !== null)
            .map((present) => ({ ...present, until: nowMs + OVERLAP_MS }));
        return { key, stored: textOf([sealed, ...previous]) };
    }
    open({ id, endpoint, upstreamHeaders, signingKeys }) {
        const headers = [];
        const keys = [];
        const unreadable = [];
        for (const [name, sealed] of storedHeaders(upstreamHeaders)) {
            const value = this.#sealer.open(sealed, placeOfHeader({ id, endpoint }, name));
            if (value === null)
                unreadable.push(name);
            else
                headers.push([name, value]);
        }
        for (const { keyid, secret: sealed, until } of storedSigningKeys(signingKeys)) {
            const secret = this.#sealer.open(sealed, placeOfKey(id, keyid));
            if (secret === null)
                unreadable.push(keyid);
            else
                keys.push({ keyid, secret, untilMs: until ?? Number.POSITIVE_INFINITY });
        }
        return { headers, signingKeys: keys, unreadable };
    }
    /**
     * The listing's secrets as they should be stored: sealed with the first key, and without signing keys whose day is over. What
     * cannot be decrypted stays as it is, because its key may come back.
     */
    renewed({ id, endpoint, upstreamHeaders, signingKeys }, nowMs) {
        const headers = storedHeaders(upstreamHeaders).map(([name, sealed]) => [name, this.#renewed(sealed, placeOfHeader({ id, endpoint }, name))]);
        const keys = storedSigningKeys(signingKeys)
            .filter(({ until = Number.POSITIVE_INFINITY }) => until > nowMs)
            .map((key) => ({ ...key, secret: this.#renewed(key.secret, placeOfKey(id, key.keyid)) }));
        return { upstreamHeaders: textOf(headers), signingKeys: textOf(keys) };
    }
    /** How many of the listing's secrets are sealed with the first key, how many with another, and how many cannot be decrypted. */
    count({ id, endpoint, upstreamHeaders, signingKeys }) {
        const counts = { first: 0, other: 0, unreadable: 0 };
        const add = (sealed, place) => {
            if (this.#sealer.open(sealed, place) === null)
                counts.unreadable++;
            else if (this.#sealer.isCurrent(sealed))
                counts.first++;
            else
                counts.other++;
        };
        for (const [name, sealed] of storedHeaders(upstreamHeaders))
            add(sealed, placeOfHeader({ id, endpoint }, name));
        for (const { keyid, secret } of storedSigningKeys(signingKeys))
            add(secret, placeOfKey(id, keyid));
        return counts;
    }
    #renewed(sealed, place) {
        if (this.#sealer.isCurrent(sealed))
            return sealed;
        const text = this.#sealer.open(sealed, place);
        return text === null ? sealed : this.#sealer.seal(text, place);
    }
}
//# sourceMappingURL=service-secrets.js.map