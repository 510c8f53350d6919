import { ApiError } from '../../errors.js';
import { parseJson } from './json-text.js';
import { refuseOtherHeaders } from './message-headers.js';
/** What a JSON-RPC 2.0 message may consist of. MCP's own schemas refuse any other member. */
const MEMBERS = new Set(['jsonrpc', 'id', 'method', 'params', 'result', 'error']);
/**
 * Maximum characters of a method and of a parameter's name; a longer one is 400. Normalising combining marks takes time that grows
 * with the square of their number: a megabyte of them would block the event loop for two minutes. The longest method of MCP has 36
 * characters.
 */
const MAX_NAME_LENGTH = 100;
/** Maximum parameters of a tool's call; more are 400. MCP has five. The tool's own arguments are one of them, whatever is in it. */
const MAX_PARAMS = 100;
/**
 * Reads one message for an MCP server, and finds the tool that it calls. A message that some server might read as the call of a tool,
 * though it is none by the letter of JSON-RPC, is refused: otherwise it would be carried out for nothing. Throws the `ApiError` that
 * the caller gets.
 *
 * Why the message is written again: docs/decisions/0029-mcp-messages-are-written-again.md.
 *
 * Tested by test/proxy/mcp/message.test.ts.
 *
 * @param headers of the request: flat [name, value, …], names in lower case
 */
export function readMessage(headers, bytes) {
    const message = parseJson(bytes);
    if (Array.isArray(message))
        throw invalid('Batches are not supported. Send each message by itself.');
    if (!isObject(message))
        throw invalid('The body must be a JSON-RPC message: a JSON object.');
    const method = methodOf(message);
    const tool = method === 'tools/call' ? toolOf(message.params) : null;
    refuseOtherHeaders(headers, method, message.params);
    return { tool, method, body: Buffer.from(JSON.stringify(message)) };
}
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const invalid = (message) => new ApiError('invalid_request', message);
/** @returns null if the message is the response to a request of the server */
function methodOf(message) {
    // Go's encoding/json, and others, also take `Method` for `method`. No name but the six passes, so there is no second spelling.
    for (const name of Object.keys(message)) {
        if (!MEMBERS.has(name))
            throw invalid(`${shown(name)}: is no member of a JSON-RPC message.`);
    }
    if (message.jsonrpc !== '2.0')
        throw invalid('jsonrpc: must be "2.0".');
    const isResponse = 'result' in message || 'error' in message;
    if (!('method' in message)) {
        if (isResponse && !('params' in message))
            return null;
        if (isResponse)
            throw invalid('params: a response has none.');
        throw invalid('method: is required, unless the message is a response with result or error.');
    }
    if (isResponse)
        throw invalid('method: a message has either a method or a result or error.');
    const { method } = message;
    if (typeof method !== 'string')
        throw invalid('method: must be a string.');
    if (method.length > MAX_NAME_LENGTH)
        throw invalid(`method: may have at most ${MAX_NAME_LENGTH} characters.`);
    if (method !== 'tools/call' && lettersOf(method) === 'toolscall')
        throw invalid('method: must be spelled "tools/call".');
    return method;
}
function toolOf(params) {
    if (!isObject(params))
        throw invalid('params: must be an object.');
    const names = Object.keys(params);
    if (names.length > MAX_PARAMS)
        throw invalid(`params: may have at most ${MAX_PARAMS} members.`);
    for (const name of names) {
        if (name.length > MAX_NAME_LENGTH) {
            throw invalid(`params.${shown(name)}…: a name may have at most ${MAX_NAME_LENGTH} characters.`);
        }
        if (name !== 'name' && lettersOf(name) === 'name')
            throw invalid(`params.${shown(name)}: must be spelled "name".`);
    }
    // Of an object that JSON.parse made, `name` is its own or undefined.
    const { name } = params;
    if (typeof name !== 'string')
        throw invalid('params.name: must be a string, the name of a tool.');
    return name;
}
/**
 * The text as the most generous reader compares it: without case, in compatibility form (`ſ` is an s there, the Kelvin sign a k), and
 * without anything but letters and digits.
 */
const lettersOf = (text) => text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '');
/** A name of the caller's making, for an error message. */
const shown = (name) => JSON.stringify(name.slice(0, 40));
//# sourceMappingURL=message.js.map