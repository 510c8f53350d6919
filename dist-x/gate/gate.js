import { rateState, UNITS_PER_REQUEST } from '../admission/codes.js';
import { rateLimitedError, suspendedError, unauthorizedError, unavailableError, unknownRate } from './answer.js';
import { ExhaustedAddresses } from './exhausted-addresses.js';
/** Identifies the caller of every request, proxied or not, and decides whether its rate limit lets the request pass. */
export class Gate {
    #options;
    #exhausted = new ExhaustedAddresses();
    constructor(options) {
        this.#options = options;
    }
    /**
     * Finds the record of the key that the header names. Null if the header names no valid key, or if only Postgres could tell
     * and may not be asked for this caller now: its address has used up its rate limit (`ExhaustedAddresses`), or is not known
     * any more.
     *
     * @param caller  its address is read only when Postgres would have to be asked, because reading it asks the addon
     */
    identify(authorization, caller) {
        return this.#options.authenticator.identify(authorization, () => {
            const { address } = caller;
            return address !== null && this.#exhausted.mayLookUp(address);
        });
    }
    /** The key's record if it is in memory; null if there is no key, the key is invalid, or only Postgres could tell. */
    identifyKnown(authorization) {
        const who = this.#options.authenticator.identify(authorization, askNobody);
        return who instanceof Promise ? null : who;
    }
    /** Takes one token from the bucket of a key or, for a caller without a valid key, of its address. */
    take(who, done) {
        const { admission, anonymousRateLimit } = this.#options;
        if (typeof who === 'string') {
            admission.takeForAddress(who, anonymousRateLimit, (result) => done(this.#passage(who, result)));
            return;
        }
        admission.takeForKey(who.keyId, who.accountId, (result) => {
            this.heard(who, result);
            done(this.#passage(who, result));
        });
    }
    /** The error for a request that found the bucket empty. It tells this caller when to come again. */
    rateLimited(who, rate) {
        const bucket = typeof who === 'string' ? this.#exhausted.add(who, rate.retryAfterSeconds) : who;
        if (typeof who !== 'string')
            who.emptyUntilMs = performance.now() + (UNITS_PER_REQUEST - rate.tokens) / rate.limit;
        return rateLimitedError(this.#options.places.next(bucket, rate));
    }
    /**
     * The state of the key's bucket, if it was found empty and no token can be back yet; otherwise null. Asks nobody. For requests that
     * are expensive to judge: the gateway can refuse them without judging them.
     */
    emptyBucket(key) {
        // Rounded down: `rateLimited` is told what is returned here, and must not put the end off each time.
        const missing = Math.floor((key.emptyUntilMs - performance.now()) * key.rateLimit);
        return missing > 0 ? rateState(key.rateLimit, UNITS_PER_REQUEST - missing) : null;
    }
    /**
     * Compares what Redis says about a valid key with the key's record in memory. They differ if Redis has lost the last change of
     * the key, because it came back with older data.
     */
    heard(key, result) {
        if (result.outcome === 'unavailable')
            return;
        const isSuspended = key.accountStatus === 'suspended';
        const agrees = result.rate.limit === key.rateLimit &&
            result.outcome !== 'revoked' &&
            (result.outcome === 'suspended') === isSuspended;
        if (!agrees)
            this.#options.onContradiction(key.keyId);
    }
    limitOf(key) {
        return key === null ? this.#options.anonymousRateLimit : key.rateLimit;
    }
    /** The error for a request whose key or address is refused, whatever it came for. */
    refusal(who, outcome, rate) {
        switch (outcome) {
            case 'rate_limited':
                return this.rateLimited(who, rate);
            case 'revoked':
                return unauthorizedError();
            case 'suspended':
                return suspendedError();
        }
    }
    #passage(who, result) {
        switch (result.outcome) {
            case 'taken':
                return { rate: result.rate, refusal: null };
            case 'unavailable':
                return { rate: unknownRate(this.limitOf(typeof who === 'string' ? null : who)), refusal: unavailableError() };
            default:
                return { rate: result.rate, refusal: this.refusal(who, result.outcome, result.rate) };
        }
    }
}
const askNobody = () => false;
//# sourceMappingURL=gate.js.map