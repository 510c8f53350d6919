import { headerOf } from './request-head.ts';
import type { HttpResponse } from './uws.ts';

const MAPPED = '0000:0000:0000:0000:0000:ffff:';

/**
 * The address rate limits count by: the peer's, or the one the outermost trusted proxy saw. IPv6 callers count by /64, which
 * is what one household or machine gets; single addresses in it are free to make up.
 */
export function addressOf(response: HttpResponse, headers: readonly string[], trustedProxyHops: number): string {
  if (trustedProxyHops > 0) {
    const forwarded = headerOf(headers, 'x-forwarded-for')?.split(',') ?? [];
    const address = forwarded[forwarded.length - trustedProxyHops]?.trim();
    if (address !== undefined && /^[0-9a-fA-F:.]{2,45}$/.test(address)) return address.toLowerCase();
  }
  const text = Buffer.from(response.getRemoteAddressAsText()).toString('latin1');
  // The addon writes IPv6 in full: eight groups of four digits.
  if (text.length !== 39 || text.startsWith(MAPPED)) return text;
  return `${text.slice(0, 19)}::/64`;
}
