import { ApiError } from '../errors.ts';
import type { RefundReason } from '../ledger/usage-event.ts';
import type { UpstreamError } from '../upstream/index.ts';

/** The refund reason that is recorded for a call whose service failed. */
export function refundOf(error: UpstreamError): RefundReason {
  switch (error.code) {
    case 'busy':
      return 'upstream_busy';
    case 'head_timeout':
    case 'connect_timeout':
    case 'dns_timeout':
    case 'body_timeout':
      return 'upstream_timeout';
    default:
      return 'upstream_error';
  }
}

/** The facts that, with the status, decide whether an answer is paid for. */
export type Asked = {
  readonly isMcp: boolean;
  /** Whether the service got credentials, all of them added by its listing. */
  readonly hasListingCredentialsOnly: boolean;
};

/** Statuses by which a service refuses credentials, or says that they have no quota left. */
const DENIALS: ReadonlySet<number> = new Set([401, 407, 429]);

/**
 * The reason for which a call is refunded, as far as the answer's head shows one; null if it shows none.
 *
 * @param isKeyed whether the call has an idempotency key, so that its caller repeats it until it is answered
 */
export function refundOfAnswer(status: number, asked: Asked, isKeyed: boolean): RefundReason | null {
  if (status < 300) return null;
  if (status >= 500) return 'upstream_5xx';
  // Clients of the protocol do not follow redirects, and messages without the right `Accept` are refused before they reach the
  // service.
  if (asked.isMcp && (status < 400 || status === 406)) return 'upstream_error';
  if (DENIALS.has(status) && asked.hasListingCredentialsOnly) return 'upstream_denied';
  return status === 429 && isKeyed ? 'upstream_rate_limited' : null;
}

/**
 * Whether a failure counts for the service's breaker, provided that no response head has arrived. All count, with two exceptions:
 * 'busy', because a bound of the gateway was reached or the gateway is stopping; and 'dns_timeout', because the silent nameserver
 * may be the gateway's own, which must not open the breakers of all services. (A malformed response or a refused certificate
 * counts, too.)
 */
export function isSilence({ code }: UpstreamError): boolean {
  return code !== 'busy' && code !== 'dns_timeout';
}

/** The error for the caller. The service's addresses and certificates are the provider's business, so only the log has them. */
export function upstreamApiError(error: UpstreamError): ApiError {
  switch (refundOf(error)) {
    case 'upstream_busy':
      return busyServiceError();
    case 'upstream_timeout':
      return new ApiError('upstream_timeout');
    default:
      return new ApiError('upstream_error');
  }
}

/**
 * The error for a call that gets no connection to its service. Usually all connections are taken, and the line of waiting calls
 * is full or too slow. `UpstreamErrorCode` lists other causes of 'busy'.
 */
export function busyServiceError(): ApiError {
  return new ApiError('upstream_busy', undefined, { headers: { 'Retry-After': '1' } });
}

/** The error for callers of a service whose breaker is open. Nothing has been charged for the call. */
export function silentServiceError(retryAfterSeconds: number): ApiError {
  return new ApiError('upstream_busy', 'The service did not answer recent calls. Please retry later.', {
    headers: { 'Retry-After': String(retryAfterSeconds), 'X-ACF-Amount': '0' },
  });
}
