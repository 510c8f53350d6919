import { assert } from '../assert.ts';
import type { UpstreamRequest } from './types.ts';

/**
 * A path of visible octets only. A space or a line break in it would end the path early, and what follows could become a header
 * or a second request.
 */
const PATH = /^\/[\x21-\x7e\x80-\xff]*$/;

/** A sender of `TE` must name it in `Connection` (RFC 9110 §10.1.4). */
const TE_TRAILERS = 'te: trailers\r\nconnection: TE\r\n';

/**
 * The request's head as it goes on the wire. The gateway writes Host and the framing itself, so there is never both a
 * Content-Length and a Transfer-Encoding (RFC 9112, section 6.1).
 */
export function serialiseHead(request: UpstreamRequest): string {
  const { method, path, destination, headerLines } = request;
  return `${method} ${path} HTTP/1.1\r\nhost: ${destination.origin.hostHeader}\r\n${headerLines}${request.wantsTrailers ? TE_TRAILERS : ''}${framingLine(request)}\r\n`;
}

/** @throws AssertionError when the request breaks the contract of `UpstreamRequest`: a programming error. */
export function assertRequest(request: UpstreamRequest): void {
  assert(PATH.test(request.path), 'path with an octet that cannot be sent');
  assert(request.bodyLength >= -1 && Number.isSafeInteger(request.bodyLength), 'invalid bodyLength');
}

function framingLine({ method, bodyLength }: UpstreamRequest): string {
  if (bodyLength > 0) return `content-length: ${bodyLength}\r\n`;
  if (bodyLength < 0) return 'transfer-encoding: chunked\r\n';
  // RFC 9110, section 8.6: a method that usually has a body says `Content-Length: 0` when there is none.
  return method === 'POST' || method === 'PUT' || method === 'PATCH' ? 'content-length: 0\r\n' : '';
}
