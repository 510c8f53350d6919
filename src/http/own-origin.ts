import { ApiError } from '../errors.ts';
import { networkOf } from '../platform/addresses.ts';
import type { ApiRequest } from './route.ts';

/**
 * Refuses a request that a page of another site sent. For what is decided by who can reach the gateway, and not by a key alone: a page
 * reaches gateways on its visitor's machine and network, which its author cannot. Browsers send `Origin` with every POST and
 * PATCH (Fetch standard, 'append a request Origin header'). Programs send none, and pass.
 *
 * @param message  tells what the page may not do
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
 * That the origin equals `Host` is not enough. The owner of evil.example can point that name to 127.0.0.1 after its page was
 * loaded (DNS rebinding). The page then reaches this gateway under its own name, so its `Origin` and `Host` are equal. So `Host` must
 * also be what no stranger can point here: a literal address, or `localhost`, which is never asked of DNS. Or the origin
 * must be https: then the browser has checked that the server has a certificate for the name, which a rebound one has not.
 *
 * @param origin  the `Origin` header. `null`, which a browser sends for a page whose origin it hides, is never ours
 * @param host  the `Host` header
 */
export function isOwnOrigin(origin: string, host: string): boolean {
  if (!URL.canParse(origin)) return false;
  const page = new URL(origin);
  // The scheme of the origin is put before both, so that its default port is left out of both.
  const address = `${page.protocol}//${host}`;
  if (!URL.canParse(address) || new URL(address).host !== page.host) return false;
  return page.protocol === 'https:' || (page.protocol === 'http:' && isFixedName(page.hostname));
}

/** Whether DNS has no say in where this host name leads. @param name  as `URL` writes it: an IPv6 address is in brackets */
function isFixedName(name: string): boolean {
  return name === 'localhost' || networkOf(name.replace(/^\[|\]$/g, '')) !== null;
}

/**
 * Refuses a request for a session that no page of this gateway sent. A session is ambient: the browser adds its cookie by itself, also
 * for a page of another port of the host or of a sibling subdomain, which `SameSite` lets pass.
 *
 * Browsers send `Origin` with every request but GET, so only there it may be absent. They send `Sec-Fetch-Site` to https and to
 * localhost: it tells apart schemes, too, which the gateway does not see.
 */
export function refuseAllButOwnPage(request: Pick<ApiRequest, 'method' | 'header'>): void {
  if (isOwnPage(request)) return;
  throw new ApiError(
    'forbidden',
    'Sessions are for pages of this gateway: Origin must be its own, and https, localhost or a literal address. Elsewhere send the key.',
  );
}

export function isOwnPage({ method, header }: Pick<ApiRequest, 'method' | 'header'>): boolean {
  const origin = header('origin');
  const isReading = method === 'GET' || method === 'HEAD';
  const isOwn = origin === undefined ? isReading : isOwnOrigin(origin, header('host') ?? '');
  return isOwn && (header('sec-fetch-site') ?? 'same-origin') === 'same-origin';
}
