import { PROXY_PREFIX } from '../gate/caller-io.ts';
import type { Origin } from '../upstream/index.ts';
import { hasDotSegment, type Target, upstreamPath } from './target.ts';

/** The call that the service answers with a `Location` or `Content-Location`. */
type Called = {
  readonly origin: Origin;
  readonly basePath: string;
  readonly target: Target;
  readonly query: string | undefined;
  /** Headers of the caller's request, flat, with names in lower case. */
  readonly headers: readonly string[];
};

/**
 * What the caller gets for a service's `Location` or `Content-Location`:
 *
 * | it leads                                                        | the caller gets                                     |
 * |-----------------------------------------------------------------|-----------------------------------------------------|
 * | to a path within the endpoint                                   | the path that leads there through the proxy         |
 * | elsewhere on the endpoint's origin                              | nothing: the endpoint is the provider's secret      |
 * | to this gateway, but not to this service                        | nothing (see `isElsewhereHere`)                     |
 * | anywhere else                                                   | the value as it is                                  |
 * | nowhere: it is no URL reference                                 | nothing: clients differ in what they make of it     |
 *
 * `Location` may be relative (RFC 9110 §10.2.2). It is resolved as browsers resolve it, against the URL that was called. So the
 * path is compared after dot segments, backslashes, tabs and default ports were resolved, and then byte by byte, in whole segments.
 * A path that is within the endpoint only as long as nobody decodes it (`/v1/..%2fadmin`) counts as elsewhere. So does a URL with a
 * user name or password: the proxy path cannot carry them.
 *
 * This takes 1.2 µs, and only responses with one of the two headers pay it.
 *
 * Tested by test/proxy/redirects.test.ts and test/integration/proxying.test.ts.
 *
 * @param value in latin1, one character for each byte
 * @returns null if the header must be left out
 */
export function locationForCaller(value: string, called: Called): string | null {
  const { origin, basePath, target, query } = called;
  const from = `${origin.protocol}//${origin.hostHeader}${upstreamPath(basePath, target.rest, query)}`;
  const url = parseUrl(value.replace(/[\x80-\xff]/g, percentEncode), from);
  if (url === null) return null;
  if (keyOf(url) !== origin.key) return isElsewhereHere(url, called) ? null : value;
  if (url.username !== '' || url.password !== '' || !isWithin(url.pathname, basePath)) return null;
  if (hasDotSegment(url.pathname.slice(basePath.length))) return null;
  // `href` and not `pathname + search`: only `href` has the '?' of an empty query.
  return PROXY_PREFIX + target.serviceId + url.href.slice(url.origin.length + basePath.length);
}

/**
 * Whether a URL leads to this gateway, but not to this service. A client takes its API key along when it follows a redirect to the
 * same origin, so a service could make its callers pay for calls of another listing. The gateway knows its own name only from the
 * caller's `Host`, which every request has: the addon refuses one without.
 */
function isElsewhereHere(url: URL, { headers, target }: Called): boolean {
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return false;
  const host = headers[headers.findIndex((name, i) => i % 2 === 0 && name === 'host') + 1];
  if (parseUrl(`${url.protocol}//${host}`)?.host !== url.host) return false;
  return !isWithin(url.pathname, PROXY_PREFIX + target.serviceId);
}

function isWithin(path: string, base: string): boolean {
  return path.startsWith(base) && (path.length === base.length || path[base.length] === '/');
}

/** A URL's origin in the form of `Origin.key`. */
function keyOf({ protocol, hostname, port }: URL): string {
  return `${protocol}//${hostname.replace(/\.$/, '')}:${port || (protocol === 'http:' ? 80 : 443)}`;
}

function parseUrl(text: string, base?: string): URL | null {
  try {
    return new URL(text, base);
  } catch {
    return null;
  }
}

/** Clients percent-encode the bytes of a header value that are not ASCII. URL would first take each byte for a character. */
function percentEncode(byte: string): string {
  return `%${byte.charCodeAt(0).toString(16).toUpperCase()}`;
}
