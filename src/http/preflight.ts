import { commonHeaderLines, type RateState } from '../gate/answer.ts';
import type { CallerStream, RequestHead } from '../gate/caller-io.ts';
import { uuidv7 } from '../platform/ids.ts';
import { headerOf } from './request-head.ts';

/**
 * A preflight for any path allows all methods that the gateway knows: if the path lacks a method, the request itself gets its 405.
 * 7 200 s is the longest that Chromium keeps an answer. `Access-Control-Allow-Private-Network` is missing on purpose: see
 * docs/decisions/0025-open-to-pages-but-not-to-their-visitors-network.md.
 */
const LINES =
  '\r\nAccess-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE\r\nAccess-Control-Max-Age: 7200' +
  '\r\nVary: Access-Control-Request-Headers';

/**
 * Answers a preflight at once and from memory: no key, no token, no Redis. So a flood of preflights costs the gateway no more than
 * a flood of requests for /healthz. If preflights took tokens, a call of a page would cost two.
 *
 * The requested header names are echoed, because `*` would not cover `Authorization` (Fetch standard, 'CORS protocol').
 * copyRequestHead has checked them.
 *
 * Tested by test/integration/cors.test.ts.
 */
export function answerPreflight(head: RequestHead, stream: CallerStream, rate: RateState): void {
  const asked = headerOf(head.headers, 'access-control-request-headers') ?? '';
  const allowed = asked === '' ? '' : `\r\nAccess-Control-Allow-Headers: ${asked}`;
  const requestId = uuidv7();
  if (stream.accessEntry !== undefined) Object.assign(stream.accessEntry, { requestId, route: 'OPTIONS' });
  stream.respond(204, commonHeaderLines(rate, requestId) + LINES + allowed, '');
}
