import { networkOf } from '../platform/addresses.ts';
import type { HttpResponse } from './uws.ts';

/**
 * The caller's address for rate limits, shortened to the /64 if it is IPv6. Behind trusted proxies it is the address that the
 * outermost of them wrote into `X-Forwarded-For`. Without trusted proxies, or if the header has no valid address, it is the peer of
 * the connection.
 */
export function addressOf(response: HttpResponse, headers: readonly string[], trustedProxyHops: number): string {
  if (trustedProxyHops > 0) {
    const forwarded = forwardedFor(headers);
    const network = networkOf(forwarded[forwarded.length - trustedProxyHops]?.trim() ?? '');
    if (network !== null) return network;
  }
  const peer = Buffer.from(response.getRemoteAddressAsText()).toString('latin1');
  return networkOf(peer) ?? peer;
}

/**
 * All addresses in `X-Forwarded-For`, in order. Several header lines count as one list (RFC 9110 §5.3): a proxy may add a line
 * instead of extending the one it received.
 */
function forwardedFor(headers: readonly string[]): string[] {
  const addresses: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i] === 'x-forwarded-for') addresses.push(...(headers[i + 1] as string).split(','));
  }
  return addresses;
}
