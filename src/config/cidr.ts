const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;
const IPV6_GROUP = /^[0-9a-f]{1,4}$/i;
const PREFIX = /^(?:0|[1-9]\d{0,2})$/;

/** Whether the text is an address range: '10.0.0.0/8', 'fd00::/8'. IPv6 as in RFC 4291 §2.2, without a zone. */
export function isCidr(text: string): boolean {
  const [address, prefix, ...rest] = text.split('/');
  if (address === undefined || prefix === undefined || rest.length > 0 || !PREFIX.test(prefix)) return false;
  if (IPV4.test(address)) return Number(prefix) <= 32;
  return isIpv6(address) && Number(prefix) <= 128;
}

function isIpv6(text: string): boolean {
  const [head = '', tail, ...rest] = text.split('::');
  if (rest.length > 0) return false;
  // Only the end of the whole address may be written as IPv4.
  if (tail === undefined) return groupsIn(head, true) === 8;
  const groups = groupsIn(head, false) + groupsIn(tail, true);
  return groups <= 7;
}

/** How many 16-bit groups the text has; Infinity when it is anything else. */
function groupsIn(text: string, mayEndInIpv4: boolean): number {
  if (text === '') return 0;
  const parts = text.split(':');
  const endsInIpv4 = mayEndInIpv4 && IPV4.test(parts.at(-1) as string);
  if (endsInIpv4) parts.pop();
  return parts.every((part) => IPV6_GROUP.test(part)) ? parts.length + (endsInIpv4 ? 2 : 0) : Number.POSITIVE_INFINITY;
}
