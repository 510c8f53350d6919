import { assert } from '../assert.ts';
import type { UpstreamRequest } from './types.ts';

/** Visible octets only. A space or a line break in the path would end the request line early. */
const PATH = /^\/[\x21-\x7e\x80-\xff]*$/;

/** The request's head as it goes on the wire. Host and framing are ours (RFC 9112, section 6.1: never both framings). */
export function serialiseHead(request: UpstreamRequest): string {
  const { method, path, destination, headerLines } = request;
  return `${method} ${path} HTTP/1.1\r\nhost: ${destination.origin.hostHeader}\r\n${headerLines}${framingLine(request)}\r\n`;
}

/** @throws AssertionError: the caller has broken the contract of `UpstreamRequest`. */
export function assertRequest(request: UpstreamRequest): void {
  assert(PATH.test(request.path), 'path with an octet that cannot be sent');
  assert(request.bodyLength >= -1 && Number.isSafeInteger(request.bodyLength), 'invalid bodyLength');
}

function framingLine({ method, bodyLength }: UpstreamRequest): string {
  if (bodyLength > 0) return `content-length: ${bodyLength}\r\n`;
  if (bodyLength < 0) return 'transfer-encoding: chunked\r\n';
  // RFC 9110, section 8.6: say 0 where a body would be expected.
  return method === 'POST' || method === 'PUT' || method === 'PATCH' ? 'content-length: 0\r\n' : '';
}
