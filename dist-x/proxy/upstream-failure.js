import { ApiError } from '../errors.js';
/** The refund reason that is recorded for a call whose service failed. */
export function refundOf(error) {
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
 * Whether a failure counts for the service's breaker, provided that no response head has arrived. All do except two: 'busy',
 * because a bound of the gateway was reached or the gateway is stopping; and 'dns_timeout', because the silent nameserver may
 * be the gateway's own, and that must not open the breakers of all services. (A malformed response or a refused certificate
 * counts, too.)
 */
export function isSilence({ code }) {
    return code !== 'busy' && code !== 'dns_timeout';
}
/** The error for the caller. The service's addresses and certificates are the provider's business: only the log has them. */
export function upstreamApiError(error) {
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
export function busyServiceError() {
    return new ApiError('upstream_busy', undefined, { headers: { 'Retry-After': '1' } });
}
/** The error for callers of a service whose breaker is open. Nothing has been charged for the call. */
export function silentServiceError(retryAfterSeconds) {
    return new ApiError('upstream_busy', 'The service did not answer recent calls. Please retry later.', {
        headers: { 'Retry-After': String(retryAfterSeconds), 'X-ACF-Amount': '0' },
    });
}
//# sourceMappingURL=upstream-failure.js.map