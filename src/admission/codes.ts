/** Codes that scripts/batch.lua replies to 'A' (admit a call) and 'T' (take a token). Its header says what each code means. */
export const OK = 0;
export const RATE_LIMITED = 1;
export const KEY_REVOKED = 2;
export const KEY_NOT_LOADED = 3;
export const WALLET_NOT_LOADED = 4;
export const INSUFFICIENT_BALANCE = 5;
export const DUPLICATE = 6;
export const ACCOUNT_SUSPENDED = 7;
export const WALLET_DAMAGED = 8;
export const SHARD_DAMAGED = 9;

/** Codes that scripts/batch.lua replies to a settlement or a cancellation. 1, which has no name here, means 'settled now'. */
export const NO_HOLD = 0;
export const SETTLED_BESIDE_WALLET = 2;
export const HOLD_LEFT = 3;
export const NOT_CLOSED = 4;

/** How many units of a token bucket one request takes (batch.lua says why 60 000). */
export const UNITS_PER_REQUEST = 60_000;

/** The rate limit of a caller and how much of it is left, for the rate-limit headers. */
export type RateState = {
  /** Requests per minute. */
  readonly limit: number;
  /** Content of the token bucket, in units: UNITS_PER_REQUEST are one request. */
  readonly tokens: number;
  /** How many requests would pass now. */
  readonly remaining: number;
  /** Seconds until the bucket is full. */
  readonly resetSeconds: number;
  /** Seconds until one request passes; 0 when one passes now. */
  readonly retryAfterSeconds: number;
};

/** Translates a bucket's `limit` and `tokens`, as the script replies them, into what the rate-limit headers say. */
export function rateState(limit: number, tokens: number): RateState {
  const missing = limit * UNITS_PER_REQUEST - tokens;
  const toNext = UNITS_PER_REQUEST - tokens;
  return {
    limit,
    tokens,
    remaining: Math.max(0, Math.floor(tokens / UNITS_PER_REQUEST)),
    // The bucket refills by `limit` units per millisecond. Seconds are rounded up, so that waiting that long is enough.
    resetSeconds: Math.max(0, Math.ceil(missing / limit / 1000)),
    retryAfterSeconds: toNext > 0 ? Math.max(1, Math.ceil(toNext / limit / 1000)) : 0,
  };
}
