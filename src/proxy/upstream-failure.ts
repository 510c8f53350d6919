import { ApiError } from '../errors.ts';
import type { RefundReason } from '../ledger/usage-event.ts';
import type { UpstreamError } from '../upstream/index.ts';

/** Why a call whose service failed is refunded, as its record says. */
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

/**
 * Whether a failure says that the service does not answer. 'busy' is our own bound, and a nameserver that is silent may be
 * ours as well: it must not close all services.
 */
export function isSilence({ code }: UpstreamError): boolean {
  return code !== 'busy' && code !== 'dns_timeout';
}

/** What the caller is told. Addresses and certificates of the service are the provider's business and stay in the log. */
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

/** The service has all the calls that it may have, and as many wait as may. */
export function busyServiceError(): ApiError {
  return new ApiError('upstream_busy', undefined, { headers: { 'Retry-After': '1' } });
}

/** What callers of a service with an open breaker are told, before anything is charged. */
export function silentServiceError(retryAfterSeconds: number): ApiError {
  return new ApiError('upstream_busy', 'The service did not answer recent calls. Please retry later.', {
    headers: { 'Retry-After': String(retryAfterSeconds), 'X-ACF-Amount': '0' },
  });
}
