import { ApiError } from '../errors.js';
import { PROXY_PREFIX } from '../gate/caller-io.js';
import { headerOf, targetFault } from '../http/request-head.js';
import { isDeeperThan } from '../platform/json-depth.js';
import { formatUsd, usdToMicros } from '../platform/money.js';
/** Maximum depth of JSON that passes between a model and a service as a value. What is deeper is passed on as text, or refused. */
export const MAX_JSON_DEPTH = 100;
/**
 * Maximum characters of path and query together; more are refused. The HTTP edge takes heads of 16 KiB. This leaves a KiB for the
 * headers that are added here, so that a call which passes here could also have been made through the proxy.
 */
const MAX_TARGET_CHARACTERS = 15_360;
/**
 * What every call of a tool accepts. Both media types must be named, or MCP servers answer 406; the weights tell other services
 * that one JSON document is better than a stream.
 */
const ACCEPT = 'application/json, text/event-stream;q=0.5, */*;q=0.4';
/**
 * Makes the request of a call as the HTTP edge would have read it from a socket, and checks it as the edge does. The schema of the
 * tool admits only methods that the edge knows. Throws `invalid_request`.
 *
 * Tested by test/mcp/call-request.test.ts.
 *
 * @param outer  the MCP request. The call is made with its key, and has its `Host`, by which the gateway recognises a redirect to
 *   itself; services get their own
 */
export function callRequest({ service_id, method, path, query, body, max_amount, idempotency_key }, { authorization, headers: outerHeaders }) {
    if (path !== '' && !path.startsWith('/'))
        throw invalid("path: must be empty or begin with '/'.");
    if (/[?#]/.test(path))
        throw invalid("path: must not contain '?' or '#'. Parameters go into `query`.");
    const rawQuery = queryText(query ?? {});
    const fault = targetFault(path, rawQuery);
    if (fault !== null)
        throw invalid('path: has characters that must be percent-encoded.');
    if (path.length + (rawQuery ?? '').length > MAX_TARGET_CHARACTERS) {
        throw invalid(`path, query: together at most ${MAX_TARGET_CHARACTERS} characters after encoding.`);
    }
    const { bytes, mediaType } = bodyBytes(body);
    const host = headerOf(outerHeaders, 'host') ?? '';
    const headers = ['host', host, 'accept', ACCEPT, 'accept-encoding', 'identity', 'user-agent', 'tollgate-mcp'];
    if (mediaType !== null)
        headers.push('content-type', mediaType);
    if (max_amount !== undefined)
        headers.push('x-acf-max-amount', amountText(max_amount));
    if (idempotency_key !== undefined)
        headers.push('idempotency-key', idempotency_key);
    const head = {
        method,
        path: `${PROXY_PREFIX}${service_id}${path}`,
        query: rawQuery,
        headers,
        isAscii: true,
        authorization,
        bodyLength: bytes.length,
        fault: null,
    };
    return { head, body: bytes };
}
const invalid = (message) => new ApiError('invalid_request', message);
/** `{a: 1, b: ['x', 'y']}` → `a=1&b=x&b=y`, percent-encoded. Undefined when there are no parameters. */
function queryText(query) {
    const pairs = [];
    for (const [name, values] of Object.entries(query)) {
        for (const value of Array.isArray(values) ? values : [values])
            pairs.push(`${encode(name)}=${encode(String(value))}`);
    }
    return pairs.length === 0 ? undefined : pairs.join('&');
}
function encode(text) {
    if (!text.isWellFormed())
        throw invalid('query: has half a surrogate pair.');
    return encodeURIComponent(text);
}
/** The largest number of micro-dollars is far above every price, so a larger `max_amount` bounds nothing either. */
function amountText(usd) {
    const micros = usdToMicros(usd);
    if (micros === null)
        throw invalid('max_amount: must be an amount in USD with at most 6 decimals.');
    return formatUsd(micros);
}
/**
 * Text is sent as it is. Models often write a JSON document as text, so text that is a JSON object or array is called that. Any
 * other value is sent as JSON. Null counts as no body, because models fill parameters that they do not need with null.
 */
function bodyBytes(body) {
    if (body === undefined || body === null)
        return { bytes: Buffer.alloc(0), mediaType: null };
    if (isDeeperThan(MAX_JSON_DEPTH, body))
        throw invalid('body: is nested too deeply. Send it as text.');
    if (typeof body !== 'string')
        return { bytes: Buffer.from(JSON.stringify(body)), mediaType: 'application/json' };
    if (!body.isWellFormed())
        throw invalid('body: has half a surrogate pair.');
    if (body === '')
        return { bytes: Buffer.alloc(0), mediaType: null };
    return {
        bytes: Buffer.from(body),
        mediaType: isJsonDocument(body) ? 'application/json' : 'text/plain; charset=utf-8',
    };
}
function isJsonDocument(text) {
    if (!/^\s*[{[]/.test(text))
        return false;
    try {
        JSON.parse(text);
        return true;
    }
    catch {
        return false;
    }
}
//# sourceMappingURL=call-request.js.map