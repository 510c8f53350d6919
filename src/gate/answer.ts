import type { RateState } from '../admission/codes.ts';
import { ApiError } from '../errors.ts';

export { suspendedError, unauthorizedError, unavailableError } from '../errors.ts';
export type { RateState };

/** Header lines every response has (API.md, 'Every response'), each with its CRLF in front. */
export function commonHeaderLines(rate: RateState, requestId: string): string {
  return (
    `\r\nX-RateLimit-Limit: ${rate.limit}\r\nX-RateLimit-Remaining: ${rate.remaining}` +
    `\r\nX-RateLimit-Reset: ${rate.resetSeconds}\r\nX-Request-Id: ${requestId}`
  );
}

/** What is said about the rate limit while Redis cannot be asked: nothing passes now, try again in a second. */
export function unknownRate(limit: number): RateState {
  return { limit, tokens: 0, remaining: 0, resetSeconds: 1, retryAfterSeconds: 1 };
}

/** @param seconds until this caller should come again: see RefillPlaces */
export function rateLimitedError(seconds: number): ApiError {
  return new ApiError(
    'rate_limited',
    `Rate limit exceeded. Try again in ${seconds} second${seconds === 1 ? '' : 's'}.`,
    {
      headers: { 'Retry-After': String(seconds) },
    },
  );
}

/** Serialised header lines and body of an error. */
export function renderError(error: ApiError, rate: RateState, requestId: string): { lines: string; body: string } {
  return { lines: commonHeaderLines(rate, requestId) + errorHeaderLines(error), body: JSON.stringify(error.body()) };
}

export function errorHeaderLines(error: ApiError): string {
  let lines = '\r\nContent-Type: application/json; charset=utf-8';
  for (const name in error.headers) lines += `\r\n${name}: ${error.headers[name]}`;
  return lines;
}
