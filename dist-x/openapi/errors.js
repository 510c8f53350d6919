import { ERRORS } from '../errors.js';
import { isForPages, RETRY_AFTER, responseHeaders } from './headers.js';
import { record, usd } from './schemas.js';
const ERROR = record('Error', {
    error: { type: 'string', enum: Object.keys(ERRORS), description: 'Stable: decide by this' },
    message: { type: 'string', description: 'For people; may change' },
    status: { type: 'integer', description: 'The status of the response' },
}, { description: 'What every error of the gateway looks like. Some codes have more fields' });
/** Fields besides those of every error, by code. */
const FIELDS = {
    insufficient_balance: {
        schema: {
            required: ['required', 'balance'],
            properties: {
                required: usd('What the call would take'),
                balance: usd('What the account can spend now'),
                top_up: { type: 'string', description: 'Where money can be added, if the operator names such a page' },
            },
        },
        example: { required: 0.002, balance: 0.0005, top_up: 'https://example.com/top-up' },
    },
    conflict: {
        schema: {
            properties: {
                balance: usd('Of a debit above it: what the wallet has beside its holds'),
                payable: usd('Of a payout above it: what the provider is owed'),
            },
        },
        example: {},
    },
    price_exceeds_maximum: {
        schema: { required: ['price'], properties: { price: usd('The present price of a call') } },
        example: { price: 0.002 },
    },
};
/** Headers besides those of every response, by code. */
const HEADERS = {
    unauthorized: {
        'WWW-Authenticate': { description: 'The scheme to use', schema: { type: 'string' }, example: 'Bearer' },
    },
    method_not_allowed: {
        Allow: { description: 'The methods that it does take', schema: { type: 'string' }, example: 'GET, POST, DELETE' },
    },
    upgrade_not_supported: {
        Upgrade: { description: 'The protocol to use instead', schema: { type: 'string' }, example: 'HTTP/1.1' },
    },
    rate_limited: { 'Retry-After': RETRY_AFTER },
    unavailable: { 'Retry-After': RETRY_AFTER },
    upstream_busy: { 'Retry-After': RETRY_AFTER },
};
/** Where the message of the table says less than the one that is really sent. */
const MESSAGES = {
    invalid_request: 'price: must be >= 0.',
    rate_limited: 'Rate limit exceeded. Try again in 3 seconds.',
    insufficient_balance: 'The balance does not cover the price of this call. Money can be added at https://example.com/top-up. GET /api/v1/balance/me shows the balance.',
};
/**
 * The codes that any route with this access, these schemas and this method can give, before its own code runs: those of
 * src/http/api.ts. Health checks and assets wait for nothing, so they can neither be refused nor fail.
 */
export function edgeErrors({ access, body, method, unmetered }) {
    const always = ['invalid_request', 'unsupported_framing'];
    if (unmetered)
        return always;
    return [
        ...always,
        ...(body === undefined ? [] : ['invalid_json']),
        ...(access === 'anyone' ? [] : ['unauthorized']),
        ...(method === 'GET' ? [] : ['body_too_slow', 'payload_too_large']),
        // `forbidden`, also where no key is needed: every request with a key of a suspended account gets it.
        ...['forbidden', 'rate_limited', 'internal', 'unavailable'],
    ];
}
/** The codes by status, each status once, in rising order. */
export function byStatus(codes) {
    const sorted = new Map();
    for (const code of codes) {
        const { status } = ERRORS[code];
        sorted.set(status, (sorted.get(status) ?? new Set()).add(code));
    }
    return [...sorted].sort(([a], [b]) => a - b).map(([status, set]) => [status, [...set].sort()]);
}
/** The schema of one code's errors: 'not_found' → NotFoundError. */
function errorSchema(code) {
    const { required = [], properties = {} } = (FIELDS[code]?.schema ?? {});
    return {
        title: `${pascal(code)}Error`,
        allOf: [
            ERROR,
            {
                type: 'object',
                required: ['error', 'status', ...required],
                properties: { error: { const: code }, status: { const: ERRORS[code].status }, ...properties },
            },
        ],
    };
}
export const errorsSchema = (codes) => codes.length === 1 ? errorSchema(codes[0]) : { anyOf: codes.map(errorSchema) };
export function errorExamples(codes) {
    return Object.fromEntries(codes.map((code) => {
        const { status, message } = ERRORS[code];
        return [code, { value: { error: code, message: MESSAGES[code] ?? message, status, ...FIELDS[code]?.example } }];
    }));
}
/** Headers that some code of a response has are optional if another code of it lacks them. */
export function errorHeaders(path, codes, more = {}) {
    const merged = { ...more };
    for (const code of codes) {
        for (const [name, header] of Object.entries(HEADERS[code] ?? {})) {
            const isOnAll = codes.every((other) => HEADERS[other]?.[name] !== undefined);
            merged[name] = isOnAll ? header : { ...header, optional: true };
        }
    }
    return responseHeaders(path, merged);
}
export const describeErrors = (codes) => codes.map((code) => `\`${code}\`: ${ERRORS[code].message}`).join('\n\n');
/** The error responses of a path, by status. Operations that can give the same codes share them. */
export function errorResponses(path, codes, components) {
    const prefix = isForPages(path) ? '' : 'Admin';
    return Object.fromEntries(byStatus(codes).map(([status, ofStatus]) => [
        String(status),
        components.response(prefix + ofStatus.map(pascal).join('Or'), () => ({
            description: describeErrors(ofStatus),
            headers: errorHeaders(path, ofStatus),
            content: {
                'application/json': {
                    schema: components.schema(errorsSchema(ofStatus)),
                    examples: errorExamples(ofStatus),
                },
            },
        })),
    ]));
}
/** 'not_found' → 'NotFound' */
export const pascal = (code) => code
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
//# sourceMappingURL=errors.js.map