import { ERRORS, type ErrorCode } from '../errors.ts';
import type { JsonSchema, ResponseDescription, Route } from '../http/route.ts';
import type { Components } from './components.ts';
import { isForPages, RETRY_AFTER, responseHeaders } from './headers.ts';
import { OPERATOR, OPERATOR_EXAMPLE, TOP_UP, TOP_UP_EXAMPLE } from './operator.ts';
import { EXAMPLE, orNull, record, TEXT, TIME, usd } from './schemas.ts';

type Json = Readonly<Record<string, unknown>>;
type Headers = NonNullable<ResponseDescription['headers']>;

const ERROR = record(
  'Error',
  {
    error: { type: 'string', enum: Object.keys(ERRORS), description: 'Stable: decide by this' },
    message: { type: 'string', description: 'For people; may change' },
    status: { type: 'integer', description: 'The status of the response' },
  },
  { description: 'What every error of the gateway looks like. Some codes have more fields' },
);

const CAUSE: JsonSchema = {
  properties: { cause: { ...TEXT, description: 'Why, for the owner of the service; the message says it in words' } },
};

/** Fields besides those of every error, by code. */
const FIELDS: { readonly [code in ErrorCode]?: { readonly schema: JsonSchema; readonly example: Json } } = {
  insufficient_balance: {
    schema: {
      required: ['required', 'balance'],
      properties: {
        required: usd('What the call would take'),
        balance: usd('What the account can spend now'),
        top_up: TOP_UP,
        operator: OPERATOR,
      },
    },
    example: { required: 0.002, balance: 0.0005, top_up: TOP_UP_EXAMPLE, operator: OPERATOR_EXAMPLE },
  },
  budget_exceeded: {
    schema: {
      required: ['limit_key', 'remaining', 'resets_at'],
      properties: {
        limit_key: { ...TEXT, description: 'The key whose budget it is' },
        remaining: usd('What that budget has left'),
        resets_at: { ...orNull(TIME), description: 'When it starts again; null: never' },
      },
    },
    example: { limit_key: EXAMPLE.keyId, remaining: 0.0005, resets_at: EXAMPLE.time },
  },
  free_calls_used: {
    schema: { required: ['price'], properties: { price: usd('What the call costs without a free call') } },
    example: { price: 0.002 },
  },
  upstream_error: { schema: CAUSE, example: {} },
  upstream_timeout: { schema: CAUSE, example: {} },
  conflict: {
    schema: {
      properties: {
        balance: usd('Of a debit above it: what the wallet has beside its holds'),
        payable: usd('Of a payout, or of a refund by a provider, above it: what the provider is owed'),
        left: usd('Of a refund above it: what is left of the call'),
      },
    },
    example: {},
  },
  answer_not_kept: {
    schema: {
      required: ['usage_id', 'amount'],
      properties: {
        usage_id: { ...TEXT, description: 'The first call' },
        amount: {
          ...orNull(usd('What it cost')),
          description: 'What it cost; null: nobody knows any more how it ended',
        },
      },
    },
    example: { usage_id: EXAMPLE.usageId, amount: 0.002 },
  },
  price_exceeds_maximum: {
    schema: { required: ['price'], properties: { price: usd('The present price of a call') } },
    example: { price: 0.002 },
  },
};

/** Headers besides those of every response, by code. */
const HEADERS: { readonly [code in ErrorCode]?: Headers } = {
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
  call_in_progress: { 'Retry-After': RETRY_AFTER },
};

/** Examples for codes whose message in the table says less than the one that is really sent. */
const MESSAGES: { readonly [code in ErrorCode]?: string } = {
  invalid_request: 'price: must be >= 0.',
  rate_limited: 'Rate limit exceeded. Try again in 3 seconds.',
  insufficient_balance: `The balance does not cover the price of this call. Money can be added at ${TOP_UP_EXAMPLE}. GET /api/v1/balance/me shows the balance.`,
};

/**
 * The codes that any route with this access, these schemas and this method can give before its own code runs (src/http/api.ts).
 * Health checks and assets wait for nothing, so they can neither be refused nor fail.
 */
export function edgeErrors({ access, body, method, unmetered }: Route): ErrorCode[] {
  const always: ErrorCode[] = ['invalid_request', 'unsupported_framing'];
  if (unmetered) return always;
  return [
    ...always,
    ...(body === undefined ? [] : (['invalid_json'] as const)),
    ...(access === 'anyone' ? [] : (['unauthorized'] as const)),
    ...(method === 'GET' ? [] : (['body_too_slow', 'payload_too_large'] as const)),
    // `forbidden`, also where no key is needed: every request with a key of a suspended account gets it.
    ...(['forbidden', 'rate_limited', 'internal', 'unavailable'] as const),
  ];
}

/** The codes by status, each status once, in rising order. */
export function byStatus(codes: readonly ErrorCode[]): [status: number, codes: ErrorCode[]][] {
  const sorted = new Map<number, Set<ErrorCode>>();
  for (const code of codes) {
    const { status } = ERRORS[code];
    sorted.set(status, (sorted.get(status) ?? new Set()).add(code));
  }
  return [...sorted].sort(([a], [b]) => a - b).map(([status, set]) => [status, [...set].sort()]);
}

/** The schema of one code's errors: 'not_found' → NotFoundError. */
function errorSchema(code: ErrorCode): JsonSchema {
  const { required = [], properties = {} } = (FIELDS[code]?.schema ?? {}) as {
    required?: string[];
    properties?: Record<string, JsonSchema>;
  };
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

export const errorsSchema = (codes: readonly ErrorCode[]): JsonSchema =>
  codes.length === 1 ? errorSchema(codes[0] as ErrorCode) : { anyOf: codes.map(errorSchema) };

export function errorExamples(codes: readonly ErrorCode[]): Json {
  return Object.fromEntries(
    codes.map((code) => {
      const { status, message } = ERRORS[code];
      return [code, { value: { error: code, message: MESSAGES[code] ?? message, status, ...FIELDS[code]?.example } }];
    }),
  );
}

/** Headers that only some codes of a response have are optional. */
export function errorHeaders(path: string, codes: readonly ErrorCode[], more: Headers = {}): Json {
  const merged: Record<string, Headers[string]> = { ...more };
  for (const code of codes) {
    for (const [name, header] of Object.entries(HEADERS[code] ?? {})) {
      const isOnAll = codes.every((other) => HEADERS[other]?.[name] !== undefined);
      merged[name] = isOnAll ? header : { ...header, optional: true };
    }
  }
  return responseHeaders(path, merged);
}

export const describeErrors = (codes: readonly ErrorCode[]): string =>
  codes.map((code) => `\`${code}\`: ${ERRORS[code].message}`).join('\n\n');

/** The error responses of a path, by status. Operations that can give the same codes share them. */
export function errorResponses(
  path: string,
  codes: readonly ErrorCode[],
  components: Components,
): Record<string, Json> {
  const prefix = isForPages(path) ? '' : 'Closed';
  return Object.fromEntries(
    byStatus(codes).map(([status, ofStatus]) => [
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
    ]),
  );
}

/** 'not_found' → 'NotFound' */
export const pascal = (code: string): string =>
  code
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
