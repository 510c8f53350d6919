import { isIP } from 'node:net';
import type { AddressPolicy } from './address-policy.ts';
import { parseEndpoint } from './endpoint.ts';

/**
 * Whether an endpoint says by itself that it may not be dialled: its host is an address, in whatever spelling, that the policy
 * forbids, or a name of the loopback (RFC 6761 §6.3). For any other name only its look-up can tell, and that is done when it
 * is dialled: an answer from now would say nothing about then.
 *
 * @param endpoint what `parseEndpoint` takes
 */
export function isForbiddenLiteral(endpoint: string, policy: AddressPolicy): boolean {
  const { hostname } = parseEndpoint(endpoint).origin;
  if (isIP(hostname) !== 0) return !policy.permits(hostname);
  const isLoopback = hostname === 'localhost' || hostname.endsWith('.localhost');
  return isLoopback && !policy.permits('127.0.0.1') && !policy.permits('::1');
}
