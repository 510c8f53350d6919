import { ApiError } from '../errors.ts';
import { PROXY_PREFIX } from '../gate/caller-io.ts';

const ID_LENGTH = 36;

/**
 * A path segment that is `.` or `..` for any server that decodes percent-encoding, takes `\` or an encoded separator for `/`,
 * or cuts path parameters at `;` (Tomcat), the segment at an encoded NUL (C strings) or white space and controls off its end.
 * Nobody climbs out of the endpoint's path.
 */
const DOT_SEGMENT = /(?:^|[/\\]|%2f|%5c)(?:\.|%2e){1,2}(?=$|[/\\;]|%(?:2f|5c|3b|[01][0-9a-f]|20|7f))/i;

export type Target = {
  readonly serviceId: string;
  /** What follows the service id, byte for byte: '' or '/…'. */
  readonly rest: string;
};

/** Splits `/api/v1/proxy/{service_id}{rest}`. Throws `service_not_found` or `invalid_request`. */
export function parseTarget(path: string): Target {
  const serviceId = path.slice(PROXY_PREFIX.length, PROXY_PREFIX.length + ID_LENGTH);
  const rest = path.slice(PROXY_PREFIX.length + ID_LENGTH);
  if (serviceId.length < ID_LENGTH || (rest !== '' && rest[0] !== '/')) throw new ApiError('service_not_found');
  if (mayHaveDots(rest) && DOT_SEGMENT.test(rest))
    throw new ApiError('invalid_request', 'path: dot segments are not allowed.');
  return { serviceId, rest };
}

/** Most paths have neither: two searches for a character instead of an expression with eight branches at every position. */
function mayHaveDots(rest: string): boolean {
  return rest.includes('.') || rest.includes('%');
}

/** What goes on the wire to the service: its endpoint's path, the rest and the query, byte for byte. */
export function upstreamPath(basePath: string, rest: string, query: string | undefined): string {
  const path = basePath + rest || '/';
  return query === undefined ? path : `${path}?${query}`;
}
