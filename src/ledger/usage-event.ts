import { isUuid } from '../platform/ids.ts';

/**
 * The usage event: what settling a call appends to the stream, and the only thing the writer knows of it. Both parts are
 * tab-separated text, so that neither the hot path nor the Lua script serialises anything.
 *
 *   i  usage_id
 *   h  the hold as it was open: amount, free (0|1), admitted at (ms), instance, account, key, service, provider, method, path
 *   s  the settlement: outcome, status, latency (µs), request bytes, response bytes
 */

export type RefundReason =
  | 'upstream_error'
  | 'upstream_timeout'
  | 'upstream_busy'
  | 'upstream_5xx'
  | 'upstream_cut'
  | 'caller_gone'
  | 'payload_too_large'
  | 'invalid_request'
  | 'unavailable';

export type Outcome = 'completed' | 'abandoned' | `refunded:${RefundReason}`;

export type Settlement = {
  readonly outcome: Outcome;
  /** HTTP status the caller was answered; 499 when it left before one was sent, 0 when nobody knows. */
  readonly status: number;
  readonly latencyUs: number;
  readonly requestBytes: number;
  readonly responseBytes: number;
};

/** One settled call as the writer stores it. Amounts in micro-USD. */
export type UsageEvent = Settlement & {
  readonly usageId: string;
  /** What the hold took; charged only when the outcome is `completed`. */
  readonly heldMicros: number;
  readonly freeTier: boolean;
  readonly admittedAtMs: number;
  readonly accountId: string;
  readonly keyId: string;
  readonly serviceId: string;
  readonly providerId: string;
  readonly method: string;
  readonly path: string;
};

export function encodeSettlement(s: Settlement): string {
  return `${s.outcome}\t${s.status}\t${s.latencyUs}\t${s.requestBytes}\t${s.responseBytes}`;
}

/** What the sweep records for a call whose gateway died. */
export const ABANDONED = encodeSettlement({
  outcome: 'abandoned',
  status: 0,
  latencyUs: 0,
  requestBytes: 0,
  responseBytes: 0,
});

/** What cancelling records for a call whose admission had no reply: the caller was told 503. */
export const CANCELLED = encodeSettlement({
  outcome: 'refunded:unavailable',
  status: 503,
  latencyUs: 0,
  requestBytes: 0,
  responseBytes: 0,
});

const OUTCOME = /^(completed|abandoned|refunded:[a-z0-9_]{1,40})$/;
const MAX_SMALLINT = 32_767;

function integer(text: string | undefined, name: string, maximum: number = Number.MAX_SAFE_INTEGER): number {
  if (text === undefined || !/^\d{1,16}$/.test(text)) throw new Error(`usage event: ${name} is not a number: ${text}`);
  const value = Number(text);
  if (value > maximum) throw new Error(`usage event: ${name} is too large: ${text}`);
  return value;
}

function uuid(text: string | undefined, name: string): string {
  if (text === undefined || !isUuid(text)) throw new Error(`usage event: ${name} is not a UUID: ${text}`);
  return text;
}

/** Text that Postgres can store: it knows no NUL. */
function storable(text: string | undefined, name: string): string {
  if (text === undefined || text.includes('\0')) throw new Error(`usage event: ${name} is missing or has a NUL`);
  return text;
}

function outcome(text: string | undefined): Outcome {
  if (text === undefined || !OUTCOME.test(text)) throw new Error(`usage event: unknown outcome: ${text}`);
  return text as Outcome;
}

/**
 * Reads the parts of an event. Throws on anything that batch.lua and `encodeSettlement` cannot have written, so that the
 * writer can put it aside before Postgres refuses the whole batch for it.
 */
export function decodeUsageEvent(usageId: string, hold: string, settlement: string): UsageEvent {
  const h = hold.split('\t');
  const s = settlement.split('\t');
  if (h.length !== 10 || s.length !== 5) throw new Error('usage event: wrong number of fields');
  if (h[1] !== '0' && h[1] !== '1') throw new Error(`usage event: free is neither 0 nor 1: ${h[1]}`);
  return {
    usageId: uuid(usageId, 'usage_id'),
    heldMicros: integer(h[0], 'amount'),
    freeTier: h[1] === '1',
    admittedAtMs: integer(h[2], 'admitted at'),
    accountId: uuid(h[4], 'account'),
    keyId: storable(h[5], 'key'),
    serviceId: uuid(h[6], 'service'),
    providerId: uuid(h[7], 'provider'),
    method: storable(h[8], 'method'),
    path: storable(h[9], 'path'),
    outcome: outcome(s[0]),
    status: integer(s[1], 'status', MAX_SMALLINT),
    latencyUs: integer(s[2], 'latency'),
    requestBytes: integer(s[3], 'request bytes'),
    responseBytes: integer(s[4], 'response bytes'),
  };
}

/** What the buyer pays in the end, in micro-USD. */
export function chargedMicros(event: UsageEvent): number {
  return event.outcome === 'completed' && !event.freeTier ? event.heldMicros : 0;
}

/**
 * The platform's share of a charge, rounded down. Split at 10 000 so that no product leaves the exact range of a number.
 */
export function feeMicros(amountMicros: number, basisPoints: number): number {
  const whole = Math.floor(amountMicros / 10_000);
  return whole * basisPoints + Math.floor(((amountMicros % 10_000) * basisPoints) / 10_000);
}
