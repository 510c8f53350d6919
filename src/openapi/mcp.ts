import type { ErrorCode } from '../errors.ts';
import type { Described, JsonSchema } from '../http/route.ts';
import type { Components } from './components.ts';
import { describeErrors, errorExamples, errorHeaders, errorResponses, errorsSchema } from './errors.ts';
import { CACHE_CONTROL, responseHeaders } from './headers.ts';
import { record, TEXT, text } from './schemas.ts';

type Json = Readonly<Record<string, unknown>>;

/** The endpoint of src/mcp/, which is not a route: the protocol's package answers there, too, with bodies of its own. */
export const MCP_PATH = '/mcp';

export const MCP_DESCRIPTION = `The Model Context Protocol over streamable HTTP, without sessions: protocol 2026-07-28 and the revisions of 2025. Each request is one JSON-RPC message, and takes one token.

\`Content-Type\` must be \`application/json\`, and clients of 2025 must accept \`application/json\` and \`text/event-stream\`. Works with or without a key; of the tools, \`call_service\`, \`get_usage\` and \`get_balance\` need one. Web pages may use it only from the gateway's own origin and from those in ALLOWED_ORIGINS.`;

const header = (description: string, example: string): Described => ({ description, schema: TEXT, example });

export const MCP_REQUEST_HEADERS: Readonly<Record<string, Described>> = {
  'MCP-Protocol-Version': header('The revision of the protocol. Since 2026-07-28 it is required', '2025-11-25'),
  'Mcp-Method': header("The message's `method`. Since 2026-07-28 it is required", 'tools/call'),
  'Mcp-Name': header('The `params.name` of a `tools/call`. Since 2026-07-28 it is required', 'discover_services'),
};

const VERSION: JsonSchema = { type: 'string', const: '2.0' };
const ID: JsonSchema = { type: ['string', 'integer', 'null'] };
const ANY_OBJECT: JsonSchema = { type: 'object', additionalProperties: true };

export const MCP_MESSAGE = record(
  'McpMessage',
  { jsonrpc: VERSION, id: ID, method: TEXT, params: ANY_OBJECT },
  { optional: ['id', 'method', 'params'], description: 'A JSON-RPC message. Without an `id` it is a notification' },
);
export const MCP_MESSAGE_EXAMPLE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'discover_services', arguments: { q: 'weather' } },
};

const RESULT = record('McpResult', { jsonrpc: VERSION, id: ID, result: ANY_OBJECT });
const FAULT = record('McpFault', {
  jsonrpc: VERSION,
  id: ID,
  error: record(
    'McpFaultDetails',
    { code: { type: 'integer', description: 'Of JSON-RPC or of the protocol' }, message: TEXT, data: {} },
    { optional: ['data'] },
  ),
});
const RESULT_EXAMPLE = {
  jsonrpc: '2.0',
  id: 1,
  result: { content: [{ type: 'text', text: '{"services":[],"categories":[],"total":0}' }] },
};

const faultExample = (code: number, message: string): Json => ({ jsonrpc: '2.0', error: { code, message }, id: null });

/** The statuses that only the protocol's package answers with. Each has a `McpFault` as its body. */
const FAULTS: Readonly<Record<number, readonly [description: string, example: Json]>> = {
  404: ['A client of 2026-07-28 named a method that is not served', faultExample(-32_601, 'Method not found')],
  406: [
    'The request accepts too few media types',
    faultExample(-32_000, 'Not Acceptable: Client must accept both application/json and text/event-stream'),
  ],
  415: [
    'The message is not declared as JSON',
    faultExample(-32_000, 'Unsupported Media Type: Content-Type must be application/json'),
  ],
};

/** The errors of src/mcp/ itself. The protocol's package also refuses messages with 400. */
const BAD_MESSAGE: readonly ErrorCode[] = ['invalid_json', 'invalid_request', 'unsupported_framing'];
const REFUSALS: readonly ErrorCode[] = [
  ...(['unauthorized', 'forbidden', 'body_too_slow', 'payload_too_large'] as const),
  ...(['rate_limited', 'internal', 'unavailable'] as const),
];

export function mcpResponses(components: Components): Record<string, Json> {
  const fault = components.schema(FAULT);
  const faults = Object.entries(FAULTS).map(([status, [description, example]]) => [
    status,
    {
      description,
      headers: responseHeaders(MCP_PATH),
      content: { 'application/json': { schema: fault, example } },
    },
  ]);
  return {
    200: {
      description:
        'The answer to a request, which may be an error of JSON-RPC. An error of a tool is a result with `isError`. Comes as JSON or, to clients of 2025 and to calls of `call_service`, as an event stream that ends with it',
      headers: responseHeaders(MCP_PATH, {
        'Cache-Control': { ...CACHE_CONTROL('no-cache, no-transform'), optional: true },
        'X-Accel-Buffering': { ...header('Tells nginx to pass events on as they come', 'no'), optional: true },
      }),
      content: {
        'application/json': { schema: { anyOf: [components.schema(RESULT), fault] }, example: RESULT_EXAMPLE },
        'text/event-stream': text(
          `event: message\ndata: ${JSON.stringify(RESULT_EXAMPLE)}\n\n`,
          'Events whose data are JSON-RPC messages: progress first, if the client asked for it, and the answer last',
        ),
      },
    },
    202: { description: 'A notification or a response has arrived', headers: responseHeaders(MCP_PATH) },
    ...errorResponses(MCP_PATH, REFUSALS, components),
    400: {
      description: `${describeErrors(BAD_MESSAGE)}\n\nOr an error of JSON-RPC: the message does not follow the protocol, or the headers contradict it.`,
      headers: errorHeaders(MCP_PATH, BAD_MESSAGE),
      content: {
        'application/json': {
          schema: { anyOf: [components.schema(errorsSchema(BAD_MESSAGE)), fault] },
          examples: errorExamples(BAD_MESSAGE),
        },
      },
    },
    ...Object.fromEntries(faults),
  };
}
