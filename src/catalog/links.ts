import { MAX_ENDPOINT_LENGTH, parseUrl } from './listing.ts';

export const MAX_HEALTH_PATH_LENGTH = 512;

/** What is wrong with the URL of a page about a service, or null. Buyers follow the URL, so it must show where it leads. */
export function docsUrlFault(url: string): string | null {
  if (url.length > MAX_ENDPOINT_LENGTH) return `must be at most ${MAX_ENDPOINT_LENGTH} characters`;
  if (/[\p{Cc}\s\\]/u.test(url)) return 'must not contain spaces, control characters or backslashes';
  const parsed = /^https?:\/\/[^/]/i.test(url) ? parseUrl(url) : null;
  if (parsed === null) return 'must be an absolute http or https URL';
  return parsed.username === '' && parsed.password === '' ? null : 'must not contain a user name or password';
}

/**
 * What is wrong with a health path, or null. It is appended to the endpoint's path and must not leave it. Encoded characters, `;` and
 * `\` are refused, so that no server can read a dot segment in it.
 */
export function healthPathFault(path: string): string | null {
  if (path.length > MAX_HEALTH_PATH_LENGTH) return `must be at most ${MAX_HEALTH_PATH_LENGTH} characters`;
  if (!/^\/[A-Za-z0-9\-._~!$&'()*+,=:@/]*$/.test(path)) {
    return 'must begin with a slash and consist of characters that a URL path has unencoded, without ; and without a query';
  }
  return /\/\.{1,2}(\/|$)/.test(path) ? 'must not have dot segments' : null;
}

/** The URL of a health path. @param endpoint passes `endpointFault` */
export function healthUrl(endpoint: string, healthPath: string): string {
  const { origin, pathname } = new URL(endpoint);
  return origin + pathname.replace(/\/+$/, '') + healthPath;
}
