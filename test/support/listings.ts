import type { Listing } from '../../src/catalog/listing.ts';
import type { Quality } from '../../src/catalog/quality.ts';
import { ApiError } from '../../src/errors.ts';
import type { ApiResponse, Method, Route } from '../../src/http/route.ts';
import { Router } from '../../src/http/router.ts';
import { validatorsOf, validBody, validQuery } from '../../src/http/validation.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import type { Sql, Tx } from '../../src/platform/postgres.ts';

/** The quality of a service that twelve buyers have called, with the same lower bound. */
export const rated = (value: number, trend: number | null = null): Quality => ({
  value,
  trend,
  lowerBound: value,
  record: { calls: 201, buyers: 12, successRate: 0.995, latencyMs: 3 },
});

/** A listing with the given fields and ordinary values for the rest. */
export function makeListing(fields: Partial<Listing> = {}): Listing {
  return {
    id: uuidv7(),
    providerId: '00000000-0000-7000-8000-000000000001',
    name: 'Weather',
    description: 'Forecasts for every place',
    endpoint: 'http://service.example/api',
    priceMicros: 2_000,
    maxPriceMicros: null,
    freeCalls: 0,
    category: 'data',
    timeoutSeconds: 60,
    idleSeconds: null,
    protocol: 'http',
    onlyOperations: false,
    operationTerms: null,
    next: null,
    termsFromMs: null,
    docsUrl: null,
    healthPath: null,
    upstreamHeaders: null,
    upstreamQuery: null,
    signingKeys: null,
    forwardHeaders: null,
    blockedBuyers: null,
    status: 'active',
    isSuspended: false,
    createdAtMs: 1_760_000_000_000,
    updatedAtMicros: 1_760_000_000_000_000,
    rowHash: 1,
    ...fields,
  };
}

export const LISTING_FIELDS = {
  name: 'Weather',
  description: 'Forecasts for every place',
  endpoint: 'http://service.example/api',
  priceMicros: 2_000,
  maxPriceMicros: null,
  freeCalls: 0,
  category: 'data',
  timeoutSeconds: 60,
  idleSeconds: null,
  protocol: 'http',
  onlyOperations: false,
  operations: null,
  docsUrl: null,
  healthPath: null,
  upstreamHeaders: null,
  upstreamQuery: null,
  signingKeys: null,
  forwardHeaders: null,
} as const;

/** For routes of a gateway that watches nothing. */
export const NO_WATCH = { check: () => {} };

/** For routes that apply changed prices at once. */
export const NO_NOTICE = { secondsFor: async () => 0, foretold: async () => 0 };

/** For functions that take a pool: their transactions become part of this one. */
export const within = (tx: Tx): Sql =>
  Object.assign(tx, { begin: <T>(work: (tx: Tx) => PromiseLike<T>) => work(tx) }) as unknown as Sql;

export type Asked = {
  readonly by?: KeyRecord;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};

/** Sends `METHOD /path?query` through the router, the access list and the validation of the http layer to its handler. */
export async function ask(routes: readonly Route[], line: string, asked: Asked = {}): Promise<ApiResponse> {
  const [method, target] = line.split(' ') as [Method, string];
  const [path, query] = target.split('?') as [string, string | undefined];
  const match = new Router(routes).match(method, `/api/v1${path}`);
  if (match.kind !== 'route') throw new Error(`no route for ${line}`);
  const { access } = match.route;
  if (Array.isArray(access) && asked.by?.role !== 'admin' && !access.includes(asked.by?.role)) {
    throw new ApiError(asked.by === undefined ? 'unauthorized' : 'forbidden');
  }
  const validators = validatorsOf(match.route);
  const body = asked.body === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(asked.body));
  return match.route.handle({
    method,
    params: match.params,
    query: validQuery(validators.query, query),
    body: match.route.rawBody !== undefined ? body : validBody(validators.body, body),
    header: (name) => asked.headers?.[name],
    caller: asked.by === undefined ? { kind: 'ip' } : { kind: 'key', key: asked.by },
    address: null,
    requestId: 'test',
  });
}

/** The error with which a request is answered. Fails when there is none. */
export async function refusalOf(answer: Promise<ApiResponse>): Promise<ApiError> {
  const response = await answer.catch((error: unknown) => error);
  if (response instanceof ApiError) return response;
  throw new Error(`was not refused: ${JSON.stringify(response)}`);
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
export function bodyOf(response: ApiResponse): any {
  return typeof response.body === 'string' ? JSON.parse(response.body) : JSON.parse(JSON.stringify(response.body));
}
