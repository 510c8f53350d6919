import { isIP } from 'node:net';
import type { AddressPolicy } from './address-policy.ts';
import { parseEndpoint } from './endpoint.ts';

/**
 * Whether an endpoint's text alone shows that it may not be dialled. That is so if its host is an address (in any spelling) that
 * the policy forbids; or `localhost` or a name below it (RFC 6761 §6.3), and the policy permits neither 127.0.0.1 nor ::1. Any
 * other name has to be looked up. This is done when the name is dialled, because its addresses may change until then.
 *
 * @param endpoint a URL that `parseEndpoint` accepts
 */
export function isForbiddenLiteral(endpoint: string, policy: AddressPolicy): boolean {
  const { hostname } = parseEndpoint(endpoint).origin;
  if (isIP(hostname) !== 0) return !policy.permits(hostname);
  const isLoopback = hostname === 'localhost' || hostname.endsWith('.localhost');
  return isLoopback && !policy.permits('127.0.0.1') && !policy.permits('::1');
}

/**
 * Whether secrets may be sent to an endpoint: over TLS, or in clear to an address that the operator allows beyond the public
 * internet. Any name except `localhost` needs TLS, because its addresses may change later.
 *
 * @param endpoint a URL that `parseEndpoint` accepts
 */
export function maySendSecrets(endpoint: string, policy: AddressPolicy): boolean {
  const { protocol, hostname } = parseEndpoint(endpoint).origin;
  if (protocol === 'https:') return true;
  if (isIP(hostname) !== 0) return policy.allows(hostname);
  return hostname === 'localhost' && (policy.allows('127.0.0.1') || policy.allows('::1'));
}
