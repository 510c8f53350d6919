import { hashSecret, newKeyId, newSecret, parseBearer } from '../keys/credentials.ts';

/**
 * What identifies a browser: a cookie, and a value that the page keeps in the storage of its origin. Cookies alone do not tell
 * origins apart: the browser sends them to every port of the host, and accepts them from sibling subdomains. So a server on another
 * port sees the cookie, and a sibling may plant one. Neither has the value that this origin keeps. Only both together identify a
 * browser.
 *
 * The cookie's value has the form of credentials, `acf_…:sk_…`. So whatever hides keys from services hides the cookie too, and a
 * made-up one is refused by its checksum.
 */
export type Browser = {
  /** The value of its cookie. */
  readonly cookie: string;
  /** The whole secret. */
  readonly secret: string;
  /** As `sessions.browser_hash`. */
  readonly hash: string;
};

type Headers = (name: string) => string | undefined;

/** The header with the value that the page keeps. A client without pages may always omit it. */
export const PAGE_SECRET = 'X-ACF-Page-Secret';
/** Maximum cookies with our name that are read: our own, and some that a sibling subdomain may have planted. */
const MAX_COOKIES = 4;

/** A browser that nobody knows yet. */
export const newBrowser = (header: Headers): Browser => browserOf(`${newKeyId()}:${newSecret()}`, header);

/** The browsers that the request could come from. None if it has no cookie of ours. */
export function shownBrowsers(header: Headers): Browser[] {
  const cookies = cookiesOf(header('cookie') ?? '');
  const names = [nameOf(true, header), ...(isHttps(header) ? [] : [nameOf(false, header)])];
  const name = names.find((one) => cookies.some(([its]) => its === one));
  return cookies
    .filter(([its, value]) => its === name && parseBearer(`Bearer ${value}`) !== null)
    .slice(0, MAX_COOKIES)
    .map(([, value]) => browserOf(value, header));
}

/** `Set-Cookie` for a browser; with 0 seconds it forgets the cookie. Without `Domain`, so that no other host gets it. */
export function cookieFor({ cookie }: Pick<Browser, 'cookie'>, seconds: number, path: string, header: Headers): string {
  const secure = isHttps(header) ? '; Secure' : '';
  const name = nameOf(isHttps(header), header);
  return `${name}=${cookie}; Path=${path}; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`;
}

function browserOf(cookie: string, header: Headers): Browser {
  const secret = `${cookie} ${header(PAGE_SECRET.toLowerCase()) ?? ''}`;
  return { cookie, secret, hash: hashSecret(secret) };
}

/** Taken from the page's own scheme: the gateway cannot see it behind a proxy that terminates TLS. */
const isHttps = (header: Headers): boolean => header('origin')?.startsWith('https:') ?? false;

/** The name contains the port, because all ports of a host share their cookies: two gateways would sign each other out. */
function nameOf(isSecure: boolean, header: Headers): string {
  const port = /:(\d+)$/.exec(header('host') ?? '')?.[1];
  return `${isSecure ? '__Secure-' : ''}tollgate-session${port === undefined ? '' : `-${port}`}`;
}

/** RFC 6265 §5.4. */
const cookiesOf = (header: string): [name: string, value: string][] =>
  header.split(';').map((pair) => {
    const at = pair.indexOf('=');
    return [pair.slice(0, Math.max(at, 0)).trim(), pair.slice(at + 1).trim()];
  });
