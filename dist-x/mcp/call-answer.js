import { ERRORS } from '../errors.js';
import { isDeeperThan } from '../platform/json-depth.js';
import { MAX_JSON_DEPTH } from './call-request.js';
import { callError, chargedText, retryAfter, toolResult } from './tool-result.js';
/**
 * What `call_service` answers, made from how the call ended.
 *
 * Tested by test/mcp/call-answer.test.ts, and test/integration/mcp-tools.test.ts.
 *
 * @param isRefunded  whether the call was settled by a refund. Asked only for a response that broke off: every other answer states
 *   its amount.
 */
export function callResult(answer, isRefunded) {
    switch (answer.kind) {
        case 'error': {
            const error = JSON.parse(answer.body);
            return callError({ ...error, ...retryAfter(answer.headers.get('retry-after')) }, costOf(answer.headers));
        }
        case 'broken': {
            const error = { error: 'upstream_error', ...ERRORS.upstream_error };
            return callError(error, isRefunded ? { amount: 0, ...recordOf(answer.headers) } : costOf(answer.headers));
        }
        case 'response':
            return responseResult(answer);
    }
}
function responseResult({ status, headers, body, cutBy }) {
    const cost = costOf(headers);
    const location = headers.get('location');
    const mediaType = headers.get('content-type');
    const value = {
        status,
        ...(mediaType === undefined ? {} : { media_type: mediaType }),
        ...(location === undefined ? {} : { location }),
        ...readableBody(body, headers, cutBy !== null),
        truncated: cutBy !== null,
        ...cost,
    };
    const note = noteOnResponse(status, cutBy, cost.amount);
    return toolResult(note === '' ? value : { ...value, note }, status >= 400);
}
/** What the call cost, as the gateway's header lines say. A call that was not admitted has none of them, and cost nothing. */
function costOf(headers) {
    const balance = headers.get('x-acf-balance');
    return {
        amount: Number(headers.get('x-acf-amount') ?? 0),
        free_tier: headers.get('x-acf-free-tier') === 'true',
        ...(balance === undefined ? {} : { balance: Number(balance) }),
        ...recordOf(headers),
    };
}
/** Names the record of the call. Calls that were not admitted have no record. */
function recordOf(headers) {
    const id = headers.get('x-acf-usage-id');
    return id === undefined ? {} : { usage_id: id };
}
/** The fact first, then what to do: an agent must not repeat a call that it would pay for again. */
function noteOnResponse(status, cutBy, amount) {
    const notes = [];
    // A call for nothing may have been one of the free calls, and the next one may not be.
    const again = amount === 0 ? 'may be charged' : 'is charged again';
    if (cutBy === 'size') {
        notes.push(`The body was longer than a tool result may be; only its beginning is here. A repeat brings no more and ${again}:`);
        notes.push('ask the service for less, or make the call over HTTP at its proxy_path.');
    }
    if (cutBy === 'time') {
        notes.push('The service was still sending when the time for a tool result was up; only the beginning is here.');
        notes.push(`A repeat ${again}. Make the call over HTTP at its proxy_path to read it to the end.`);
    }
    if (status >= 500) {
        notes.push('The service failed.');
        notes.push('It may have acted on the request all the same: repeat the call only if doing it twice is harmless.');
    }
    else if (status >= 400) {
        notes.push(`The service refused the request as it is. Change it before you call again: a repeat ${again}.`);
    }
    else if (status >= 300 && status !== 304)
        notes.push('Redirects are not followed.');
    if (notes.length === 0)
        return '';
    return [chargedText(amount), ...notes].join(' ');
}
/** `body` is JSON or text; `body_base64` is everything else. A response without a body has neither. */
function readableBody(body, headers, isCut) {
    if (body.length === 0)
        return {};
    const text = headers.has('content-encoding') ? null : textOf(body, headers.get('content-type'), isCut);
    if (text === null)
        return { body_base64: body.toString('base64') };
    const isJson = /^[^;]*[/+]json\s*(?:;|$)/i.test(headers.get('content-type') ?? '');
    return { body: isJson && !isCut ? parsed(text) : text };
}
/** The body as text, or null if it is not text in a charset that we know. Of a cut body the half of a last character is dropped. */
function textOf(body, mediaType, isCut) {
    const charset = /;\s*charset="?([^\s";]+)/i.exec(mediaType ?? '')?.[1] ?? 'utf-8';
    try {
        const text = new TextDecoder(charset, { fatal: true }).decode(body, { stream: isCut });
        // NUL is valid UTF-8, but no text has one. It is what most binary formats begin with.
        return text.includes('\0') ? null : text;
    }
    catch {
        // An unknown charset, or bytes that are none of its characters.
        return null;
    }
}
/**
 * Text that is no JSON is passed on as text, although the service says that it is JSON. So is JSON that is too deep, or that would be
 * changed.
 */
function parsed(text) {
    try {
        const value = JSON.parse(text);
        return isDeeperThan(MAX_JSON_DEPTH, value) || hasLongInteger(text) ? text : value;
    }
    catch {
        return text;
    }
}
/**
 * Whether a JSON text has an integer that JSON.parse rounds. Services have ids of 19 digits, and an agent that calls with a rounded one
 * pays for the wrong thing.
 */
function hasLongInteger(text) {
    if (!/\d{16}/.test(text))
        return false;
    for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g)) {
        if (/^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token)))
            return true;
    }
    return false;
}
//# sourceMappingURL=call-answer.js.map