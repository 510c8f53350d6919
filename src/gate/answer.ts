import type { RateState } from '../admission/codes.ts';
import { ApiError } from '../errors.ts';

export { suspendedError, unauthorizedError, unavailableError } from '../errors.ts';
export type { RateState };

/** The header lines of every response (docs/api.md, 'Every response'), each preceded by CRLF. */
export function commonHeaderLines(rate: RateState, requestId: string): string {
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

/** @param seconds  how long this caller should wait before its next request; see RefillPlaces */
export function rateLimitedError(seconds: number): ApiError {
  return new ApiError(
    'rate_limited',
    `Rate limit exceeded. Try again in ${seconds} second${seconds === 1 ? '' : 's'}.`,
    {
      headers: { 'Retry-After': String(seconds) },
    },
  );
}

/** The serialised header lines and the body of an error response. */
export function renderError(error: ApiError, rate: RateState, requestId: string): { lines: string; body: string } {
  return { lines: commonHeaderLines(rate, requestId) + errorHeaderLines(error), body: JSON.stringify(error.body()) };
}

export function errorHeaderLines(error: ApiError): string {
  let lines = '\r\nContent-Type: application/json; charset=utf-8';
  for (const name in error.headers) lines += `\r\n${name}: ${error.headers[name]}`;
  return lines;
}
