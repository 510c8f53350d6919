import type { UpstreamErrorCode } from './upstream-error.ts';

/**
 * Why a service gave no answer, or no complete one, in words for its provider. Pages of the console show them, too, so nothing of
 * Node may be imported here.
 */
export const FAILURE_TEXTS: Readonly<Record<UpstreamErrorCode, string>> = {
  address_forbidden: 'The address is not on the public internet.',
  dns_failed: 'The name of the endpoint has no address.',
  dns_timeout: 'No nameserver answered in time.',
  connect_failed: 'Nothing accepts connections at the address.',
  connect_timeout: 'Connecting took too long.',
  tls_expired: 'The TLS certificate has expired, or is not valid yet.',
  tls_wrong_name: 'The TLS certificate is for another name.',
  tls_untrusted:
    'The TLS certificate is signed by no authority that the gateway trusts, or an intermediate certificate is missing.',
  tls_failed: 'The TLS handshake failed.',
  reset: 'The connection ended before the answer did.',
  head_timeout: 'No answer began in time.',
  body_timeout: 'The answer fell silent for too long.',
  malformed_response: 'The answer was not valid HTTP.',
  busy: 'The gateway could not ask: too many connections were waiting.',
};
