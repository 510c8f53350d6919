import { byStatus, describeErrors, errorExamples, errorHeaders, errorsSchema, pascal } from './errors.js';
import { CALL_HEADERS, FROM_SERVICE, responseHeaders } from './headers.js';
import { EXAMPLE, UUID } from './schemas.js';
export const PROXY_PATH = '/api/v1/proxy/:service_id/:path';
export const PROXY_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
export const PROXY_PARAMS = {
    service_id: { description: 'The service', schema: UUID, example: EXAMPLE.serviceId },
    path: {
        description: 'Path at the service. It may have several segments, or none. It reaches the service byte for byte, and so does any query: a client that encodes the slashes in it asks for another path',
        schema: { type: 'string' },
        example: 'translate',
    },
};
export const PROXY_REQUEST_HEADERS = {
    'X-ACF-Max-Amount': {
        description: 'Maximum price of this call in USD: if the price is higher, even if a free call would cover it, the response is 412 and nothing is charged',
        schema: { type: 'string', pattern: '^(0|[1-9][0-9]{0,9})(\\.[0-9]{1,6})?$' },
        example: '0.01',
    },
    'X-ACF-Forward': {
        description: 'Names of credential headers of this request that may reach the service, joined by commas. Only those in its `forward_headers` do',
        schema: { type: 'string' },
        example: 'x-api-key',
    },
};
/** Whatever a service sends. It is not the empty schema, which generated clients read as a type that swallows all others. */
const SERVICE_ANSWER = {
    title: 'ServiceAnswer',
    description: 'Whatever the service sends',
    type: ['object', 'array', 'string', 'number', 'boolean', 'null'],
    additionalProperties: true,
    items: {},
};
const SERVICE_CONTENT = (components) => ({
    '*/*': { schema: components.schema(SERVICE_ANSWER), example: { text: 'bonjour' } },
});
/** The errors of src/proxy/. */
const CODES = [
    ...['invalid_request', 'unsupported_framing', 'unauthorized', 'insufficient_balance', 'forbidden'],
    ...[
        'service_not_found',
        'operation_not_found',
        'price_exceeds_maximum',
        'body_too_slow',
        'payload_too_large',
        'upgrade_not_supported',
    ],
    ...['rate_limited', 'internal', 'upstream_error', 'unavailable', 'upstream_busy', 'upstream_timeout'],
];
/** What only calls of MCP listings get: their messages come by POST, and GET and DELETE are the protocol's. */
function mcpCodes(method) {
    if (method === 'POST')
        return ['invalid_json'];
    return method === 'GET' || method === 'DELETE' ? [] : ['method_not_allowed'];
}
export function proxyResponses(method, components) {
    const answer = (description) => ({
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
        default: components.response('CallAnsweredOtherwise', () => answer("The service's own answer with another status. A service may send one of the statuses above too. Its own answers have `Content-Security-Policy: sandbox`, errors of the gateway have not")),
    };
}
/** A refused call has no X-ACF-* headers; one that failed after its admission has all of them, and so has a service's own answer. */
function errorOfCall(codes, components) {
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
//# sourceMappingURL=proxy.js.map