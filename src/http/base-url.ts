import { domainToUnicode } from 'node:url';
import { ApiError } from '../errors.ts';
import type { ApiRequest } from './route.ts';

/** The longest name that DNS allows, and a port. */
const MAX_HOST_LENGTH = 260;
/**
 * Names and addresses as they occur in practice. `Host` may contain more (RFC 3986 §3.2.2), such as quotes, `;`, `$` and `&`, and
 * copyRequestHead lets these pass. But the base URL is put into commands that people paste into a shell.
 */
const PLAIN_HOST = /^(?:[a-z\d](?:[a-z\d._-]*[a-z\d])?|\[[a-f\d:.]+\])(?::\d{1,5})?$/i;

/**
 * The URL by which this caller reaches the gateway, without a slash at the end, for pages that name addresses of the gateway. It
 * contains letters, digits and `.:-_[]/` only. The gateway itself speaks plain HTTP, so the scheme is `https` only if a trusted proxy
 * says so in `X-Forwarded-Proto`. Throws 400 if the request's `Host` is not a plain name or address.
 *
 * @param trustedProxyHops how many proxies in front of the gateway are trusted; 0: `X-Forwarded-Proto` is not trusted
 */
export function baseUrlOf(request: Pick<ApiRequest, 'header'>, trustedProxyHops: number): string {
  const url = plainBaseUrl(request, trustedProxyHops);
  if (url === null) throw new ApiError('invalid_request', 'host: must be a plain host name or address here.');
  return url;
}

/** As `baseUrl`, but null instead of an error. A request that begins inside this process may have no `Host`. */
export function plainBaseUrl({ header }: Pick<ApiRequest, 'header'>, trustedProxyHops: number): string | null {
  const host = header('host') ?? '';
  const url = `${schemeOf(header('x-forwarded-proto'), trustedProxyHops)}://${host}`;
  // URL checks the rest: 1.2.3.999 is neither an address nor a name.
  const isPlain = host.length <= MAX_HOST_LENGTH && PLAIN_HOST.test(host);
  return isPlain && URL.canParse(url) && isDecodable(new URL(url)) ? url : null;
}

/** Whether each `xn--` label stands for a name in Unicode. URL refuses others with Node 20, and takes them with Node 24. */
function isDecodable({ hostname }: URL): boolean {
  return !domainToUnicode(hostname)
    .split('.')
    .some((label) => label.startsWith('xn--'));
}

/** A list is read from its end, like X-Forwarded-For. Most proxies replace the header, so that it has one value. */
function schemeOf(forwarded: string | undefined, trustedProxyHops: number): 'http' | 'https' {
  if (forwarded === undefined || trustedProxyHops === 0) return 'http';
  const values = forwarded.split(',');
  const value = values[Math.max(0, values.length - trustedProxyHops)] ?? '';
  return value.trim().toLowerCase() === 'https' ? 'https' : 'http';
}
