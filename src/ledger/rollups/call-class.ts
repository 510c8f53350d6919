import type { Settlement } from '../usage-event.ts';

/** How a call ended, for statistics: the columns of `service_hours`, of which each call counts in exactly one. */
export const CALL_CLASSES = [
  'succeeded',
  'caller_errors',
  'caller_left',
  'upstream_error',
  'upstream_timeout',
  'upstream_5xx',
  'upstream_cut',
  'unavailable',
] as const;
export type CallClass = (typeof CALL_CLASSES)[number];

/** The service's own failures: `key_hours.failed`. */
export const SERVICE_FAILURES: readonly CallClass[] = [
  'upstream_error',
  'upstream_timeout',
  'upstream_5xx',
  'upstream_cut',
];

/** Every other outcome is `unavailable`: upstream_busy, unavailable and abandoned are the gateway's own failures. */
const CLASS_OF_OUTCOME: Readonly<Record<string, CallClass>> = {
  'refunded:caller_gone': 'caller_left',
  'refunded:invalid_request': 'caller_errors',
  'refunded:payload_too_large': 'caller_errors',
  'refunded:body_too_slow': 'caller_errors',
  'refunded:upstream_error': 'upstream_error',
  'refunded:upstream_timeout': 'upstream_timeout',
  'refunded:upstream_5xx': 'upstream_5xx',
  'refunded:upstream_cut': 'upstream_cut',
  // Treated like a charged 429 to a call without an idempotency key: its caller asked too often.
  'refunded:upstream_rate_limited': 'caller_errors',
  // The provider's credentials are as much a part of its service as its address.
  'refunded:upstream_denied': 'upstream_error',
};

/** The outcomes of these failures. */
export const FAILED_OUTCOMES: readonly string[] = Object.entries(CLASS_OF_OUTCOME).flatMap(([outcome, itsClass]) =>
  SERVICE_FAILURES.includes(itsClass) ? [outcome] : [],
);

const CALLER_LEFT = 499;

/**
 * The class of a call. If the caller left before the response began, that decides, however the call ended afterwards. A completed
 * call with a status of 5xx does not occur, since 5xx is refunded; if it did, the service would have failed.
 *
 * Tested by test/ledger/rollups/hours.test.ts.
 */
export function classOf({ outcome, status }: Pick<Settlement, 'outcome' | 'status'>): CallClass {
  if (status === CALLER_LEFT) return 'caller_left';
  if (outcome !== 'completed') return CLASS_OF_OUTCOME[outcome] ?? 'unavailable';
  if (status < 400) return 'succeeded';
  return status < 500 ? 'caller_errors' : 'upstream_5xx';
}
