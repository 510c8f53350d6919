import type { ErrorCode } from '../errors.ts';
import type { Described, JsonSchema, Method } from '../http/route.ts';
import { TAG_PATTERN } from '../platform/call-tag.ts';
import type { Components } from './components.ts';
import { byStatus, describeErrors, errorExamples, errorHeaders, errorsSchema, pascal } from './errors.ts';
import { CALL_HEADERS, FROM_SERVICE, responseHeaders } from './headers.ts';
import { EXAMPLE, UUID } from './schemas.ts';

type Json = Readonly<Record<string, unknown>>;

export const PROXY_PATH = '/api/v1/proxy/:service_id/:path';
export const PROXY_METHODS: readonly Method[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

export const PROXY_PARAMS: Readonly<Record<string, Described>> = {
  service_id: { description: 'The service', schema: UUID, example: EXAMPLE.serviceId },
  path: {
    description:
      'Path at the service. It may have several segments, or none. It reaches the service byte for byte, and so does any query: a client that encodes the slashes in it asks for another path',
    schema: { type: 'string' },
    example: 'translate',
  },
};

export const PROXY_REQUEST_HEADERS: Readonly<Record<string, Described>> = {
  'X-ACF-Max-Amount': {
    description:
      'Maximum cost of this call in USD. If the price is higher, even if a free call would cover it, the response is 412 and nothing is charged. A service that is priced by use can charge no more than this',
    schema: { type: 'string', pattern: '^(0|[1-9][0-9]{0,9})(\\.[0-9]{1,6})?$' },
    example: '0.01',
  },
  'X-ACF-Free-Only': {
    description:
      'If `true`, the call costs nothing. If its price is not 0 and no free call covers it, the response is 402 `free_calls_used`',
    schema: { type: 'string', enum: ['true', 'false'] },
    example: 'true',
  },
  'X-ACF-Tag': {
    description:
      'Whom or what the call is for, in your words: recorded with it, for you alone, and in sums of your account by tag and day (`GET /usage`). It is not sent to the service',
    schema: { type: 'string', pattern: TAG_PATTERN },
    example: 'customer-17',
  },
  'X-ACF-Usage-Event': {
    description:
      'If `true`, an event stream with a 2xx status that is not encoded and has no length ends with an event `acf.usage`, which says what the call cost',
    schema: { type: 'string', enum: ['true', 'false'] },
    example: 'true',
  },
  'Idempotency-Key': {
    description:
      'Makes the call one that is paid once: within 24 hours the same value from the same API key gets the first answer again, and is not charged. 1 to 255 visible ASCII characters, which may be between double quotes. It reaches the service, too',
    schema: { type: 'string', pattern: '^("[!#-~]{1,255}"|[!#-~][!-~]{0,254})$' },
    example: '4d1c8a1e-5f0b-4f6e-9d0a-3b1f7c2e8a90',
  },
  'X-ACF-Forward': {
    description:
      'Names of credential headers of this request that may reach the service, joined by commas. Only those in its `forward_headers` do',
    schema: { type: 'string' },
    example: 'x-api-key',
  },
};

/**
 * The schema of a service's answer. It is not the empty schema, which generated clients read as a type that swallows all others.
 */
const SERVICE_ANSWER: JsonSchema = {
  title: 'ServiceAnswer',
  description: 'Whatever the service sends',
  type: ['object', 'array', 'string', 'number', 'boolean', 'null'],
  additionalProperties: true,
  items: {},
};

const SERVICE_CONTENT = (components: Components): Json => ({
  '*/*': { schema: components.schema(SERVICE_ANSWER), example: { text: 'bonjour' } },
});

/** The errors of src/proxy/. */
const CODES: readonly ErrorCode[] = [
  ...([
    'invalid_request',
    'unsupported_framing',
    'unauthorized',
    'free_calls_used',
    'insufficient_balance',
    'budget_exceeded',
    'forbidden',
  ] as const),
  ...([
    'service_not_found',
    'operation_not_found',
    'call_in_progress',
    'price_exceeds_maximum',
    'body_too_slow',
    'payload_too_large',
    'answer_not_kept',
    'idempotency_mismatch',
    'upgrade_not_supported',
  ] as const),
  ...(['rate_limited', 'internal', 'upstream_error', 'unavailable', 'upstream_busy', 'upstream_timeout'] as const),
];

/** Errors that only calls of MCP listings get: their messages come by POST; GET and DELETE belong to the protocol. */
function mcpCodes(method: Method): readonly ErrorCode[] {
  if (method === 'POST') return ['invalid_json', 'not_acceptable'];
  return method === 'GET' || method === 'DELETE' ? [] : ['method_not_allowed'];
}

export function proxyResponses(method: Method, components: Components): Record<string, Json> {
  const answer = (description: string): Json => ({
    description,
    headers: responseHeaders(PROXY_PATH, { ...CALL_HEADERS, ...FROM_SERVICE }),
    content: SERVICE_CONTENT(components),
  });
  const errors = byStatus([...CODES, ...mcpCodes(method)]).map(([status, codes]) => [
    String(status),
    components.response(`Call${codes.map(pascal).join('Or')}`, () => errorOfCall(codes, components)),
  ]);
  return {
    200: components.response('CallAnswered', () => answer("The service's own answer")),
    ...Object.fromEntries(errors),
    default: components.response('CallAnsweredOtherwise', () =>
      answer(
        "The service's own answer with another status. A service may send one of the statuses above too. Its own answers have `Content-Security-Policy: sandbox`, errors of the gateway do not",
      ),
    ),
  };
}

/**
 * A refused call has no X-ACF-* headers. A call that failed after its admission has all of them, and so has a service's own answer.
 */
function errorOfCall(codes: readonly ErrorCode[], components: Components): Json {
  const headers = Object.entries({ ...CALL_HEADERS, ...FROM_SERVICE }).map(([name, header]) => [
    name,
    { ...header, optional: true },
  ]);
  return {
    description: describeErrors(codes),
    headers: errorHeaders(PROXY_PATH, codes, Object.fromEntries(headers)),
    content: {
      'application/json': {
        schema: { anyOf: [components.schema(errorsSchema(codes)), components.schema(SERVICE_ANSWER)] },
        examples: errorExamples(codes),
      },
      ...SERVICE_CONTENT(components),
    },
  };
}
