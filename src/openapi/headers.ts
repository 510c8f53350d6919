import { isClosedToPages } from '../gate/caller-io.ts';
import type { Described, ResponseDescription } from '../http/route.ts';

type Json = Readonly<Record<string, unknown>>;
type Headers = NonNullable<ResponseDescription['headers']>;

const integer = (description: string, example: number): Described => ({
  description,
  schema: { type: 'integer', minimum: 0 },
  example,
});
const text = (description: string, example: string): Described => ({
  description,
  schema: { type: 'string' },
  example,
});
const usd = (description: string, example: string): Described => ({
  description,
  schema: { type: 'string', pattern: '^(0|[1-9][0-9]*)(\\.[0-9]{1,6})?$' },
  example,
});

/** The headers of every response (docs/api.md, 'Every response'). */
export const EVERY_RESPONSE: Headers = {
  'X-RateLimit-Limit': integer('Requests per minute of this caller, by the token bucket that this request drew on', 60),
  'X-RateLimit-Remaining': integer('Whole requests that would pass now', 59),
  'X-RateLimit-Reset': integer('Seconds until the full allowance is back: a duration, not a clock time', 1),
  'X-Request-Id': {
    description: "Names this request in the gateway's log. For a call it is the usage_id",
    schema: { type: 'string', format: 'uuid' },
    example: '019aa3f5-0d44-7a61-8c12-5b7e9f3a2d10',
  },
};

const ANY: Described = { description: '', schema: { type: 'string', const: '*' }, example: '*' };

/** The headers of every response, except on paths that are closed to pages of other origins. */
export const FOR_PAGES: Headers = {
  'Access-Control-Allow-Origin': { ...ANY, description: 'A web page of any origin may read the response' },
  'Access-Control-Expose-Headers': { ...ANY, description: 'It may read all of its headers' },
};

/** Whether web pages of other origins may read the responses of this path. */
export const isForPages = (path: string): boolean => !isClosedToPages(path);

/** The headers of every response to an admitted call. */
export const CALL_HEADERS: Headers = {
  'X-ACF-Amount': usd('What this call cost: decimal US dollars; 0 when free or not billed', '0.002'),
  'X-ACF-Held': {
    optional: true,
    description:
      'The call is priced by use, and its service had not reported what it cost: `X-ACF-Amount` is what is held, and the record of the call has the final amount',
    schema: { type: 'string', const: 'true' },
    example: 'true',
  },
  'X-ACF-Free-Tier': {
    description: 'Whether this call took one of the free calls',
    schema: { type: 'string', enum: ['true', 'false'] },
    example: 'false',
  },
  'X-ACF-Free-Left': {
    ...integer(
      'How many free calls of this service the account has left. Absent if it has none to give, or the call has a price of 0',
      99,
    ),
    optional: true,
  },
  'X-ACF-Usage-Id': {
    description: 'The record of this call: GET /api/v1/usage/{usage_id}',
    schema: { type: 'string', format: 'uuid' },
    example: '019aa3f5-0d44-7a61-8c12-5b7e9f3a2d10',
  },
  'X-ACF-Balance': usd('What the account, or a child key, can spend after this call: decimal US dollars', '9.998'),
  'Idempotent-Replayed': {
    optional: true,
    description:
      'This is the answer to the first call with this `Idempotency-Key`, whose cost the headers tell. Nothing was charged for it again',
    schema: { type: 'string', const: 'true' },
    example: 'true',
  },
  'Server-Timing': text(
    "Milliseconds that the call waited for its admission, and for the service's response head; the service's own values may follow",
    'admission;dur=0.8, service;dur=12.3',
  ),
  'Timing-Allow-Origin': text('A web page of any origin finds Server-Timing in its Performance Timeline, too', '*'),
};

/** Additional headers of a response that came from a service. */
export const FROM_SERVICE: Headers = {
  'Content-Security-Policy': text('A browser does not run what the service sent as a page of the gateway', 'sandbox'),
};

export const RETRY_AFTER: Described = integer('Whole seconds after which a retry makes sense', 3);

export const CACHE_CONTROL = (example: string): Described =>
  text('Who may keep this response, and for how long', example);
export const VARY = (example: string): Described => text('The request headers on which this response depends', example);
export const LANGUAGE_HEADERS: Headers = {
  'Content-Language': text('The language of the labels', 'en'),
  Vary: VARY('Accept-Language'),
};

/** The request header that chooses the language where there is no `lang`. */
export const ACCEPT_LANGUAGE: Readonly<Record<string, Described>> = {
  'Accept-Language': text('Languages of the labels, as browsers send them', 'de, en;q=0.5'),
};

/** Header objects in the form of the document. */
export function headerObjects(headers: Headers): Json {
  return Object.fromEntries(
    Object.entries(headers).map(([name, { optional, description, schema, example }]) => [
      name,
      { description, ...(optional ? {} : { required: true }), schema, ...(example === undefined ? {} : { example }) },
    ]),
  );
}

/**
 * The headers of every response of this path, and these. The former are components, and so are those of `CALL_HEADERS` if they are
 * used unchanged.
 */
export function responseHeaders(path: string, headers: Headers = {}): Json {
  const shared = (names: readonly string[]): Json =>
    Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
  const isShared = (name: string): boolean => headers[name] === CALL_HEADERS[name];
  const own = Object.entries(headers).filter(([name]) => !isShared(name));
  const ofCalls = Object.keys(headers).filter(isShared);
  const common = { ...EVERY_RESPONSE, ...(isForPages(path) ? FOR_PAGES : {}) };
  return { ...shared([...Object.keys(common), ...ofCalls]), ...headerObjects(Object.fromEntries(own)) };
}
