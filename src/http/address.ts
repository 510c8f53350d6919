import { networkOf } from '../platform/addresses.ts';
import type { HttpResponse } from './uws.ts';

/** The address rate limits count by: the peer's, or the one the outermost trusted proxy saw. */
export function addressOf(response: HttpResponse, headers: readonly string[], trustedProxyHops: number): string {
  if (trustedProxyHops > 0) {
    const forwarded = forwardedFor(headers);
    const network = networkOf(forwarded[forwarded.length - trustedProxyHops]?.trim() ?? '');
    if (network !== null) return network;
  }
  const peer = Buffer.from(response.getRemoteAddressAsText()).toString('latin1');
  return networkOf(peer) ?? peer;
}

/** All addresses in order. Several lines are one list (RFC 9110 §5.3): a proxy may add a line rather than a value. */
function forwardedFor(headers: readonly string[]): string[] {
  const addresses: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i] === 'x-forwarded-for') addresses.push(...(headers[i + 1] as string).split(','));
  }
  return addresses;
}
