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

function integer(text: string | undefined, name: string): number {
  if (text === undefined || !/^\d{1,16}$/.test(text)) throw new Error(`usage event: ${name} is not a number: ${text}`);
  return Number(text);
}

/** Reads the parts of an event. Throws on anything that batch.lua and `encodeSettlement` cannot have written. */
export function decodeUsageEvent(usageId: string, hold: string, settlement: string): UsageEvent {
  const h = hold.split('\t');
  const s = settlement.split('\t');
  if (h.length !== 10 || s.length !== 5) throw new Error('usage event: wrong number of fields');
  return {
    usageId,
    heldMicros: integer(h[0], 'amount'),
    freeTier: h[1] === '1',
    admittedAtMs: integer(h[2], 'admitted at'),
    accountId: h[4] as string,
    keyId: h[5] as string,
    serviceId: h[6] as string,
    providerId: h[7] as string,
    method: h[8] as string,
    path: h[9] as string,
    outcome: s[0] as Outcome,
    status: integer(s[1], 'status'),
    latencyUs: integer(s[2], 'latency'),
    requestBytes: integer(s[3], 'request bytes'),
    responseBytes: integer(s[4], 'response bytes'),
  };
}
