import { ApiError } from '../../errors.ts';
import { parseJson } from './json-text.ts';
import { refuseOtherHeaders } from './message-headers.ts';

/** What a JSON-RPC 2.0 message may consist of. MCP's own schemas refuse any other member. */
const MEMBERS = new Set(['jsonrpc', 'id', 'method', 'params', 'result', 'error']);
/**
 * Maximum characters of a method and of a parameter's name; a longer one gets 400. Normalising combining marks takes time that
 * grows with the square of their number: a megabyte of them would block the event loop for two minutes. The longest method of MCP
 * has 36 characters.
 */
const MAX_NAME_LENGTH = 100;
/** Maximum parameters of a tool's call; more get 400. MCP has five. All arguments of the tool together are one of them. */
const MAX_PARAMS = 100;

export type Message = {
  /** The tool that the message calls; null: the message calls none, and costs nothing. */
  readonly tool: string | null;
  /** Null if the message is the response to a request of the server. */
  readonly method: string | null;
  /** The message as the service gets it. */
  readonly body: Buffer;
};

/**
 * Reads one message for an MCP server, and finds the tool that it calls. If some server might read a message as the call of a tool
 * although by JSON-RPC it is none, it is refused: otherwise it would be carried out for free. Throws the `ApiError` that the caller
 * gets.
 *
 * Why the message is written again: docs/decisions/0029-mcp-messages-are-written-again.md.
 *
 * Tested by test/proxy/mcp/message.test.ts.
 *
 * @param headers of the request: flat [name, value, …], names in lower case
 */
export function readMessage(headers: readonly string[], bytes: Uint8Array): Message {
  const message = parseJson(bytes);
  if (Array.isArray(message)) throw invalid('Batches are not supported. Send each message by itself.');
  if (!isObject(message)) throw invalid('The body must be a JSON-RPC message: a JSON object.');
  const method = methodOf(message);
  const tool = method === 'tools/call' ? toolOf(message.params) : null;
  refuseOtherHeaders(headers, method, message.params);
  return { tool, method, body: Buffer.from(JSON.stringify(message)) };
}

type JsonObject = { readonly [name: string]: unknown };

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const invalid = (message: string): ApiError => new ApiError('invalid_request', message);

/** @returns null if the message is the response to a request of the server */
function methodOf(message: JsonObject): string | null {
  // Go's encoding/json and others also accept `Method` for `method`. Only these six names pass, so there is no second spelling.
  for (const name of Object.keys(message)) {
    if (!MEMBERS.has(name)) throw invalid(`${shown(name)}: is not a member of a JSON-RPC message.`);
  }
  if (message.jsonrpc !== '2.0') throw invalid('jsonrpc: must be "2.0".');
  const isResponse = 'result' in message || 'error' in message;
  if (!('method' in message)) {
    if (isResponse && !('params' in message)) return null;
    if (isResponse) throw invalid('params: a response must not have params.');
    throw invalid('method: is required, unless the message is a response with result or error.');
  }
  if (isResponse) throw invalid('method: a message has either a method or a result or error.');
  const { method } = message;
  if (typeof method !== 'string') throw invalid('method: must be a string.');
  if (method.length > MAX_NAME_LENGTH) throw invalid(`method: may have at most ${MAX_NAME_LENGTH} characters.`);
  if (method !== 'tools/call' && lettersOf(method) === 'toolscall')
    throw invalid('method: must be spelled "tools/call".');
  return method;
}

function toolOf(params: unknown): string {
  if (!isObject(params)) throw invalid('params: must be an object.');
  const names = Object.keys(params);
  if (names.length > MAX_PARAMS) throw invalid(`params: may have at most ${MAX_PARAMS} members.`);
  for (const name of names) {
    if (name.length > MAX_NAME_LENGTH) {
      throw invalid(`params.${shown(name)}…: a name may have at most ${MAX_NAME_LENGTH} characters.`);
    }
    if (name !== 'name' && lettersOf(name) === 'name') throw invalid(`params.${shown(name)}: must be spelled "name".`);
  }
  // In an object made by JSON.parse, `name` is an own property or undefined.
  const { name } = params;
  if (typeof name !== 'string') throw invalid('params.name: must be a string, the name of a tool.');
  return name;
}

/**
 * The text in the form in which the most lenient reader compares it: without case, in compatibility form (`ſ` is an s there, the
 * Kelvin sign a k), and only letters and digits.
 */
const lettersOf = (text: string): string =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '');

/** A name chosen by the caller, shortened for an error message. */
const shown = (name: string): string => JSON.stringify(name.slice(0, 40));
