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

/**
 * Whether a failure means that the service does not answer, and so counts for its breaker. 'busy' is a bound of the gateway. A
 * nameserver that is silent may be the gateway's own, and that must not open the breakers of all services.
 */
export function isSilence({ code }: UpstreamError): boolean {
  return code !== 'busy' && code !== 'dns_timeout';
}

/** The error for the caller. Addresses and certificates of the service are the provider's business, and appear in the log only. */
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

/** All connections that the service may have are taken, and its queue of waiting calls is full. */
export function busyServiceError(): ApiError {
  return new ApiError('upstream_busy', undefined, { headers: { 'Retry-After': '1' } });
}

/** The error for callers of a service whose breaker is open. Nothing has been charged for the call. */
export function silentServiceError(retryAfterSeconds: number): ApiError {
  return new ApiError('upstream_busy', 'The service did not answer recent calls. Please retry later.', {
    headers: { 'Retry-After': String(retryAfterSeconds), 'X-ACF-Amount': '0' },
  });
}
