import type { RateState } from '../admission/codes.ts';
import { ApiError } from '../errors.ts';

export { unauthorizedError, unavailableError } from '../errors.ts';
export type { RateState };

/** Header lines every response has (API.md, 'Every response'). */
export function commonHeaderLines(rate: RateState, requestId: string): string {
  return (
    `X-RateLimit-Limit: ${rate.limit}\r\nX-RateLimit-Remaining: ${rate.remaining}\r\n` +
    `X-RateLimit-Reset: ${rate.resetSeconds}\r\nX-Request-Id: ${requestId}\r\n`
  );
}

/** What is said about the rate limit while Redis cannot be asked: nothing passes now, try again in a second. */
export function unknownRate(limit: number): RateState {
  return { limit, remaining: 0, resetSeconds: 1, retryAfterSeconds: 1 };
}

export function rateLimitedError(rate: RateState): ApiError {
  const seconds = rate.retryAfterSeconds;
  return new ApiError(
    'rate_limited',
    `Rate limit exceeded. Try again in ${seconds} second${seconds === 1 ? '' : 's'}.`,
    {
      headers: { 'Retry-After': String(seconds) },
    },
  );
}

/** Serialised header lines and body of an error. */
export function renderError(error: ApiError, rate: RateState, requestId: string): { block: string; body: string } {
  let block = `${commonHeaderLines(rate, requestId)}Content-Type: application/json; charset=utf-8\r\n`;
  for (const [name, value] of Object.entries(error.headers)) block += `${name}: ${value}\r\n`;
  return { block, body: JSON.stringify(error.body()) };
}
