/** What scripts/batch.lua replies to an admission or a token: its header says what each code means. */
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

/** What scripts/batch.lua replies to a settlement or a cancellation. 1 (not named here) means settled now. */
export const NO_HOLD = 0;
export const SETTLED_BESIDE_WALLET = 2;
export const HOLD_LEFT = 3;
export const NOT_CLOSED = 4;

/** Token bucket units per request (see batch.lua). */
export const UNITS_PER_REQUEST = 60_000;

/** What a caller may be told about its rate limit. */
export type RateState = {
  /** Requests per minute. */
  readonly limit: number;
  /** Tokens in the bucket, in units. */
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
    // `limit` units come back per millisecond. Rounded up, so that waiting as long as stated is enough.
    resetSeconds: Math.max(0, Math.ceil(missing / limit / 1000)),
    retryAfterSeconds: toNext > 0 ? Math.max(1, Math.ceil(toNext / limit / 1000)) : 0,
  };
}
