import { ApiError } from '../errors.ts';
import { PROXY_PREFIX, type RequestHead } from '../gate/caller-io.ts';
import { headerOf, targetFault } from '../http/request-head.ts';
import { isDeeperThan } from '../platform/json-depth.ts';
import { formatUsd, usdToMicros } from '../platform/money.ts';

/** Maximum depth of JSON that passes between a model and a service as a value. Deeper JSON is passed on as text, or refused. */
export const MAX_JSON_DEPTH = 100;

type QueryValue = string | number | boolean;

/** The arguments of the tool `call_service`, in the shape that its schema has checked. */
export type CallArguments = {
  readonly service_id: string;
  readonly method: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, QueryValue | readonly QueryValue[]>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly content_type?: string;
  readonly max_amount?: number;
  readonly free_only?: boolean;
  readonly idempotency_key?: string;
};

/**
 * Maximum characters of path, query and headers together; more are refused. The HTTP edge takes heads of 16 KiB. This leaves a KiB
 * for the headers that are added here, so that every call accepted here could also have been made through the proxy.
 */
const MAX_HEAD_CHARACTERS = 15_360;

/**
 * The `Accept` header of every call of a tool. Both media types must be named, or MCP servers answer 406; the weights tell other
 * services that one JSON document is preferred to a stream.
 */
const ACCEPT = 'application/json, text/event-stream;q=0.5, */*;q=0.4';
/** Headers of every call of a tool, unless the caller sets them. */
const DEFAULTS = [
  ['accept', ACCEPT],
  ['user-agent', 'tollgate-mcp'],
] as const;

/**
 * Makes the request of a call in the form that the HTTP edge gives it, and checks it as the edge does. The tool's schema allows
 * only methods that the edge knows. Throws `invalid_request`.
 *
 * Tested by test/mcp/call-request.test.ts.
 *
 * @param outer  the MCP request. The call is made with its key, and has its `Host`, by which the gateway recognises a redirect to
 *   itself; services get their own
 */
export function callRequest(
  {
    service_id,
    method,
    path,
    query,
    body,
    headers = {},
    content_type,
    max_amount,
    free_only,
    idempotency_key,
  }: CallArguments,
  { authorization, headers: outerHeaders }: Pick<RequestHead, 'authorization' | 'headers'>,
): { readonly head: RequestHead; readonly body: Uint8Array } {
  if (path !== '' && !path.startsWith('/')) throw invalid("path: must be empty or begin with '/'.");
  if (path.startsWith(PROXY_PREFIX)) {
    throw invalid('path: must be only what follows the proxy_path of the service, which is in the address already.');
  }
  if (/[?#]/.test(path)) throw invalid("path: must not contain '?' or '#'. Parameters go into `query`.");
  const rawQuery = queryText(query ?? {});
  const fault = targetFault(path, rawQuery);
  if (fault !== null) throw invalid('path: has characters that must be percent-encoded.');
  const own = ownHeaders(headers);
  if (path.length + (rawQuery ?? '').length + own.join('').length > MAX_HEAD_CHARACTERS) {
    throw invalid(`path, query, headers: together at most ${MAX_HEAD_CHARACTERS} characters after encoding.`);
  }
  const { bytes, mediaType } = bodyBytes(body, content_type);
  const all = ['host', headerOf(outerHeaders, 'host') ?? '', ...own, 'accept-encoding', 'identity'];
  for (const [name, value] of DEFAULTS) if (headerOf(own, name) === undefined) all.push(name, value);
  if (mediaType !== null) all.push('content-type', mediaType);
  if (max_amount !== undefined) all.push('x-acf-max-amount', amountText(max_amount));
  if (free_only === true) all.push('x-acf-free-only', 'true');
  if (idempotency_key !== undefined) all.push('idempotency-key', idempotency_key);
  const head: RequestHead = {
    method,
    path: `${PROXY_PREFIX}${service_id}${path}`,
    query: rawQuery,
    headers: all,
    isAscii: true,
    authorization,
    bodyLength: bytes.length,
    fault: null,
  };
  return { head, body: bytes };
}

const invalid = (message: string): ApiError => new ApiError('invalid_request', message);

/** RFC 9110 §5.6.2. A longer name would make a long message of its error. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/;
/** Visible ASCII, with blanks between. */
const VALUE = /^(?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?$/;
/** Headers that have their own argument, and may be given only there. */
const ARGUMENTS: ReadonlyMap<string, string> = new Map([
  ['content-type', 'content_type'],
  ['idempotency-key', 'idempotency_key'],
  ['x-acf-free-only', 'free_only'],
  ['x-acf-max-amount', 'max_amount'],
]);

/**
 * The caller's headers, flat and in lower case, as the HTTP edge would have read them. The proxy filters them like those of any
 * call.
 */
function ownHeaders(headers: NonNullable<CallArguments['headers']>): string[] {
  const own: string[] = [];
  for (const [given, value] of Object.entries(headers)) {
    const name = given.toLowerCase();
    if (!TOKEN.test(name))
      throw invalid(`headers: ${JSON.stringify(given.slice(0, 100))} is not the name of a header.`);
    if (!VALUE.test(value))
      throw invalid(`headers.${name}: must be visible ASCII characters, with spaces only between them.`);
    const argument = ARGUMENTS.get(name);
    if (argument !== undefined) throw invalid(`headers.${name}: give it as \`${argument}\`.`);
    if (name === 'accept-encoding')
      throw invalid('headers.accept-encoding: cannot be set, because you could not read the answer.');
    if (name === 'upgrade') throw new ApiError('upgrade_not_supported');
    if (headerOf(own, name) !== undefined) throw invalid(`headers.${name}: given more than once.`);
    own.push(name, value);
  }
  return own;
}

/** `{a: 1, b: ['x', 'y']}` → `a=1&b=x&b=y`, percent-encoded. Undefined when there are no parameters. */
function queryText(query: NonNullable<CallArguments['query']>): string | undefined {
  const pairs: string[] = [];
  for (const [name, values] of Object.entries(query)) {
    for (const value of Array.isArray(values) ? values : [values])
      pairs.push(`${encode(name)}=${encode(String(value))}`);
  }
  return pairs.length === 0 ? undefined : pairs.join('&');
}

function encode(text: string): string {
  if (!text.isWellFormed()) throw invalid('query: has half a surrogate pair.');
  return encodeURIComponent(text);
}

/** The largest number of micro-dollars is far above every price, so a larger `max_amount` bounds nothing either. */
function amountText(usd: number): string {
  const micros = usdToMicros(usd);
  if (micros === null) throw invalid('max_amount: must be an amount in USD with at most 6 decimals.');
  return formatUsd(micros);
}

/**
 * Text is sent unchanged. Models often write a JSON document as text, so a text that parses as a JSON object or array is sent as
 * `application/json`, unless the model states another type. Any other value is sent as JSON. Null counts as no body, because models
 * fill parameters that they do not need with null.
 */
function bodyBytes(
  body: unknown,
  contentType: string | undefined,
): { readonly bytes: Uint8Array; readonly mediaType: string | null } {
  const told = contentType === undefined ? null : checkedType(contentType);
  if (body === undefined || body === null || body === '') return { bytes: Buffer.alloc(0), mediaType: told };
  if (isDeeperThan(MAX_JSON_DEPTH, body)) throw invalid('body: is nested too deeply. Send it as text.');
  if (typeof body !== 'string') {
    if (told !== null && !JSON_TYPE.test(told)) throw invalid('body: must be text for this `content_type`.');
    return { bytes: Buffer.from(JSON.stringify(body)), mediaType: told ?? 'application/json' };
  }
  if (!body.isWellFormed()) throw invalid('body: has half a surrogate pair.');
  const usual = isJsonDocument(body) ? 'application/json' : 'text/plain; charset=utf-8';
  return { bytes: Buffer.from(body), mediaType: told ?? usual };
}

const JSON_TYPE = /^[^;]*[/+]json\s*(?:;|$)/i;
const MEDIA_TYPE = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+\/[!#$%&'*+.^_`|~0-9A-Za-z-]+\s*(?:;[\x20-\x7e]*)?$/;

/** Throws `invalid_request` if the stated media type cannot be used. */
function checkedType(type: string): string {
  if (!MEDIA_TYPE.test(type)) throw invalid('content_type: must be a media type, such as text/csv.');
  if (/^multipart\//i.test(type)) {
    throw invalid(
      'content_type: a multipart body has parts and boundaries that `body` cannot express. Send the call over HTTP, to the proxy_path of the service.',
    );
  }
  const charset = /;\s*charset\s*=\s*"?([^\s";]*)/i.exec(type)?.[1];
  if (charset === undefined || /^utf-?8$/i.test(charset)) return type;
  throw invalid('content_type: the body is sent in UTF-8, so its charset must be UTF-8.');
}

function isJsonDocument(text: string): boolean {
  if (!/^\s*[{[]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
