import type { ApiError, ErrorCode } from '../errors.ts';

/** The result of a tool, as the protocol defines it (`CallToolResult`). */
export type ToolResult = {
  /** The protocol's type allows other fields. */
  readonly [field: string]: unknown;
  readonly content: { readonly type: 'text'; readonly text: string }[];
  readonly structuredContent?: Record<string, unknown>;
  readonly isError?: boolean;
};

/** The same value as text and as structured content: clients that do not know structured content read the text. */
export function toolResult(value: Record<string, unknown>, isError = false): ToolResult {
  const result = { content: [{ type: 'text' as const, text: JSON.stringify(value) }], structuredContent: value };
  return isError ? { ...result, isError } : result;
}

/**
 * An error of `call_service` in the form of the API's errors, with what the call cost and what an agent should know before it tries
 * again.
 *
 * @param isKeyed  whether the call had an idempotency key
 */
export function callError(
  error: ErrorFields,
  cost: { readonly amount: number; readonly usage_id?: string },
  isKeyed = false,
): ToolResult {
  const { amount } = cost;
  const again = isKeyed ? 'A repeat with the same idempotency_key is not charged again.' : 'A repeat is charged again.';
  const advice = amount === 0 ? ADVICE[error.error as ErrorCode] : again;
  // This error states the amount of the first call instead of its own.
  const charged = error.error === 'answer_not_kept' ? 'Nothing more was charged.' : chargedText(amount);
  const note = [charged, advice].filter((part) => part !== undefined).join(' ');
  return toolResult({ ...cost, ...error, note }, true);
}

/** The sentence with which every note begins. */
export function chargedText(amount: number): string {
  return amount === 0 ? 'Nothing was charged.' : `$${amount} was charged.`;
}

/** An error of a tool that makes no call. It has no structured content: the tool's output schema describes only successes. */
export function plainToolError(error: ApiError): ToolResult {
  const note = error.code === 'unauthorized' ? { note: ADVICE.unauthorized } : {};
  const fields = { ...fieldsOf(error), ...note };
  return { content: [{ type: 'text', text: JSON.stringify(fields) }], isError: true };
}

export type ErrorFields = {
  readonly error: string;
  readonly message: string;
  readonly status: number;
  readonly retry_after_seconds?: number;
};

export function fieldsOf(error: ApiError): ErrorFields {
  return { ...(error.body() as ErrorFields), ...retryAfter(error.headers['Retry-After']) };
}

/** The value of `Retry-After` as a field of an error. */
export function retryAfter(seconds: string | undefined): { readonly retry_after_seconds?: number } {
  return seconds === undefined ? {} : { retry_after_seconds: Number(seconds) };
}

const PERHAPS_DONE =
  'The service may have acted on the request before it failed: repeat the call only if doing it twice is harmless.';
const NOT_REACHED = 'The service did not get the request. Wait retry_after_seconds before you try again.';

/** What to do about an error for which nothing was charged. A code that is missing here needs no advice. */
const ADVICE: { readonly [code in ErrorCode]?: string } = {
  invalid_request: 'Correct the argument that the message names.',
  unauthorized:
    'This tool needs an API key. `POST /api/v1/keys` with {"owner_id": "any label", "role": "buyer"} makes one. ' +
    'Ask the person who configured this MCP server to send it in the header `Authorization: Bearer {key_id}:{secret}`.',
  insufficient_balance:
    'Repeating the call is useless until the balance covers `required`: ask the account holder to top it up, ' +
    'set a lower max_amount if the service has a max_price, or look for a cheaper one with discover_services (max_price, or free).',
  free_calls_used:
    'The call costs `price`: leave free_only out if that is acceptable, or look for another service with discover_services (free).',
  budget_exceeded:
    'Repeating the call is useless until `resets_at` (null: for good), or until the holder of the key above `limit_key` raises its budget.',
  forbidden: 'Repeating the call with this API key is useless.',
  service_not_found: 'Find the ids of active services with discover_services.',
  operation_not_found: 'Read the operations of this service with get_service.',
  not_acceptable: 'Name both media types in `headers.accept`, or leave it out.',
  price_exceeds_maximum:
    'The call costs `price`: raise max_amount if that is acceptable and your API key permits it, or choose another service.',
  call_in_progress:
    'Wait retry_after_seconds, then repeat the call with the same idempotency_key and arguments to get its answer.',
  answer_not_kept:
    'get_usage has the record of the first call (usage_id). A call with another idempotency_key is charged again.',
  idempotency_mismatch: 'Use another idempotency_key for another call.',
  payload_too_large: 'Send less.',
  rate_limited: 'Wait retry_after_seconds before any other request with this API key.',
  upstream_error: PERHAPS_DONE,
  upstream_timeout: PERHAPS_DONE,
  unavailable: NOT_REACHED,
  upstream_busy: NOT_REACHED,
};
