import { type KeyRefusal, type RateState, rateState, UNITS_PER_REQUEST } from '../admission/codes.ts';
import {
  type AdmitResult,
  CONTROL_LIMIT,
  type KeyBucket,
  PERSON_LIMIT,
  type TakeResult,
} from '../admission/commands.ts';
import type { CallAdmission } from '../admission/sharded-admission.ts';
import type { ApiError } from '../errors.ts';
import type { Authenticator } from '../keys/authenticator.ts';
import { isExpired, type KeyRecord } from '../keys/caller.ts';
import {
  expiredError,
  rateLimitedError,
  suspendedError,
  unauthorizedError,
  unavailableError,
  unknownRate,
} from './answer.ts';
import { ExhaustedAddresses } from './exhausted-addresses.ts';
import type { RefillTimes } from './refill-times.ts';

export type { KeyBucket };

type GateOptions = {
  readonly authenticator: Authenticator;
  readonly admission: CallAdmission;
  /** Requests per minute that an address may make without a key. */
  readonly anonymousRateLimit: number;
  readonly refills: RefillTimes;
  /** Invoked when Redis and the key's record in memory disagree about the rate limit or the status. */
  readonly onContradiction: (keyId: string) => void;
};

/** The result of asking a rate limit's bucket for a token; `refusal` is null if the request may pass. */
export type Passage = { readonly rate: RateState; readonly refusal: ApiError | null };

/** Identifies the caller of every request, proxied or not, and decides whether its rate limit lets the request pass. */
export class Gate {
  readonly #options: GateOptions;
  readonly #exhausted = new ExhaustedAddresses();
  /** What RefillTimes keeps about the additional buckets of keys. Made at the first refusal, and dropped with the key's record. */
  readonly #promised = {
    reads: new WeakMap<KeyRecord, { lastRefill: number }>(),
    person: new WeakMap<KeyRecord, { lastRefill: number }>(),
    control: new WeakMap<KeyRecord, { lastRefill: number }>(),
  };

  /** Records of keys that Redis has called expired. A change of a key, or of one above it, makes a new record. */
  readonly #expired = new WeakSet<KeyRecord>();

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /**
   * Finds the record of the key that the header names. Null if the header names no valid key. Also null if only Postgres could tell
   * but may not be asked now, because the caller's address is unknown or has used up its rate limit (`ExhaustedAddresses`). An
   * expired key has no bucket of its own: it is null, too, once the caller's address has used up its limit.
   *
   * @param caller its address is read only before Postgres is asked, because reading it calls the addon
   */
  identify(
    authorization: string | undefined,
    caller: { readonly address: string | null },
  ): KeyRecord | null | Promise<KeyRecord | null> {
    const who = this.#options.authenticator.identify(authorization, () => {
      const { address } = caller;
      return address !== null && this.#exhausted.mayLookUp(address);
    });
    if (who === null || who instanceof Promise || who.ancestors.length === 0 || !this.#expired.has(who)) return who;
    return this.#countedByAddress(who, caller.address);
  }

  /**
   * The key of a caller that shows something other than the key's secret. Null in the same cases as `identify`.
   *
   * @param find  finds the id of the key, if it may ask Postgres
   */
  async identifyHolder(
    find: (mayLoad: () => boolean) => Promise<string | null>,
    caller: { readonly address: string | null },
  ): Promise<KeyRecord | null> {
    const { address } = caller;
    const keyId = await find(() => address !== null && this.#exhausted.mayLookUp(address));
    return keyId === null ? null : this.#options.authenticator.active(keyId);
  }

  /** The key, if its caller's address has a token for this request. Redis still decides whether the key is expired. */
  #countedByAddress(key: KeyRecord, address: string | null): Promise<KeyRecord | null> {
    const { admission, anonymousRateLimit } = this.#options;
    return new Promise((resolve) => {
      if (address === null) resolve(null);
      else
        admission.takeForAddress(address, anonymousRateLimit, ({ outcome }) =>
          resolve(outcome === 'taken' ? key : null),
        );
    });
  }

  /** The key's record if it is in memory; null if there is no key, the key is invalid, or only Postgres could tell. */
  identifyKnown(authorization: string | undefined): KeyRecord | null {
    const who = this.#options.authenticator.identify(authorization, askNobody);
    return who instanceof Promise ? null : who;
  }

  /** Takes one token from a bucket of the key or, if the caller has no valid key, from that of its address. */
  take(who: KeyRecord | string, done: (passage: Passage) => void, bucket: KeyBucket = 'own'): void {
    const { admission, anonymousRateLimit } = this.#options;
    if (typeof who === 'string') {
      admission.takeForAddress(who, anonymousRateLimit, (result) => done(this.#passage(who, result, 'own')));
      return;
    }
    const took = (result: TakeResult): void => {
      this.heard(who, result, bucket);
      done(this.#passage(who, result, bucket));
    };
    admission.takeForKey(who, took, bucket);
  }

  /** The error for a request that found the bucket empty. It tells the caller when to retry. */
  rateLimited(who: KeyRecord | string, rate: RateState, bucket: KeyBucket = 'own'): ApiError {
    return rateLimitedError(this.#options.refills.next(this.#promisedOf(who, rate, bucket), rate));
  }

  #promisedOf(who: KeyRecord | string, rate: RateState, bucket: KeyBucket): { lastRefill: number } {
    if (typeof who === 'string') return this.#exhausted.add(who, rate.retryAfterSeconds);
    if (bucket === 'own') {
      who.emptyUntilMs = performance.now() + (UNITS_PER_REQUEST - rate.tokens) / rate.limit;
      return who;
    }
    const kept = this.#promised[bucket];
    const promised = kept.get(who) ?? { lastRefill: 0 };
    kept.set(who, promised);
    return promised;
  }

  /**
   * The state of the key's bucket, if it was found empty and no token can be back yet; otherwise null. It asks no store, so that
   * the gateway can refuse expensive requests without examining them.
   */
  emptyBucket(key: KeyRecord): RateState | null {
    // Rounded down: `rateLimited` is given this value, and repeated calls must not postpone the end.
    const missing = Math.floor((key.emptyUntilMs - performance.now()) * key.rateLimit);
    return missing > 0 ? rateState(key.rateLimit, UNITS_PER_REQUEST - missing) : null;
  }

  /**
   * Compares what Redis says about a valid key with the key's record in memory. They differ if Redis has lost the last change of
   * the key, because it came back with older data.
   */
  heard(key: KeyRecord, result: AdmitResult | TakeResult, bucket: KeyBucket = 'own'): void {
    if (result.outcome === 'unavailable') return;
    if (result.outcome === 'expired') this.#expired.add(key);
    const isSuspended = key.accountStatus === 'suspended';
    const isOut = result.outcome === 'revoked' || result.outcome === 'suspended';
    // Only these buckets have the key's limit.
    const hasLimit = bucket === 'own' || bucket === 'reads';
    const agrees =
      (result.rate.limit === key.rateLimit || !hasLimit) &&
      result.outcome !== 'revoked' &&
      (isOut || (result.outcome === 'expired') === isExpired(key)) &&
      (result.outcome === 'suspended') === isSuspended;
    if (!agrees) this.#options.onContradiction(key.keyId);
  }

  limitOf(key: KeyRecord | null, bucket: KeyBucket = 'own'): number {
    if (key === null) return this.#options.anonymousRateLimit;
    if (bucket === 'person') return PERSON_LIMIT;
    return bucket === 'control' ? CONTROL_LIMIT : key.rateLimit;
  }

  /** The error for a request whose key or address is refused, whatever the request is for. */
  refusal(who: KeyRecord | string, outcome: KeyRefusal, rate: RateState, bucket: KeyBucket = 'own'): ApiError {
    switch (outcome) {
      case 'rate_limited':
        return this.rateLimited(who, rate, bucket);
      case 'revoked':
        return unauthorizedError();
      case 'expired':
        return expiredError();
      case 'suspended':
        return suspendedError(typeof who === 'string' ? null : who.suspensionReason);
    }
  }

  #passage(who: KeyRecord | string, result: TakeResult, bucket: KeyBucket): Passage {
    switch (result.outcome) {
      case 'taken':
        return { rate: result.rate, refusal: null };
      case 'unavailable':
        return {
          rate: unknownRate(this.limitOf(typeof who === 'string' ? null : who, bucket)),
          refusal: unavailableError(),
        };
      default:
        return { rate: result.rate, refusal: this.refusal(who, result.outcome, result.rate, bucket) };
    }
  }
}

const askNobody = (): boolean => false;
