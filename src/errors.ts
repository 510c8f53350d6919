/**
 * The error codes of the API (docs/api.md, 'Errors'). Each has its status, and a default message. Clients decide by the code, so
 * the status of a code never changes.
 */
export const ERRORS = {
  invalid_request: { status: 400, message: 'The request is invalid.' },
  invalid_json: { status: 400, message: 'The body is not valid JSON.' },
  unsupported_framing: { status: 400, message: 'The message framing is ambiguous or not supported.' },
  unauthorized: {
    status: 401,
    message: 'A valid API key is required: Authorization: Bearer {key_id}:{secret}, or X-Api-Key.',
  },
  budget_exceeded: { status: 402, message: 'The budget of this key, or of a key above it, does not cover this call.' },
  free_calls_used: {
    status: 402,
    message: 'No free call of this service is left, and the request allows no paid call.',
  },
  insufficient_balance: { status: 402, message: 'The balance does not cover the price of this call.' },
  forbidden: { status: 403, message: 'This API key is not permitted to do that.' },
  not_found: { status: 404, message: 'There is nothing at this path.' },
  service_not_found: { status: 404, message: 'There is no active service with this id.' },
  operation_not_found: { status: 404, message: 'This service has no operation with this method and path.' },
  method_not_allowed: { status: 405, message: 'This path does not support this method.' },
  not_acceptable: {
    status: 406,
    message: 'Accept: a message for an MCP server must name application/json and text/event-stream.',
  },
  body_too_slow: { status: 408, message: 'The request body took too long to arrive.' },
  conflict: { status: 409, message: 'The request conflicts with the current state.' },
  call_in_progress: {
    status: 409,
    message: 'A call with this Idempotency-Key is under way. Repeat it later to get its answer.',
  },
  price_exceeds_maximum: { status: 412, message: 'The price of this service is above X-ACF-Max-Amount.' },
  payload_too_large: { status: 413, message: 'The request body is too large.' },
  answer_not_kept: {
    status: 422,
    message:
      'A call with this Idempotency-Key was charged, and its answer is not kept. Nothing more was charged; another Idempotency-Key makes another call.',
  },
  idempotency_mismatch: {
    status: 422,
    message: 'This Idempotency-Key belongs to another request: method, path, query and body must be the same.',
  },
  upgrade_not_supported: { status: 426, message: 'Calls use HTTP/1.1. Upgrades to WebSocket or HTTP/2 are refused.' },
  rate_limited: { status: 429, message: 'Too many requests.' },
  internal: { status: 500, message: 'Something went wrong on our side.' },
  upstream_error: { status: 502, message: 'The service could not be reached, or its response broke off.' },
  unavailable: { status: 503, message: 'The gateway cannot serve this request right now. Please retry.' },
  upstream_busy: { status: 503, message: 'The service has too many calls in flight. Please retry.' },
  upstream_timeout: { status: 504, message: 'The service did not answer in time.' },
} as const;

export type ErrorCode = keyof typeof ERRORS;

type ErrorExtras = {
  /** Fields added to the error body; for example `required` and `balance` of a 402. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** Response headers that belong to the error; for example `Allow` or `Retry-After`. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
};

/**
 * An error that is shown to the caller. Any other thrown error becomes `internal` and is logged. The API makes one exception: an
 * error from an unreachable store becomes `unavailable`.
 */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, message: string = ERRORS[code].message, extras: ErrorExtras = {}) {
    // No stack is collected: the error code is enough to find where the error comes from, and collecting a stack made a refused
    // call cost a quarter more.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.name = 'ApiError';
    this.code = code;
    this.status = ERRORS[code].status;
    this.fields = extras.fields ?? {};
    this.headers = extras.headers ?? {};
  }

  /** The body of every error response (docs/api.md, 'Every response'). */
  body(): Record<string, unknown> {
    return { error: this.code, message: this.message, status: this.status, ...this.fields };
  }
}

/** A 401 must name the authentication scheme (RFC 9110 §11.6.1). */
export function unauthorizedError(message?: string): ApiError {
  return new ApiError('unauthorized', message, { headers: { 'WWW-Authenticate': 'Bearer' } });
}

/** The key was valid until its `expires_at`. */
export function expiredError(): ApiError {
  return new ApiError('unauthorized', 'This API key has expired.', { headers: { 'WWW-Authenticate': 'Bearer' } });
}

/**
 * The key is valid, but its account is suspended until an admin resumes it.
 *
 * @param reason  what the operator tells the account, or null
 */
export function suspendedError(reason: string | null): ApiError {
  return new ApiError('forbidden', `This account is suspended${reason === null ? '.' : `: ${reason}`}`);
}

/**
 * The gateway cannot serve the request now. Like every 503, it says when to retry (docs/api.md). `upstream_busy`, made in
 * src/proxy, is also a 503, but there the service is at fault.
 */
export function unavailableError(cause?: unknown, message?: string, retryAfterSeconds = 1): ApiError {
  return new ApiError('unavailable', message, { headers: { 'Retry-After': String(retryAfterSeconds) }, cause });
}

/** For operators: only code that moves money or corrects drifts requires the right Postgres (ledger/history/fence.ts). */
export function olderPostgresError(cause: unknown): ApiError {
  return unavailableError(
    cause,
    'Postgres is older than Redis: it lacks calls that were stored. No money moves until the right one is back.',
  );
}

/** The request body is longer than `maxBytes`. */
export function tooLargeError(maxBytes: number): ApiError {
  return new ApiError('payload_too_large', `The request body may have at most ${maxBytes} bytes.`);
}
