import { ApiError } from '../errors.ts';
import { PROXY_PREFIX } from '../gate/caller-io.ts';

/** Length of a service id, a UUID. */
const ID_LENGTH = 36;

/**
 * Matches a path segment that some server would read as `.` or `..`. A caller could use such a segment to leave the endpoint's
 * path and reach another part of the host. The server may decode percent-encoding, take `\` or an encoded separator for `/`, cut
 * off path parameters at `;` (Tomcat), end a segment at an encoded NUL (C strings), or trim white space and control characters.
 */
const DOT_SEGMENT = /(?:^|[/\\]|%2f|%5c)(?:\.|%2e){1,2}(?=$|[/\\;]|%(?:2f|5c|3b|[01][0-9a-f]|20|7f))/i;

export type Target = {
  readonly serviceId: string;
  /** The part of the path that follows the service id, byte for byte: '' or '/…'. */
  readonly rest: string;
};

/** Splits `/api/v1/proxy/{service_id}{rest}`. Throws `service_not_found` or `invalid_request`. */
export function parseTarget(path: string): Target {
  const serviceId = path.slice(PROXY_PREFIX.length, PROXY_PREFIX.length + ID_LENGTH);
  const rest = path.slice(PROXY_PREFIX.length + ID_LENGTH);
  if (serviceId.length < ID_LENGTH || (rest !== '' && rest[0] !== '/')) throw new ApiError('service_not_found');
  if (hasDotSegment(rest)) throw new ApiError('invalid_request', 'path: dot segments are not allowed.');
  return { serviceId, rest };
}

/**
 * Whether some server could leave the endpoint's path because of this path.
 *
 * Most paths contain neither `.` nor `%`. Two searches for a character are cheaper than DOT_SEGMENT at every position.
 */
export function hasDotSegment(rest: string): boolean {
  return (rest.includes('.') || rest.includes('%')) && DOT_SEGMENT.test(rest);
}

/** The request target for the service: the endpoint's path, then the rest of the caller's path and the query, byte for byte. */
export function upstreamPath(basePath: string, rest: string, query: string | undefined): string {
  const path = basePath + rest || '/';
  return query === undefined ? path : `${path}?${query}`;
}
