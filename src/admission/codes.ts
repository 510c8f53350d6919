import type { Damage } from '../ledger/damage-log.ts';

/** The code of scripts/batch.lua for an admission or a request for a token that it granted. */
export const OK = 0;

/** Why a request of any kind is refused. gate/gate.ts makes the error. */
export type KeyRefusal = 'rate_limited' | 'revoked' | 'expired' | 'suspended';
/** Why a call is refused. No other request can be refused for this. proxy/refusals.ts makes the error. */
export type CallRefusal = 'insufficient_balance' | 'damaged';

/**
 * Another call has the idempotency key: it is under way, was a different request, or was charged. Or the account has too many
 * idempotency keys.
 */
export type ClaimRefusal = 'call_in_progress' | 'idempotency_mismatch' | 'charged_before' | 'claims_full';

/** What the gateway does after a code of batch.lua other than OK. */
type Refusal =
  /** Redis lacks the state of the key or the wallet: it is loaded from Postgres, and the command is sent again. */
  | { readonly does: 'load'; readonly what: 'key' | 'wallet' }
  | { readonly does: 'refuse'; readonly outcome: KeyRefusal; readonly damage?: Damage }
  | { readonly does: 'refuse_call'; readonly outcome: CallRefusal; readonly damage?: Damage }
  /** Only calls with an idempotency key are refused for this. */
  | { readonly does: 'refuse_for_claim'; readonly outcome: ClaimRefusal }
  /** Only calls of child keys are refused for this: the reply says which budget it was. */
  | { readonly does: 'refuse_for_budget' }
  /** The caller gets 503 `unavailable`. */
  | { readonly does: 'fail'; readonly damage?: Damage };

/**
 * The codes that batch.lua replies to admissions and requests for tokens; its header says what each means. Nothing else in the gateway knows their numbers.
 * Damage is counted and logged (ledger/damage-log.ts). A code without a row grants nothing: `AdmitCommand` and `TakeCommand` answer
 * 503, and log it.
 */
export const REFUSALS: { readonly [code: number]: Refusal } = {
  1: { does: 'refuse', outcome: 'rate_limited' },
  2: { does: 'refuse', outcome: 'revoked' },
  3: { does: 'load', what: 'key' },
  4: { does: 'load', what: 'wallet' },
  5: { does: 'refuse_call', outcome: 'insufficient_balance' },
  6: { does: 'fail' },
  7: { does: 'refuse', outcome: 'suspended' },
  8: { does: 'refuse_call', outcome: 'damaged', damage: 'wallet' },
  9: { does: 'fail', damage: 'shard' },
  10: { does: 'fail', damage: 'key' },
  11: { does: 'refuse_for_budget' },
  12: { does: 'refuse', outcome: 'expired' },
  13: { does: 'refuse_for_claim', outcome: 'call_in_progress' },
  14: { does: 'refuse_for_claim', outcome: 'idempotency_mismatch' },
  15: { does: 'refuse_for_claim', outcome: 'charged_before' },
  16: { does: 'refuse_for_claim', outcome: 'claims_full' },
};

/** Codes that scripts/batch.lua replies to a settlement or a cancellation. */
export const NO_HOLD = 0;
export const SETTLED = 1;
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
