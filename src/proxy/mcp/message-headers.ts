import { ApiError } from '../../errors.ts';

/**
 * What the headers of a message for an MCP server may say about it.
 *
 * Tested by test/proxy/mcp/message.test.ts.
 */

/** UTF-8 is the default. In another charset, such as UTF-7, the same bytes would be a different message. */
const JSON_TYPE = /^application\/json[\t ]*(?:;[\t ]*charset=(?:utf-8|"utf-8")[\t ]*)?$/i;
/** The form of a header value that is not plain ASCII text (MCP 2026-07-28, Streamable HTTP, 'Value encoding'). */
const SENTINEL = /^=\?base64\?(.*)\?=$/;

/** Which parameter the header `Mcp-Name` repeats, by method (MCP 2026-07-28, Streamable HTTP, 'Standard request headers'). */
const NAMED_BY: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
]);

const invalid = (message: string): ApiError => new ApiError('invalid_request', message);

/** Refuses a body that is not plain JSON in UTF-8: the service could read a different message in it than the gateway. */
export function refuseEncodedBody(headers: readonly string[]): void {
  const types = valuesOf(headers, 'content-type');
  if (types.length !== 1 || !JSON_TYPE.test(types[0] as string)) {
    throw invalid('content-type: a message for an MCP server must be application/json in UTF-8.');
  }
  if (valuesOf(headers, 'content-encoding').length > 0) {
    throw invalid('content-encoding: a message for an MCP server must be sent without content coding.');
  }
}

/**
 * The media types in which an MCP server may answer a message. The server chooses, so `Accept` must name both (MCP, Streamable
 * HTTP).
 */
const ANSWER_TYPES = ['application/json', 'text/event-stream'];

/**
 * Refuses a message that many servers answer with 406, which would count as their failure (`refundOfAnswer`). A wildcard names
 * neither type: the protocol's own SDKs search for the names.
 */
export function refuseUnacceptable(headers: readonly string[]): void {
  const ranges = valuesOf(headers, 'accept').join(',').toLowerCase().split(',');
  const named = new Set(ranges.map((range) => (range.split(';', 1)[0] as string).trim()));
  if (!ANSWER_TYPES.every((type) => named.has(type))) throw new ApiError('not_acceptable');
}

/**
 * Refuses headers that contradict the message. A service may follow the headers, and carry out another method or tool than the
 * message names. A missing header is the service's business: older clients send neither.
 *
 * @param method  null: the message is a response, or there is none (GET, DELETE), and no header may give it a method
 */
export function refuseOtherHeaders(headers: readonly string[], method: string | null, params: unknown): void {
  for (const value of valuesOf(headers, 'mcp-method')) {
    if (method === null) throw invalid('mcp-method: this request has no message with a method.');
    if (value !== method) throw invalid('mcp-method: is not the method of the message.');
  }
  const field = method === null ? undefined : NAMED_BY.get(method);
  if (field === undefined) return;
  const named = (params as Readonly<Record<string, unknown>> | null | undefined)?.[field];
  for (const value of valuesOf(headers, 'mcp-name')) {
    if (decoded(value) !== named) throw invalid(`mcp-name: is not params.${field} of the message.`);
  }
}

/** The text that a header value encodes; null if it is not canonical base64 of UTF-8. */
function decoded(value: string): string | null {
  const encoded = SENTINEL.exec(value)?.[1];
  if (encoded === undefined) return value;
  const bytes = Buffer.from(encoded, 'base64');
  if (bytes.toString('base64') !== encoded) return null;
  const text = bytes.toString('utf8');
  return Buffer.from(text, 'utf8').equals(bytes) ? text : null;
}

/** The values of a header. An underscore in its name counts as a hyphen, as CGI and its heirs read it. */
function valuesOf(headers: readonly string[], name: string): string[] {
  const values: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    if ((headers[i] as string).replaceAll('_', '-') === name) values.push(headers[i + 1] as string);
  }
  return values;
}
