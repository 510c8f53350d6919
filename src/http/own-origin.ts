import { ApiError } from '../errors.ts';
import { networkOf } from '../platform/addresses.ts';
import type { ApiRequest } from './route.ts';

/**
 * Refuses a request that a page of another site sent. It guards actions that depend on who can reach the gateway, and not on a key
 * alone: a page reaches gateways on its visitor's machine and network, which its author cannot reach. Browsers send `Origin` with
 * every POST and PATCH (Fetch standard, 'append a request Origin header'). Programs send none, and pass.
 *
 * @param message says what the page may not do
 */
export function refuseForeignPage({ header }: Pick<ApiRequest, 'header'>, message: string): void {
  const origin = header('origin');
  if (origin === undefined || isOwnOrigin(origin, header('host') ?? '')) return;
  throw new ApiError('forbidden', `${message} Send this request without Origin, for example with curl.`);
}

/**
 * Whether a request that a web page sent comes from a page of this gateway itself, and not from another site. The scheme may differ:
 * behind a proxy that terminates TLS the page's origin is https, and the gateway cannot see that.
 *
 * It is not enough that the origin equals `Host`. The owner of evil.example can point that name to 127.0.0.1 after its page was
 * loaded (DNS rebinding). The page then reaches this gateway under its own name, so its `Origin` and `Host` are equal. So `Host`
 * must also be a name that no stranger can point here: a literal address, or `localhost`, which is never looked up in DNS.
 * Alternatively the origin must be https: the browser has then checked that the server has a certificate for the name, which a
 * rebound server does not have.
 *
 * @param origin  the `Origin` header. `null`, which a browser sends for a page whose origin it hides, is never ours
 * @param host  the `Host` header
 */
export function isOwnOrigin(origin: string, host: string): boolean {
  if (!URL.canParse(origin)) return false;
  const page = new URL(origin);
  // The scheme of the origin is put before both, so that its default port is removed from both.
  const address = `${page.protocol}//${host}`;
  if (!URL.canParse(address) || new URL(address).host !== page.host) return false;
  return page.protocol === 'https:' || (page.protocol === 'http:' && isFixedName(page.hostname));
}

/** Whether DNS has no influence on where this host name leads. @param name as `URL` writes it: an IPv6 address is in brackets */
function isFixedName(name: string): boolean {
  return name === 'localhost' || networkOf(name.replace(/^\[|\]$/g, '')) !== null;
}

/**
 * Refuses a request about a session that was not sent by a page of this gateway. A session is ambient: the browser adds its cookie
 * by itself, even for a page on another port of the host or on a sibling subdomain, which `SameSite` allows.
 *
 * Browsers send `Origin` with every request except GET, so it may be absent only there. They send `Sec-Fetch-Site` to https and to
 * localhost: it also tells schemes apart, which the gateway cannot see.
 */
export function refuseAllButOwnPage(request: Pick<ApiRequest, 'method' | 'header'>): void {
  if (isOwnPage(request)) return;
  throw new ApiError(
    'forbidden',
    'Only pages of this gateway may use sessions: Origin must be its own, with https, localhost or a literal address. From elsewhere, send the key itself.',
  );
}

export function isOwnPage({ method, header }: Pick<ApiRequest, 'method' | 'header'>): boolean {
  const origin = header('origin');
  const isReading = method === 'GET' || method === 'HEAD';
  const isOwn = origin === undefined ? isReading : isOwnOrigin(origin, header('host') ?? '');
  return isOwn && (header('sec-fetch-site') ?? 'same-origin') === 'same-origin';
}
