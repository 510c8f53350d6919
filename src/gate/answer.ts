import { type RateState, rateState, UNITS_PER_REQUEST } from '../admission/codes.ts';
import { ApiError } from '../errors.ts';

export { expiredError, suspendedError, unauthorizedError, unavailableError } from '../errors.ts';
export type { RateState };

/** What the header lines show about a rate limit. */
export type ShownRate = Pick<RateState, 'limit' | 'remaining' | 'resetSeconds'>;

/**
 * Lets a web page of any origin read a response and all of its headers (Fetch standard, 'CORS protocol'). A browser adds no
 * credentials of its own, because no path that has these headers reads a cookie. But a page can reach its visitor's network:
 * decision 0025 says which paths are closed to it for that reason. `*` means all headers, because requests of pages come without
 * credentials mode.
 */
const FOR_ANY_PAGE = '\r\nAccess-Control-Allow-Origin: *\r\nAccess-Control-Expose-Headers: *';

/** The header lines of every response (docs/api.md, 'Every response'), each preceded by CRLF. */
export function commonHeaderLines(rate: ShownRate, requestId: string): string {
  return FOR_ANY_PAGE + closedHeaderLines(rate, requestId);
}

/**
 * The header lines of every response on a path that is closed to pages. Browsers keep these responses from pages of other origins.
 * So a page of another origin cannot use an admin's key, even if it has one, or its visitor's session.
 */
export function closedHeaderLines(rate: ShownRate, requestId: string): string {
  return (
    `\r\nX-RateLimit-Limit: ${rate.limit}\r\nX-RateLimit-Remaining: ${rate.remaining}` +
    `\r\nX-RateLimit-Reset: ${rate.resetSeconds}\r\nX-Request-Id: ${requestId}`
  );
}

/**
 * The rate limit as reported when no bucket could be asked, because Redis or (for an unknown key) Postgres does not answer: no
 * request passes now, and the caller may retry in a second.
 */
export function unknownRate(limit: number): RateState {
  return { limit, tokens: 0, remaining: 0, resetSeconds: 1, retryAfterSeconds: 1 };
}

/** The rate limit as reported to a request that takes no token, and for which no bucket is asked. */
export function untouchedRate(limit: number): RateState {
  return rateState(limit, limit * UNITS_PER_REQUEST);
}

/** Milliseconds until a bucket that was in this state has a token; 0 if it had one. */
export function msUntilToken({ limit, tokens }: RateState): number {
  return Math.max(0, (UNITS_PER_REQUEST - tokens) / limit);
}

/** @param seconds  how long this caller should wait before its next request; see RefillTimes */
export function rateLimitedError(seconds: number): ApiError {
  return new ApiError(
    'rate_limited',
    `Rate limit exceeded. Try again in ${seconds} second${seconds === 1 ? '' : 's'}.`,
    {
      headers: { 'Retry-After': String(seconds) },
    },
  );
}

/**
 * The serialised header lines and the body of an error response.
 *
 * @param common  the lines of `commonHeaderLines` or `closedHeaderLines`
 */
export function renderError(error: ApiError, common: string): { lines: string; body: string } {
  return { lines: common + errorHeaderLines(error), body: JSON.stringify(error.body()) };
}

export function errorHeaderLines(error: ApiError): string {
  let lines = '\r\nContent-Type: application/json; charset=utf-8';
  for (const name in error.headers) lines += `\r\n${name}: ${error.headers[name]}`;
  return lines;
}
