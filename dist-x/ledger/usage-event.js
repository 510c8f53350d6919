import { isUuid } from '../platform/ids.js';
export function encodeSettlement(s) {
    return `${s.outcome}\t${s.status}\t${s.latencyUs}\t${s.requestBytes}\t${s.responseBytes}`;
}
/** The settlement that the sweep records for a call whose gateway died. */
export const ABANDONED = encodeSettlement({
    outcome: 'abandoned',
    status: 0,
    latencyUs: 0,
    requestBytes: 0,
    responseBytes: 0,
});
/** The settlement that a cancellation records for a call whose admission got no reply. The caller was told 503. */
export const CANCELLED = encodeSettlement({
    outcome: 'refunded:unavailable',
    status: 503,
    latencyUs: 0,
    requestBytes: 0,
    responseBytes: 0,
});
const OUTCOME = /^(completed|abandoned|refunded:[a-z0-9_]{1,40})$/;
const MAX_SMALLINT = 32_767;
/** A regular expression and `Number` took 0.06 µs more per number, and an event has six numbers. */
function digits(text) {
    if (text === undefined || text.length === 0 || text.length > 16)
        return null;
    let value = 0;
    for (let i = 0; i < text.length; i++) {
        const digit = text.charCodeAt(i) - 0x30;
        if (digit < 0 || digit > 9)
            return null;
        value = value * 10 + digit;
    }
    return value;
}
function integer(text, name, maximum = Number.MAX_SAFE_INTEGER) {
    const value = digits(text);
    if (value === null)
        throw new Error(`usage event: ${name} is not a number: ${text}`);
    if (value > maximum)
        throw new Error(`usage event: ${name} is too large: ${text}`);
    return value;
}
function uuid(text, name) {
    if (text === undefined || !isUuid(text))
        throw new Error(`usage event: ${name} is not a UUID: ${text}`);
    return text;
}
/** How many ids of services and providers are kept at most; then all are forgotten. */
const MAX_SHARED_IDS = 1_000;
const sharedIds = new Map();
/**
 * The id of a service or a provider. Such ids occur again and again, so each is checked once, and its events share one string:
 * comparing it with itself, or looking it up again, needs no look at its letters.
 */
function sharedUuid(text, name) {
    const shared = sharedIds.get(text ?? '');
    if (shared !== undefined)
        return shared;
    // A copy, because a slice would keep the whole text of its event.
    const id = Buffer.from(uuid(text, name), 'latin1').toString('latin1');
    if (sharedIds.size >= MAX_SHARED_IDS)
        sharedIds.clear();
    sharedIds.set(id, id);
    return id;
}
/** A text that Postgres can store: Postgres text cannot contain NUL. */
function storable(text, name) {
    if (text === undefined || text.includes('\0'))
        throw new Error(`usage event: ${name} is missing or has a NUL`);
    return text;
}
function outcome(text) {
    if (text === 'completed')
        return text;
    if (text === undefined || !OUTCOME.test(text))
        throw new Error(`usage event: unknown outcome: ${text}`);
    return text;
}
/** Whether a stream field is a usage event that this version can read. */
export const isEvent = (field) => field === 'e1';
/** Whether a stream field is a usage event of a newer version. Only a writer of that version can store it. */
export const isNewerEvent = (field) => field !== undefined && !isEvent(field) && /^e[1-9]\d{0,3}$/.test(field);
/** Number of fields of an event. */
const FIELDS = 17;
/**
 * Reads an event. Throws on text that batch.lua and `encodeSettlement` cannot have written. The writer then puts that event into
 * `rejected_events`; otherwise Postgres would refuse the whole batch because of it.
 */
export function decodeUsageEvent(text) {
    const f = text.split('\t');
    if (f.length !== FIELDS)
        throw new Error('usage event: wrong number of fields');
    if (f[1] !== 'v1')
        throw new Error(`usage event: the hold has another version: ${f[1]}`);
    if (f[3] !== '0' && f[3] !== '1')
        throw new Error(`usage event: free is neither 0 nor 1: ${f[3]}`);
    return {
        usageId: uuid(f[0], 'usage_id'),
        heldMicros: integer(f[2], 'amount'),
        freeTier: f[3] === '1',
        admittedAtMs: integer(f[4], 'admitted at'),
        accountId: uuid(f[6], 'account'),
        keyId: storable(f[7], 'key'),
        serviceId: sharedUuid(f[8], 'service'),
        providerId: sharedUuid(f[9], 'provider'),
        method: storable(f[10], 'method'),
        path: storable(f[11], 'path'),
        outcome: outcome(f[12]),
        status: integer(f[13], 'status', MAX_SMALLINT),
        latencyUs: integer(f[14], 'latency'),
        requestBytes: integer(f[15], 'request bytes'),
        responseBytes: integer(f[16], 'response bytes'),
    };
}
/** What the buyer pays for the call, in micro-USD. */
export function chargedMicros(event) {
    return event.outcome === 'completed' && !event.freeTier ? event.heldMicros : 0;
}
/**
 * Begins the end of a recorded path that says which free message of an MCP server the call was. A request target has no `#` (the
 * edge refuses it), so no path of another call has one.
 */
export const MESSAGE_MARK = '#';
/**
 * Whether statistics count the call. They count what was charged, and what buyers called. They leave out what cost nothing and
 * was no use of the service by a buyer: free messages to MCP servers, and calls that providers made of their own listings.
 *
 * Tested by test/ledger/rollups/hours.test.ts. `COUNTED_SQL` says the same in SQL, for pages: test/accounts/usage-sums.test.ts.
 */
export function isCounted({ accountId, providerId, path }, amountMicros) {
    return amountMicros > 0 || (accountId !== providerId && !path.includes(MESSAGE_MARK));
}
/** `isCounted` as a condition on columns of `calls`. */
export const COUNTED_SQL = `(amount > 0 OR (account_id <> provider_id AND strpos(path, '${MESSAGE_MARK}') = 0))`;
/**
 * The platform's share of a charge, rounded down. The amount is split into multiples of 10 000 and a rest, because amount times
 * basis points could exceed 2^53.
 */
export function feeMicros(amountMicros, basisPoints) {
    const whole = Math.floor(amountMicros / 10_000);
    return whole * basisPoints + Math.floor(((amountMicros % 10_000) * basisPoints) / 10_000);
}
//# sourceMappingURL=usage-event.js.map