import type { HttpResponse } from './uws.ts';

const IPV4 = /^\d{1,3}(?:\.\d{1,3}){3}$/;

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

/**
 * What counts as one caller: an IPv4 address, or the /64 of an IPv6 address, which is what one household or machine gets;
 * single addresses in it are free to make up. Null for anything else.
 */
export function networkOf(address: string): string | null {
  if (IPV4.test(address)) return address;
  if (!address.includes(':')) return null;
  let canonical: string;
  try {
    // The URL parser knows every way to write an IPv6 address, and one to write it back.
    canonical = new URL(`http://[${address}]/`).hostname.slice(1, -1);
  } catch {
    return null;
  }
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(canonical);
  if (mapped !== null) return ipv4Of(mapped[1] as string, mapped[2] as string);
  const [before, after] = canonical.split('::');
  const head = before === undefined || before === '' ? [] : before.split(':');
  const tail = after === undefined || after === '' ? [] : after.split(':');
  const groups = after === undefined ? head : [...head, ...Array(8 - head.length - tail.length).fill('0'), ...tail];
  return `${groups.slice(0, 4).join(':')}::/64`;
}

function ipv4Of(high: string, low: string): string {
  const bits = (Number.parseInt(high, 16) << 16) | Number.parseInt(low, 16);
  return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 255).join('.');
}
