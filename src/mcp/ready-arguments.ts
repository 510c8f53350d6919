/** A request, as in the field `call` of /discover/{id}. */
export type ReadyCall = {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
};

/** The header with the key, and the headers that `callRequest` sets by itself. */
const NOT_GIVEN = /^accept$|\{key_id\}/i;
/** These have their own argument. */
const IDEMPOTENCY_KEY = /^idempotency-key$/i;

/**
 * The arguments of `call_service` that make the same call as the request.
 *
 * Tested by test/mcp/ready-arguments.test.ts.
 */
export function readyArguments(serviceId: string, { method, url, headers, body }: ReadyCall): Record<string, unknown> {
  const target = url.slice(url.indexOf(serviceId) + serviceId.length);
  const [path = '', rawQuery = ''] = target.split('?', 2);
  const query = Object.fromEntries(new URLSearchParams(rawQuery));
  const { 'X-ACF-Max-Amount': maxAmount, 'Content-Type': contentType, ...others } = headers;
  const given = Object.entries(others).filter(([name, value]) => !NOT_GIVEN.test(name) && !NOT_GIVEN.test(value));
  const own = given.filter(([name]) => !IDEMPOTENCY_KEY.test(name));
  const idempotencyKey = given.find(([name]) => IDEMPOTENCY_KEY.test(name))?.[1];
  return {
    service_id: serviceId,
    method,
    path,
    ...(rawQuery === '' ? {} : { query }),
    ...(body === undefined ? {} : { body }),
    ...(contentType === undefined || contentType === 'application/json' ? {} : { content_type: contentType }),
    ...(own.length === 0 ? {} : { headers: Object.fromEntries(own) }),
    ...(idempotencyKey === undefined ? {} : { idempotency_key: idempotencyKey }),
    max_amount: Number(maxAmount),
  };
}
