import { CREDENTIAL_HEADERS } from '../catalog/listing-secrets.ts';
import { CREDENTIALS_CHARS, hasCredentials } from '../keys/credentials.ts';

/**
 * Which headers pass from the caller to the service and back (docs/api.md, 'Proxy'). In both directions, hop-by-hop fields (RFC
 * 9110 §7.6.1) and the fields that `Connection` names stop here, and the gateway writes its own framing headers.
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
/** The gateway writes `host` (the service's own) and `via` itself, and has answered `expect` already. */
const OURS_TO_SAY = ['host', 'expect', 'via'];
/** Headers in which proxies in front of the gateway name the caller (RFC 7239 and custom). The service learns only a pseudonym. */
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
/**
 * Response headers that a client applies to a whole origin. Here that is the gateway's origin, so one service would affect all
 * others.
 */
const ORIGIN_WIDE = [
  'set-cookie',
  'set-cookie2',
  'strict-transport-security',
  'alt-svc',
  'clear-site-data',
  'service-worker-allowed',
  'public-key-pins',
  // Reports about failed requests (Network Error Logging, Reporting API) contain the URLs of calls to other services.
  'nel',
  'report-to',
  // A compression dictionary for paths of other services (RFC 9842).
  'use-as-dictionary',
];
/** Response headers that the HTTP edge writes itself. */
const OURS_TO_CALLER = ['date', 'x-request-id'];

/** Response headers with a URL that may lead into the endpoint. They do not pass unchanged: see redirects.ts. */
const LOCATIONS = ['location', 'content-location'];

function isLocation(name: string): boolean {
  return (name.length === 8 || name.length === 16) && LOCATIONS.includes(name.toLowerCase());
}

/** Translates a service's `Location` or `Content-Location` for the caller. */
export interface Locations {
  /** @returns null if the header must be left out */
  location(value: string): string | null;
}

/**
 * Keeps a service's HTML from running as a page of the gateway. A page of any origin can fetch it with a key, and then navigate to
 * the same URL: Chromium takes it from its cache, without a key. Its scripts would run with the gateway's origin, next to those of
 * all other services. Only documents obey this header, calls do not. The service's own policy applies in addition. (CSP3 §6.3.2)
 */
const NO_PAGE = '\r\nContent-Security-Policy: sandbox';

const VIA = '1.1 tollgate';

/** In the index of `Blocked`, a longer name is looked up as if it had this length. Only a prefix can block such a name. */
const LONGEST = 63;

/**
 * Header names that do not pass: the given names, and all that begin with one of the prefixes. Case does not matter, and an
 * underscore counts as a dash, because CGI and its heirs (RFC 3875 §4.1.18) read `x_acf_buyer` and `x-acf-buyer` as the same
 * HTTP_X_ACF_BUYER.
 *
 * The blocked names are indexed by first letter and length. Most headers then have no candidate to be compared with, the rest one
 * or two. A `Set` would have to hash each name first (0.1 µs each in the middle of a call), and would need it in lower case.
 */
class Blocked {
  readonly #suspects: (string[] | undefined)[] = new Array(32 * (LONGEST + 1)).fill(undefined);

  /** @param names in lower case and shorter than LONGEST, like the prefixes */
  constructor(names: readonly string[], prefixes: readonly string[]) {
    for (const name of names) this.#suspect(name, name.length);
    for (const prefix of prefixes) {
      for (let length = prefix.length; length <= LONGEST; length++) this.#suspect(prefix, length);
    }
  }

  has(name: string): boolean {
    const suspects = this.#suspects[indexOf(name, Math.min(name.length, LONGEST))];
    if (suspects === undefined) return false;
    // `suspect` is a prefix, or a whole name exactly as long as `name`. So a name that begins with `suspect` is blocked.
    for (const suspect of suspects) if (beginsWith(name, suspect)) return true;
    return false;
  }

  #suspect(start: string, length: number): void {
    const at = indexOf(start, length);
    this.#suspects[at] = [...(this.#suspects[at] ?? []), start];
  }
}

/** The index of a name in `#suspects`. The five low bits of a letter are the same in upper and lower case. */
function indexOf(name: string, length: number): number {
  return (name.charCodeAt(0) & 31) * (LONGEST + 1) + length;
}

/** Maps each character code of a header name to the one it is compared as: upper case to lower case, an underscore to a dash. */
const FOLDED = new Uint8Array(128);
for (let code = 0; code < 128; code++) {
  FOLDED[code] = String.fromCharCode(code).toLowerCase().replace('_', '-').charCodeAt(0);
}

function beginsWith(name: string, start: string): boolean {
  for (let i = 0; i < start.length; i++) if (FOLDED[name.charCodeAt(i)] !== start.charCodeAt(i)) return false;
  return true;
}

const notToService = new Blocked(
  [...HOP_BY_HOP, ...OURS_TO_SAY, ...CREDENTIAL_HEADERS, ...CALLER_ADDRESS],
  // The gateway answers a browser's preflights, so their headers are of no use to a service.
  ['x-acf-', 'x-forwarded-', 'x-original-forwarded-', 'proxy-', 'access-control-request-'],
);
const notToCaller = new Blocked(
  [...HOP_BY_HOP, ...ORIGIN_WIDE, ...OURS_TO_CALLER, ...LOCATIONS],
  // The gateway says which pages may read a response. Two values of `Access-Control-Allow-Origin` would make browsers refuse it.
  ['x-acf-', 'x-ratelimit-', 'ratelimit', 'proxy-', 'access-control-'],
);

/** The names of the headers that `Connection` lists, in lower case; null when there is no `Connection` header. */
export function connectionOptions(headers: readonly string[], lowerCased: boolean): Set<string> | null {
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
 * Whether the value of a request header contains an API key of this gateway. Such a header does not reach the service, whatever
 * its name. The length check spares most searches: of the values that a typical SDK sends, only the key is long enough.
 */
export function carriesKey(value: string): boolean {
  return value.length >= CREDENTIALS_CHARS && hasCredentials(value);
}

/**
 * Header lines for the service, as latin1 text: the caller's headers except those that must not pass, then the gateway's own.
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
  return asSent(lines, isAscii);
}

/** The HTTP edge decoded the values as UTF-8. This restores the bytes that the caller sent, each as one latin1 character. */
export function asSent(lines: string, isAscii: boolean): string {
  return isAscii ? lines : Buffer.from(lines, 'utf8').toString('latin1');
}

/**
 * Header lines for the caller, each with a CRLF in front: the service's headers except those that must not pass, and NO_PAGE.
 * Values are latin1, and the parser has validated them. `Location` and `Content-Location` are among the blocked names, so that
 * headers that pass need not be compared with two more names.
 */
export function responseHeaderLines(headers: readonly string[], locations: Locations): string {
  const named = connectionOptions(headers, false);
  let lines = NO_PAGE;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    let value: string | null = headers[i + 1] as string;
    if (notToCaller.has(name)) {
      if (!isLocation(name)) continue;
      value = locations.location(value);
    }
    if (value === null || named?.has(name.toLowerCase())) continue;
    lines += `\r\n${name}: ${value}`;
  }
  return lines;
}
