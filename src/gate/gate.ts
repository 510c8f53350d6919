import type { Admission } from '../admission/admission.ts';
import type { RateState } from '../admission/codes.ts';
import type { AdmitResult, TakeResult } from '../admission/commands.ts';
import type { ApiError } from '../errors.ts';
import type { Authenticator } from '../keys/authenticator.ts';
import type { KeyRecord } from '../keys/caller.ts';
import { rateLimitedError, suspendedError, unauthorizedError, unavailableError, unknownRate } from './answer.ts';
import { ExhaustedAddresses } from './exhausted-addresses.ts';
import type { RefillPlaces } from './refill-places.ts';

export type GateOptions = {
  readonly authenticator: Authenticator;
  readonly admission: Admission;
  /** Requests per minute of an address without a key. */
  readonly anonymousRateLimit: number;
  readonly places: RefillPlaces;
  /** Redis says something else of a key than its record does. */
  readonly onContradiction: (keyId: string) => void;
};

/** How a request fared at its rate limit: `refusal` is null when it may pass. */
export type Passage = { readonly rate: RateState; readonly refusal: ApiError | null };

/** Who asks, and may they ask now: what every request goes through, called service or not. */
export class Gate {
  readonly #options: GateOptions;
  readonly #exhausted = new ExhaustedAddresses();

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /** @param caller  whose address is asked for only when the key is unknown here */
  identify(
    authorization: string | undefined,
    caller: { readonly address: string | null },
  ): KeyRecord | null | Promise<KeyRecord | null> {
    return this.#options.authenticator.identify(authorization, () => {
      const { address } = caller;
      return address !== null && this.#exhausted.mayLookUp(address);
    });
  }

  /** The key when it is at hand; null when there is none, it is not valid, or Postgres would have to be asked. */
  identifyKnown(authorization: string | undefined): KeyRecord | null {
    const who = this.#options.authenticator.identify(authorization, askNobody);
    return who instanceof Promise ? null : who;
  }

  /** Takes one token of the bucket of a key, or of an address: that of a caller without a valid key. */
  take(who: KeyRecord | string, done: (passage: Passage) => void): void {
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

  /** The answer to a request that found the bucket empty. */
  rateLimited(who: KeyRecord | string, rate: RateState): ApiError {
    const bucket = typeof who === 'string' ? this.#exhausted.add(who, rate.retryAfterSeconds) : who;
    return rateLimitedError(this.#options.places.next(bucket, rate));
  }

  /** What Redis said of a key that was found valid: it may have come back older than its last change. */
  heard(key: KeyRecord, result: AdmitResult | TakeResult): void {
    if (result.outcome === 'unavailable') return;
    const isSuspended = key.accountStatus === 'suspended';
    const agrees =
      result.rate.limit === key.rateLimit &&
      result.outcome !== 'revoked' &&
      (result.outcome === 'suspended') === isSuspended;
    if (!agrees) this.#options.onContradiction(key.keyId);
  }

  limitOf(key: KeyRecord | null): number {
    return key === null ? this.#options.anonymousRateLimit : key.rateLimit;
  }

  #passage(who: KeyRecord | string, result: TakeResult): Passage {
    switch (result.outcome) {
      case 'taken':
        return { rate: result.rate, refusal: null };
      case 'rate_limited':
        return { rate: result.rate, refusal: this.rateLimited(who, result.rate) };
      case 'revoked':
        return { rate: result.rate, refusal: unauthorizedError() };
      case 'suspended':
        return { rate: result.rate, refusal: suspendedError() };
      case 'unavailable':
        return { rate: unknownRate(this.limitOf(typeof who === 'string' ? null : who)), refusal: unavailableError() };
    }
  }
}

const askNobody = (): boolean => false;
