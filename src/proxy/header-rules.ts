import { CREDENTIALS_CHARS, hasCredentials } from '../keys/credentials.ts';

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
/** `host` is the service's own. */
const OURS_TO_SAY = ['host', 'expect', 'via'];
/**
 * What carries credentials by custom. A client library sends what it finds in its environment, without being told to: the
 * key of a provider that the caller pays elsewhere, to whoever listed this service. (`proxy-authorization` goes with its prefix.)
 */
const CREDENTIALS = ['authorization', 'cookie', 'x-api-key', 'api-key', 'x-goog-api-key', 'x-auth-token'];
/** Who the caller is, as proxies before us say it (RFC 7239 and habit): the service knows a pseudonym only. */
const CALLER_ADDRESS = [
  'forwarded',
  'from',
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'true-client-ip',
  'fastly-client-ip',
  'cf-connecting-ip',
  'cf-connecting-ipv6',
  'forwarded-for',
  'x-forwarded',
  'client-ip',
  'x-original-for',
  'x-remote-addr',
  'x-remote-ip',
  'x-originating-ip',
  'x-envoy-external-address',
  'x-azure-clientip',
  'x-azure-socketip',
  'fly-client-ip',
  'x-vercel-forwarded-for',
  'do-connecting-ip',
  'x-appengine-user-ip',
  'cf-pseudo-ipv4',
  'wl-proxy-client-ip',
];
/** What a client applies to the whole origin, and so to every other service behind it. */
const ORIGIN_WIDE = [
  'set-cookie',
  'set-cookie2',
  'strict-transport-security',
  'alt-svc',
  'clear-site-data',
  'service-worker-allowed',
  'public-key-pins',
];
/** Written by the edge. */
const OURS_TO_CALLER = ['date', 'x-request-id'];

const VIA = '1.1 tollgate';

/** Longer names have nothing but a prefix to be known by, and are looked up as if they had this length. */
const LONGEST = 63;

/**
 * Names that do not pass: these, and all that begin with one of the prefixes. Any case; an underscore counts as a dash, because
 * CGI and its heirs (RFC 3875 §4.1.18) read `x_acf_buyer` and `x-acf-buyer` as the same HTTP_X_ACF_BUYER.
 *
 * By first letter and length there is nothing to compare most names with, and one or two for the rest. A `Set` has to hash each
 * name first (0.1 µs each in the middle of a call), and to be asked in lower case.
 */
class Blocked {
  readonly #suspects: (string[] | undefined)[] = new Array(32 * (LONGEST + 1)).fill(undefined);

  /** @param names and prefixes in lower case, shorter than LONGEST */
  constructor(names: readonly string[], prefixes: readonly string[]) {
    for (const name of names) this.#suspect(name, name.length);
    for (const prefix of prefixes) {
      for (let length = prefix.length; length <= LONGEST; length++) this.#suspect(prefix, length);
    }
  }

  has(name: string): boolean {
    const suspects = this.#suspects[place(name, Math.min(name.length, LONGEST))];
    if (suspects === undefined) return false;
    // Of the names those of this length only: to begin with one is to be it.
    for (const suspect of suspects) if (beginsWith(name, suspect)) return true;
    return false;
  }

  #suspect(start: string, length: number): void {
    const at = place(start, length);
    this.#suspects[at] = [...(this.#suspects[at] ?? []), start];
  }
}

/** The five low bits of a letter are the same in both cases. */
function place(name: string, length: number): number {
  return (name.charCodeAt(0) & 31) * (LONGEST + 1) + length;
}

/** Character code of a header's name → the one it is compared as. */
const FOLDED = new Uint8Array(128);
for (let code = 0; code < 128; code++) {
  FOLDED[code] = String.fromCharCode(code).toLowerCase().replace('_', '-').charCodeAt(0);
}

function beginsWith(name: string, start: string): boolean {
  for (let i = 0; i < start.length; i++) if (FOLDED[name.charCodeAt(i)] !== start.charCodeAt(i)) return false;
  return true;
}

const notToService = new Blocked(
  [...HOP_BY_HOP, ...OURS_TO_SAY, ...CREDENTIALS, ...CALLER_ADDRESS],
  ['x-acf-', 'x-forwarded-', 'x-original-forwarded-', 'proxy-'],
);
const notToCaller = new Blocked(
  [...HOP_BY_HOP, ...ORIGIN_WIDE, ...OURS_TO_CALLER],
  ['x-acf-', 'x-ratelimit-', 'ratelimit', 'proxy-'],
);

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

/** A key of ours passes in no header, whatever its name. Of what a typical SDK sends no other value is long enough to be searched. */
function carriesKey(value: string): boolean {
  return value.length >= CREDENTIALS_CHARS && hasCredentials(value);
}

/**
 * Header lines for the service, as latin1 text: the caller's without what must not pass, and ours.
 *
 * @param head  flat [name, value, …] with names in lower case and values free of control characters
 */
export function requestHeaderLines(
  { headers, isAscii }: { readonly headers: readonly string[]; readonly isAscii: boolean },
  usageId: string,
  buyer: string,
): string {
  const named = connectionOptions(headers, true);
  let lines = '';
  let via = VIA;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    const value = headers[i + 1] as string;
    if (notToService.has(name) || named?.has(name)) {
      if (name === 'via' && !carriesKey(value)) via = `${value}, ${VIA}`;
      continue;
    }
    if (carriesKey(value)) continue;
    lines += `${name}: ${value}\r\n`;
  }
  lines += `via: ${via}\r\nx-acf-usage-id: ${usageId}\r\nx-acf-buyer: ${buyer}\r\n`;
  // The edge decodes header values as UTF-8; on the wire they are bytes again.
  return isAscii ? lines : Buffer.from(lines, 'utf8').toString('latin1');
}

/**
 * Header lines for the caller, each with its CRLF in front: the service's without what must not pass. Values are latin1 and
 * validated by the parser.
 */
export function responseHeaderLines(headers: readonly string[]): string {
  const named = connectionOptions(headers, false);
  let lines = '';
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    if (notToCaller.has(name) || named?.has(name.toLowerCase())) continue;
    lines += `\r\n${name}: ${headers[i + 1]}`;
  }
  return lines;
}
