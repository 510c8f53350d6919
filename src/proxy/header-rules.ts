/**
 * Which headers pass (API.md, 'Proxy'). Hop-by-hop fields (RFC 9110 §7.6.1) and those that `Connection` names end here in
 * both directions; framing is always our own.
 */

const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'content-length',
];
/** `host` is the service's own; credentials and cookies of the caller are none of the service's business. */
const NOT_TO_SERVICE = new Set([...HOP_BY_HOP, 'host', 'authorization', 'cookie', 'expect', 'via']);
/** `date` is written by the edge, and cookies would be shared by all services behind this one origin. */
const NOT_TO_CALLER = new Set([...HOP_BY_HOP, 'set-cookie', 'set-cookie2', 'date', 'x-request-id']);

const VIA = '1.1 tollgate';

/** The fields that `Connection` names, or null. */
function connectionOptions(headers: readonly string[], lowerCased: boolean): Set<string> | null {
  let named: Set<string> | null = null;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    if (name.length !== 10 || (lowerCased ? name : name.toLowerCase()) !== 'connection') continue;
    named ??= new Set();
    for (const option of (headers[i + 1] as string).split(',')) named.add(option.trim().toLowerCase());
  }
  return named;
}

/**
 * Header lines for the service, as latin1 text: the caller's without what must not pass, and ours.
 *
 * @param headers  flat [name, value, …] with names in lower case and values free of control characters
 */
export function requestHeaderLines(headers: readonly string[], usageId: string, buyer: string): string {
  const named = connectionOptions(headers, true);
  let lines = '';
  let via = VIA;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    const value = headers[i + 1] as string;
    if (name === 'via') via = `${value}, ${VIA}`;
    if (NOT_TO_SERVICE.has(name) || named?.has(name)) continue;
    if (name.startsWith('x-acf-') || name.startsWith('x-forwarded-') || name.startsWith('proxy-')) continue;
    lines += `${name}: ${value}\r\n`;
  }
  lines += `via: ${via}\r\nx-acf-usage-id: ${usageId}\r\nx-acf-buyer: ${buyer}\r\n`;
  return asLatin1(lines);
}

/** Header lines for the caller: the service's without what must not pass. Values are latin1 and validated by the parser. */
export function responseHeaderLines(headers: readonly string[]): string {
  const named = connectionOptions(headers, false);
  let lines = '';
  for (let i = 0; i < headers.length; i += 2) {
    const original = headers[i] as string;
    const name = original.toLowerCase();
    if (NOT_TO_CALLER.has(name) || named?.has(name)) continue;
    if (name.startsWith('x-acf-') || name.startsWith('x-ratelimit-') || name.startsWith('ratelimit')) continue;
    if (name.startsWith('proxy-')) continue;
    lines += `${original}: ${headers[i + 1]}\r\n`;
  }
  return lines;
}

/** The edge decodes header values as UTF-8; on the wire they are bytes again. */
function asLatin1(lines: string): string {
  for (let i = 0; i < lines.length; i++) {
    if (lines.charCodeAt(i) > 0x7f) return Buffer.from(lines, 'utf8').toString('latin1');
  }
  return lines;
}
