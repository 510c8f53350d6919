import type { Admission } from '../admission/admission.ts';
import type { RateState } from '../admission/codes.ts';
import type { AdmitResult, TakeResult } from '../admission/operations.ts';
import type { ApiError } from '../errors.ts';
import type { Authenticator } from '../keys/authenticator.ts';
import type { KeyRecord } from '../keys/caller.ts';
import { rateLimitedError, suspendedError, unauthorizedError, unavailableError, unknownRate } from './answer.ts';
import { ExhaustedAddresses } from './exhausted-addresses.ts';

export type GateOptions = {
  readonly authenticator: Authenticator;
  readonly admission: Admission;
  /** Requests per minute of an address without a key. */
  readonly anonymousRateLimit: number;
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
    caller: { readonly address: string },
  ): KeyRecord | null | Promise<KeyRecord | null> {
    return this.#options.authenticator.identify(authorization, () => this.#exhausted.mayLookUp(caller.address));
  }

  /** The key when it is at hand; null when there is none, it is not valid, or Postgres would have to be asked. */
  identifyKnown(authorization: string | undefined): KeyRecord | null {
    const who = this.#options.authenticator.identify(authorization, askNobody);
    return who instanceof Promise ? null : who;
  }

  /** Takes one token: of the key's bucket, or of the address's for a caller without a valid key. */
  take(key: KeyRecord | null, address: string, done: (passage: Passage) => void): void {
    const { admission } = this.#options;
    const limit = this.limitOf(key);
    const decide = (result: TakeResult): void => {
      if (key !== null) this.heard(key, result);
      else if (result.outcome === 'rate_limited') this.#exhausted.add(address, result.rate.retryAfterSeconds);
      done(passageOf(result, limit));
    };
    if (key === null) admission.takeForAddress(address, limit, decide);
    else admission.takeForKey(key.keyId, key.accountId, decide);
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
}

const askNobody = (): boolean => false;

function passageOf(result: TakeResult, limit: number): Passage {
  switch (result.outcome) {
    case 'taken':
      return { rate: result.rate, refusal: null };
    case 'rate_limited':
      return { rate: result.rate, refusal: rateLimitedError(result.rate) };
    case 'revoked':
      return { rate: result.rate, refusal: unauthorizedError() };
    case 'suspended':
      return { rate: result.rate, refusal: suspendedError() };
    case 'unavailable':
      return { rate: unknownRate(limit), refusal: unavailableError() };
  }
}
