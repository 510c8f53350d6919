import { ERRORS } from '../errors.ts';
import type { HeadFault, RequestHead } from '../gate/caller-io.ts';
import { isClosedToPages, PROXY_PREFIX } from '../gate/caller-io.ts';
import { decidingCredentials } from '../keys/credentials.ts';
import type { HttpRequest } from './uws.ts';

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']);
const LENGTH = /^\d{1,15}$/;
/** A request target consists of visible ASCII without '#' (RFC 9112 §3.2.1, RFC 3986). */
const TARGET = /^[\x21\x22\x24-\x7e]*$/;
/** Nearly every field value matches this and needs no second check. */
const PLAIN_VALUE = /^[\t\x20-\x7e]*$/;
/** Control characters except tab, and U+FFFD, which the addon writes instead of bytes that are not UTF-8. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: a field value must not contain these (RFC 9110 §5.5)
const BAD_VALUE = /[\x00-\x08\x0a-\x1f\x7f\ufffd]/;
const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;

/**
 * Matches an `Upgrade` header that names `websocket` or `h2c` anywhere in its list, with or without a version as in `h2c/1` (RFC
 * 9110 §7.8). Clients ask for no other protocols.
 */
const UPGRADE = /(?:^|,)[\t ]*(?:websocket|h2c)[\t ]*(?:[,/]|$)/i;
/**
 * A call that asks for another protocol is refused. If the gateway served it as plain HTTP, the caller would be charged, and a
 * WebSocket client has no use for any answer but 101. The value of `Connection` does not matter, because a proxy in front may
 * have rewritten it. Like every fault, this one ends the connection: its next bytes may belong to the other protocol.
 */
const NO_UPGRADE: HeadFault = { code: 'upgrade_not_supported', message: ERRORS.upgrade_not_supported.message };
/**
 * Header names separated by commas (RFC 9110 §5.6.1), as in a preflight. Any match can be echoed: it has no control characters,
 * quotes or colons.
 */
const HEADER_NAMES = /^[!#$%&'*+\-.^_`|~\w]+(?:[\t ]*,[\t ]*[!#$%&'*+\-.^_`|~\w]+)*$/;
/** Maximum characters of the header names in a preflight. Those of the OpenAI and Anthropic SDKs have up to 300. Beyond it: 400. */
const MAX_ASKED_HEADERS = 2_048;
/** No flag `u` here, and no toLowerCase() of the value: either would take the Kelvin sign (U+212A) for a k. */
const CHUNKED = /^chunked$/i;
/** RFC 9110 §7.2: an address in brackets (RFC 3986 §3.2.2, RFC 6874) or a non-empty name, with or without a port. */
const HOST =
  /^(?:\[(?:[\da-f]*:[\da-f:.]+(?:%25[\w\-.~%]+)?|v[\da-f]+\.[\w\-.~!$&'()*+,;=:]+)\]|(?:[\w\-.~!$&'()*+,;=]|%[\da-f]{2})+)(?::(\d{0,5}))?$/i;
const MAX_PORT = 65_535;
/** The last valid Host value. Most callers send the same one, and comparing with it (0.02 µs) is cheaper than matching HOST. */
let goodHost = '';

const BAD_HEADER = 'a header has characters that are not allowed.';

const framing = (message: string): HeadFault => ({ code: 'unsupported_framing', message });
const invalid = (message: string): HeadFault => ({ code: 'invalid_request', message });

/**
 * Copies a request head, because `HttpRequest` is valid only until the handler returns. uWebSockets.js parses leniently, so
 * this pass checks every header once. Anything that two parsers could read differently is a fault: two lengths, a length
 * beside a transfer coding, a coding other than chunked (RFC 9112 §6.1, §6.3).
 *
 * Tested by test/conformance/callers.test.ts, test/integration/upgrade.test.ts and test/integration/cors.test.ts.
 */
export function copyRequestHead(request: HttpRequest): RequestHead {
  const headers: string[] = [];
  let contentLength: string | undefined;
  let transferEncoding: string | undefined;
  let authorization: string | undefined;
  let apiKey: string | undefined;
  let asksToUpgrade = false;
  let hosts = 0;
  let isAscii = true;
  let fault: HeadFault | null = null;
  request.forEach((name, value) => {
    headers.push(name, value);
    if (!PLAIN_VALUE.test(value)) {
      isAscii = false;
      if (BAD_VALUE.test(value)) fault ??= invalid(BAD_HEADER);
    }
    // The length is compared first, because that one number rules out nearly every name.
    switch (name.length) {
      case 4:
        if (name !== 'host') break;
        hosts++;
        if (value !== goodHost && !isHost(value)) fault ??= invalid('host: not a host name or address.');
        return;
      case 7:
        if (name === 'upgrade') asksToUpgrade ||= UPGRADE.test(value);
        break;
      case 9:
        if (name !== 'x-api-key') break;
        if (apiKey !== undefined) fault ??= invalid('x-api-key: sent more than once.');
        apiKey = value;
        return;
      case 13:
        if (name !== 'authorization') break;
        if (authorization !== undefined) fault ??= invalid('authorization: sent more than once.');
        authorization = value;
        return;
      case 14:
        if (name !== 'content-length') break;
        if (contentLength !== undefined) fault ??= framing('content-length: sent more than once.');
        contentLength = value;
        return;
      case 17:
        if (name !== 'transfer-encoding') break;
        if (transferEncoding !== undefined) fault ??= framing('transfer-encoding: sent more than once.');
        transferEncoding = value;
        return;
    }
    if (!NAME.test(name)) fault ??= invalid(BAD_HEADER);
  });
  const method = request.getCaseSensitiveMethod();
  const path = request.getUrl();
  const query = request.getQuery() as string | undefined;
  if (hosts !== 1) fault ??= invalid('host: exactly one is required.');
  fault ??= targetFault(path, query);
  fault ??= framingFault(contentLength, transferEncoding);
  // The API's own routes ignore a request to upgrade, and answer in HTTP/1.1, as RFC 9110 §7.8 allows.
  if (asksToUpgrade && path.startsWith(PROXY_PREFIX)) fault ??= NO_UPGRADE;
  const bodyLength = transferEncoding !== undefined ? -1 : contentLength === undefined ? 0 : Number(contentLength);
  if (fault === null && !METHODS.has(method)) {
    fault = isPreflight(method, path, headers, bodyLength)
      ? preflightFault(headers)
      : { code: 'method_not_allowed', message: `${method.slice(0, 20)} is not supported.` };
  }
  return {
    method,
    path,
    query,
    headers,
    isAscii,
    authorization: decidingCredentials(authorization, apiKey),
    bodyLength,
    fault,
  };
}

/** What is wrong with a raw path and a raw query, or null. Calls that begin inside this process (src/mcp) are checked by it, too. */
export function targetFault(path: string, query: string | undefined): HeadFault | null {
  if (TARGET.test(path) && (query === undefined || TARGET.test(query))) return null;
  return invalid('the request target has characters that must be percent-encoded.');
}

function framingFault(length: string | undefined, coding: string | undefined): HeadFault | null {
  if (length !== undefined && coding !== undefined) {
    return framing('content-length and transfer-encoding exclude each other.');
  }
  if (length !== undefined && !LENGTH.test(length)) return framing('content-length: must be 1 to 15 digits.');
  if (coding !== undefined && !CHUNKED.test(coding)) return framing('transfer-encoding: only chunked is supported.');
  return null;
}

function isHost(value: string): boolean {
  const match = HOST.exec(value);
  if (match === null || Number(match[1] ?? 0) > MAX_PORT) return false;
  goodHost = value;
  return true;
}

/**
 * Whether this is a preflight: a browser asks what a page of another origin may send (Fetch standard, 'CORS-preflight request'). On
 * paths that are closed to pages it is refused like any OPTIONS, so a page may send nothing there that needs a preflight. A
 * preflight has no body; one with a body would make the gateway read it for nothing.
 */
function isPreflight(method: string, path: string, headers: readonly string[], bodyLength: number): boolean {
  return (
    method === 'OPTIONS' &&
    bodyLength === 0 &&
    !isClosedToPages(path) &&
    headerOf(headers, 'access-control-request-method') !== undefined
  );
}

/** A preflight with a fault is counted against the rate limit, and ends its connection, as any request with a fault. */
function preflightFault(headers: readonly string[]): HeadFault | null {
  const asked = headerOf(headers, 'access-control-request-headers') ?? '';
  if (asked === '' || (asked.length <= MAX_ASKED_HEADERS && HEADER_NAMES.test(asked))) return null;
  return invalid(
    `access-control-request-headers: must be header names with commas between them, at most ${MAX_ASKED_HEADERS} characters.`,
  );
}

/** @returns the first value of a header, by its name in lower case, or undefined */
export function headerOf(headers: readonly string[], name: string): string | undefined {
  for (let i = 0; i < headers.length; i += 2) if (headers[i] === name) return headers[i + 1];
  return undefined;
}

/** The head of a GET that begins inside this process, for `Api.ask`. @param headers  flat, as in `RequestHead` */
export function getHead(path: string, query: string | undefined, headers: readonly string[] = []): RequestHead {
  const rest = { headers, isAscii: true, authorization: undefined, bodyLength: 0, fault: null };
  return { method: 'GET', path, query, ...rest };
}
