import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rawServer } from '../upstream/helpers.ts';
import { echo, type Key, Marketplace, startService, type TestService } from './marketplace.ts';
import { RawCaller, type RawResponse, requestText } from './raw-caller.ts';

let market: Marketplace;
let service: TestService;
let buyer: Key;
let free: string;
let priced: string;
const unknown = '/api/v1/proxy/00000000-0000-7000-8000-000000000000';
const LIMIT = 4096;

beforeAll(async () => {
  market = await Marketplace.start({ MAX_REQUEST_BODY_BYTES: String(LIMIT) });
  service = await startService(echo);
  buyer = await market.buyer(1);
  free = await market.service({ endpoint: service.url });
  priced = await market.service({ endpoint: service.url, price: 5 });
});
afterAll(async () => {
  await market.stop();
  await service.close();
});

const RATE_HEADERS = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'];

function expectCommonHeaders(response: RawResponse): void {
  for (const name of RATE_HEADERS)
    expect([name, ...response.all(name)]).toEqual([name, expect.stringMatching(/^\d+$/)]);
  const [limit, remaining] = RATE_HEADERS.map((name) => Number(response.get(name)));
  expect(limit).toBeGreaterThan(0);
  expect(remaining).toBeLessThanOrEqual(limit as number);
  expect(response.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  expect(forPages(response)).toEqual([['*'], ['*']]);
}

/** What the response tells browsers of pages of other origins. */
function forPages(response: RawResponse): string[][] {
  return ['access-control-allow-origin', 'access-control-expose-headers'].map((name) => response.all(name));
}

function expectError(response: RawResponse, status: number, error: string): void {
  expect(response.status).toBe(status);
  if (response.body.length === 0) return;
  expect(response.get('content-type')).toBe('application/json; charset=utf-8');
  expect(response.json()).toMatchObject({ error, status, message: expect.stringMatching(/.{10}/) });
}

async function once(work: (caller: RawCaller) => Promise<RawResponse>): Promise<RawResponse> {
  const caller = await RawCaller.connect(market.baseUrl);
  try {
    return await work(caller);
  } finally {
    caller.destroy();
  }
}

type Options = Parameters<typeof requestText>[1];

describe('every response has the rate limit headers and a request id, and any web page may read it', () => {
  type Row = [what: string, line: () => string, options: () => NonNullable<Options>, status: number, error: string];
  const withKey =
    (more: NonNullable<Options> = {}) =>
    () => ({ key: buyer, ...more });
  const noKey =
    (more: NonNullable<Options> = {}) =>
    () =>
      more;
  const rows: Row[] = [
    ['a call', () => `GET ${free}/x`, withKey(), 200, ''],
    ['a call with HEAD', () => `HEAD ${free}/x`, withKey(), 200, ''],
    ['a call without a key', () => `GET ${free}`, noKey(), 401, 'unauthorized'],
    ['a call with HEAD without a key', () => `HEAD ${free}`, noKey(), 401, 'unauthorized'],
    [
      'a call with half a key',
      () => `GET ${free}`,
      noKey({ headers: ['Authorization: Bearer acf_x'] }),
      401,
      'unauthorized',
    ],
    ['a call to an unknown service', () => `GET ${unknown}`, withKey(), 404, 'service_not_found'],
    ['a call to an unknown service, without a key', () => `GET ${unknown}`, noKey(), 401, 'unauthorized'],
    ['a call to an invalid service id', () => `GET /api/v1/proxy/x`, withKey(), 404, 'service_not_found'],
    ['a call that the balance does not cover', () => `GET ${priced}`, withKey(), 402, 'insufficient_balance'],
    [
      'a call whose price exceeds X-ACF-Max-Amount',
      () => `GET ${priced}`,
      withKey({ headers: ['X-ACF-Max-Amount: 1'] }),
      412,
      'price_exceeds_maximum',
    ],
    [
      'a call with an invalid X-ACF-Max-Amount',
      () => `GET ${free}`,
      withKey({ headers: ['X-ACF-Max-Amount: $1'] }),
      400,
      'invalid_request',
    ],
    ['a call with dot segments', () => `GET ${free}/../x`, withKey(), 400, 'invalid_request'],
    ['a call with an unknown method', () => `TRACE ${free}`, withKey(), 405, 'method_not_allowed'],
    ['a call with OPTIONS', () => `OPTIONS ${free}`, withKey(), 405, 'method_not_allowed'],
    [
      'a call with two lengths',
      () => `POST ${free}`,
      withKey({ headers: ['Content-Length: 1'], body: '' }),
      400,
      'unsupported_framing',
    ],
    [
      'a call with another coding',
      () => `POST ${free}`,
      withKey({ headers: ['Transfer-Encoding: gzip'] }),
      400,
      'unsupported_framing',
    ],
    ['a path with bytes that are not ASCII', () => `GET ${free}/\u00e9`, withKey(), 400, 'invalid_request'],
    ['an unknown path', () => 'GET /nothing', noKey(), 404, 'not_found'],
    ['an unknown path, with a key', () => 'GET /nothing', withKey(), 404, 'not_found'],
    ['a method that a path does not have', () => 'DELETE /api/v1/discover', noKey(), 405, 'method_not_allowed'],
    ['a method that no path has', () => 'OPTIONS /api/v1/discover', noKey(), 405, 'method_not_allowed'],
    ['a page without a key', () => 'GET /api/v1/balance/me', noKey(), 401, 'unauthorized'],
    ['a page that the role may not see', () => 'GET /api/v1/earnings/me', withKey(), 403, 'forbidden'],
    ['an unknown parameter', () => 'GET /api/v1/discover?nonsense=1', noKey(), 400, 'invalid_request'],
    ['a body that is not JSON', () => 'POST /api/v1/keys', noKey({ body: '{' }), 400, 'invalid_json'],
    ['a body that lacks a field', () => 'POST /api/v1/keys', noKey({ body: '{}' }), 400, 'invalid_request'],
    ['a page', () => 'GET /api/v1/usage/me', withKey(), 200, ''],
    ['a page with HEAD', () => 'HEAD /api/v1/usage/me', withKey(), 200, ''],
    ['discovery', () => 'GET /api/v1/discover', noKey(), 200, ''],
    ['the OpenAPI document', () => 'GET /api/v1/openapi.json', noKey(), 200, ''],
    ['health', () => 'GET /healthz', noKey(), 200, ''],
    ['readiness', () => 'GET /readyz', noKey(), 200, ''],
  ];

  it.each(rows)('%s', async (_what, line, options, status, error) => {
    const response = await once((caller) => caller.exchange(line(), options()));
    expectCommonHeaders(response);
    if (error === '') expect(response.status).toBe(status);
    else expectError(response, status, error);
    if (status === 401) expect(response.get('www-authenticate')).toBe('Bearer');
    if (status === 405) expect(response.get('allow')).toMatch(/GET, HEAD/);
  });

  it('except a request that the HTTP parser refuses: Content-Length together with Transfer-Encoding: chunked', async () => {
    const headers = ['Transfer-Encoding: chunked', 'Content-Length: 5'];
    const { status } = await once((caller) => caller.exchange(`POST ${free}`, { key: buyer, headers }));
    expect(status).toBe(400);
  });

  it.each([
    ['200', () => 'GET /api/v1/admin/reconciliation', () => market.admin],
    ['401', () => 'GET /api/v1/admin/reconciliation', () => undefined],
    ['403', () => 'GET /api/v1/admin/reconciliation', () => buyer],
    ['404', () => 'GET /api/v1/admin/nothing', () => market.admin],
    ['403', () => 'GET /api/v1/session', () => undefined],
    ['403', () => 'POST /api/v1/session', () => buyer],
    ['404', () => 'GET /api/v1/session/nothing/here', () => undefined],
    ['405', () => 'PUT /api/v1/session', () => undefined],
  ])(
    'except that no page of another origin may read responses below /api/v1/admin/, or of sessions: %s',
    async (status, line, key) => {
      const response = await once((caller) =>
        caller.exchange(line(), { key: key(), headers: ['Origin: http://a.test'] }),
      );
      expect(response.status).toBe(Number(status));
      expect(response.get('x-ratelimit-limit')).toMatch(/^\d+$/);
      expect(forPages(response)).toEqual([[], []]);
    },
  );

  it('including a 304 of discovery', async () => {
    const first = await once((caller) => caller.exchange('GET /api/v1/discover'));
    const etag = first.get('etag') as string;
    const again = await once((caller) =>
      caller.exchange('GET /api/v1/discover', { headers: [`If-None-Match: ${etag}`] }),
    );
    expect(again.status).toBe(304);
    expectCommonHeaders(again);
  });

  it('including a 502 for a service that is not there', async () => {
    const closed = await rawServer();
    const path = await market.service({ endpoint: closed.url });
    await closed.close();
    const response = await once((caller) => caller.exchange(`GET ${path}`, { key: buyer }));
    expectError(response, 502, 'upstream_error');
    expectCommonHeaders(response);
  });

  it.each([
    ['declared', () => requestText(`POST ${free}`, { key: buyer, body: 'x'.repeat(LIMIT + 1) })],
    [
      'in chunks',
      () => {
        const head = requestText(`POST ${free}`, { key: buyer, headers: ['Transfer-Encoding: chunked'] });
        return `${head}${(LIMIT + 1).toString(16)}\r\n${'x'.repeat(LIMIT + 1)}\r\n0\r\n\r\n`;
      },
    ],
    ['of the API itself', () => requestText('POST /api/v1/keys', { body: 'x'.repeat(65_537) })],
  ])('including a 413 for a body that is too large, %s', async (_name, request) => {
    const response = await once((caller) => {
      caller.send(request());
      return caller.response();
    });
    expectError(response, 413, 'payload_too_large');
    expectCommonHeaders(response);
  });
});

describe('the rate limit', () => {
  const limited = async (limit: number): Promise<Key> => {
    const key = await market.buyer(1);
    await market.json(`/api/v1/keys/${key.key_id}`, {
      key: market.admin,
      method: 'PATCH',
      body: { rate_limit: limit },
    });
    return key;
  };

  it.each([
    ['a call', () => free],
    ['a page', () => '/api/v1/balance/me'],
    ['a refused call', () => unknown],
  ])('is per key, counts down, and a 429 says how long to wait: %s', async (_name, path) => {
    const key = await limited(2);
    const [first, second, third] = await several(path(), key, 3);
    expect([first?.get('x-ratelimit-limit'), first?.get('x-ratelimit-remaining')]).toEqual(['2', '1']);
    expect(second?.get('x-ratelimit-remaining')).toBe('0');
    // At two tokens a minute, one comes back within 30 s, both within 60.
    expect(Number(second?.get('x-ratelimit-reset'))).toBeGreaterThan(30);
    expect(Number(second?.get('x-ratelimit-reset'))).toBeLessThanOrEqual(60);
    const refused = third as RawResponse;
    expectError(refused, 429, 'rate_limited');
    expectCommonHeaders(refused);
    const seconds = Number(refused.get('retry-after'));
    expect(seconds).toBeGreaterThan(25);
    expect(seconds).toBeLessThanOrEqual(30);
    expect(refused.json<{ message: string }>().message).toContain(`${seconds} seconds`);
  });

  it('admits a call after the seconds that Retry-After names; a refused call costs neither a token nor money', async () => {
    const key = await limited(60);
    const responses = await several(free, key, 65);
    const refused = responses.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    // The other callers are told later times, because each waits for a token of its own.
    const first = refused[0] as RawResponse;
    expect(first.get('retry-after')).toBe('1');
    expect(first.json<{ message: string }>().message).toContain('1 second.');
    // The header promises this time.
    await wait(1000 * Number(first.get('retry-after')));
    expect((await market.request(free, { key })).status).toBe(200);
    await market.settled();
    const [{ count } = { count: -1 }] = await market.stores.sql<{ count: number }[]>`
      SELECT count(*)::int AS count FROM calls WHERE key_id = ${key.key_id}`;
    expect(count).toBe(responses.length - refused.length + 1);
  });

  it('for callers without a valid key is per address', async () => {
    const small = await Marketplace.start({ ANONYMOUS_RATE_LIMIT: '3' });
    // The test setup has used two tokens to make its keys.
    const third = await small.request('/api/v1/discover');
    const fourth = await small.request('/api/v1/discover');
    const call = await small.request(unknown, { headers: { Authorization: 'Bearer nonsense' } });
    const withKey = await small.request('/api/v1/keys/me', { key: small.provider });
    const health = await small.request('/healthz');
    const statuses = [third, fourth, call, withKey, health].map(({ status }) => status);
    expect(statuses).toEqual([200, 429, 429, 200, 200]);
    expect(third.headers.get('x-ratelimit-remaining')).toBe('0');
    expect(fourth.headers.get('retry-after')).toMatch(/^(1\d|20)$/);
    await small.stop();
  });

  /** Several requests on one connection, one after the other. */
  async function several(path: string, key: Key, times: number): Promise<RawResponse[]> {
    const caller = await RawCaller.connect(market.baseUrl);
    const responses: RawResponse[] = [];
    for (let i = 0; i < times; i++) responses.push(await caller.exchange(`GET ${path}`, { key }));
    caller.destroy();
    return responses;
  }
});

describe('a key', () => {
  it('that is revoked gets 401 on the very next call and page', async () => {
    const key = await market.buyer(1);
    expect((await market.request(free, { key })).status).toBe(200);
    const revoked = await market.request(`/api/v1/keys/${key.key_id}`, { key: market.admin, method: 'DELETE' });
    expect(revoked.ok).toBe(true);
    const call = await market.request(free, { key });
    expect(call.status).toBe(401);
    expect(call.headers.get('www-authenticate')).toBe('Bearer');
    expect((await market.request('/api/v1/balance/me', { key })).status).toBe(401);
  });

  it('whose limit changes has the new limit from the very next call', async () => {
    const key = await market.buyer(0);
    await market.json(`/api/v1/keys/${key.key_id}`, { key: market.admin, method: 'PATCH', body: { rate_limit: 7 } });
    const response = await market.request(free, { key });
    expect(response.headers.get('x-ratelimit-limit')).toBe('7');
    expect(response.headers.get('x-ratelimit-remaining')).toBe('6');
  });

  it('of a provider may not call listings of other providers', async () => {
    const key = await market.anotherProvider();
    const response = await once((caller) => caller.exchange(`GET ${free}`, { key }));
    expectError(response, 403, 'forbidden');
    expectCommonHeaders(response);
  });

  it('whose role may not open a page is told which role the page requires', async () => {
    const refused = await market.request('/api/v1/balance/me', { key: market.provider });
    expect([refused.status, (await refused.json()) as { message: string }]).toEqual([
      403,
      expect.objectContaining({
        message: 'This request needs an API key with the role buyer. Yours has the role provider.',
      }),
    ]);
  });

  it('of an admin may make calls', async () => {
    expect((await market.request(free, { key: market.admin })).status).toBe(200);
  });

  it('with the wrong secret is refused like a missing key', async () => {
    const other = await market.buyer(0);
    const response = await market.request(free, { key: { ...buyer, secret: other.secret } });
    expect(response.status).toBe(401);
  });
});

describe('X-ACF-Max-Amount', () => {
  it('admits a call at exactly its price, and refuses a more expensive call without a charge, naming the price', async () => {
    const path = await market.service({ endpoint: service.url, price: 0.25 });
    const key = await market.buyer(1);
    const at = await market.request(path, { key, headers: { 'X-ACF-Max-Amount': '0.25' } });
    expect([at.status, at.headers.get('x-acf-amount')]).toEqual([200, '0.25']);
    const below = await market.request(path, { key, headers: { 'X-ACF-Max-Amount': '0.249999' } });
    expect(below.status).toBe(412);
    expect(await below.json()).toMatchObject({ error: 'price_exceeds_maximum', status: 412, price: 0.25 });
    expect(below.headers.get('x-acf-amount')).toBeNull();
    expect(await market.records(key)).toHaveLength(1);
    expect(await market.balance(key)).toMatchObject({ balance: 0.75, held: 0 });
  });
});
