/** Code that scripts/batch.lua replies to 'A' (admit a call) and 'T' (take a token) when it granted what was asked. */
export const OK = 0;
/**
 * The codes that batch.lua replies to 'A' and 'T'; its header says what each means. Nothing else in the gateway knows their numbers.
 * Damage is counted and logged (ledger/damage-log.ts). A code without a row grants nothing: `AdmitCommand` and `TakeCommand` answer
 * 503, and log it.
 */
export const REFUSALS = {
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
};
/** Codes that scripts/batch.lua replies to a settlement or a cancellation. */
export const NO_HOLD = 0;
export const SETTLED = 1;
export const SETTLED_BESIDE_WALLET = 2;
export const HOLD_LEFT = 3;
export const NOT_CLOSED = 4;
/** How many units of a token bucket one request takes (batch.lua says why 60 000). */
export const UNITS_PER_REQUEST = 60_000;
/** Translates a bucket's `limit` and `tokens`, as the script replies them, into what the rate-limit headers say. */
export function rateState(limit, tokens) {
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
//# sourceMappingURL=codes.js.map