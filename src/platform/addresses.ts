import { isIP, isIPv4, isIPv6 } from 'node:net';

const PREFIX = /^(?:0|[1-9]\d{0,2})$/;
const PREFIX_BITS: { readonly [version: number]: number } = { 4: 32, 6: 128 };

/** Whether the text is an address range such as '10.0.0.0/8' or 'fd00::/8'. Zones ('fe80::%eth0/10') are refused. */
export function isCidr(text: string): boolean {
  const [address = '', prefix = '', ...rest] = text.split('/');
  const bits = address.includes('%') ? undefined : PREFIX_BITS[isIP(address)];
  return bits !== undefined && rest.length === 0 && PREFIX.test(prefix) && Number(prefix) <= bits;
}

/**
 * The network that counts as one caller: an IPv4 address (also if written as IPv4-mapped IPv6), or the /64 of any other IPv6
 * address. A household or a machine gets a /64, and can use any address in it, so a limit per IPv6 address would limit nobody. Null
 * for an IPv6 address with a zone, and for text that is not an address.
 */
export function networkOf(address: string): string | null {
  if (isIPv4(address)) return address;
  // A zone ('%eth0') names an interface of the machine that wrote the address. Callers' addresses have none.
  if (!isIPv6(address) || address.includes('%')) return null;
  // The URL parser accepts every way to write an IPv6 address, and writes it back in one way.
  const canonical = new URL(`http://[${address}]/`).hostname.slice(1, -1);
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
