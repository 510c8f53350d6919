// What the gateway tells browsers, as bytes. What browsers make of it: browsers.test.ts.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bodyOf, type Key, Marketplace, startService, type TestService } from './marketplace.ts';
import { RawCaller, type RawResponse } from './raw-caller.ts';

let market: Marketplace;
let service: TestService;
let buyer: Key;
let path: string;
/** Methods and header names that the service has seen. */
let seen: { method: string | undefined; headers: string[] }[] = [];

beforeAll(async () => {
  market = await Marketplace.start();
  service = await startService(async (request, response) => {
    seen.push({ method: request.method, headers: Object.keys(request.headers) });
    await bodyOf(request);
    response.writeHead(200, {
      'Access-Control-Allow-Origin': 'https://elsewhere.example',
      'Access-Control-Allow-Credentials': 'true',
      'Access-Control-Expose-Headers': 'X-Few',
      'Cross-Origin-Resource-Policy': 'same-origin',
    });
    response.write('streamed ');
    response.end('in chunks');
  });
  buyer = await market.buyer(1);
  path = await market.service({ endpoint: service.url, price: 0.001 });
});
afterAll(async () => {
  await market.stop();
  await service.close();
});

async function send(line: string, headers: readonly string[] = [], more: { key?: Key; body?: string } = {}) {
  const caller = await RawCaller.connect(market.baseUrl);
  try {
    return await caller.exchange(line, { headers: ['Origin: https://shop.example', ...headers], ...more });
  } finally {
    caller.destroy();
  }
}

const ASKS = 'Access-Control-Request-Method: POST';
const preflight = (target: string, ...headers: string[]): Promise<RawResponse> =>
  send(`OPTIONS ${target}`, [ASKS, ...headers]);
const cors = (response: RawResponse): Record<string, string> =>
  Object.fromEntries(response.headers.filter(([name]) => /^(access-control-|vary)/i.test(name)));

describe('a preflight', () => {
  it.each([
    ['a call', () => `${path}/x?y=1`],
    ['a page', () => '/api/v1/keys'],
    ['a path that does not exist', () => '/nothing'],
  ])(
    'of %s is answered by the gateway, which allows every method and the headers that were asked for',
    async (_what, target) => {
      seen = [];
      const response = await preflight(
        target(),
        'Access-Control-Request-Headers: authorization,content-type,x-stainless-os',
      );
      expect([response.status, response.body.length]).toEqual([204, 0]);
      expect(cors(response)).toEqual({
        'Access-Control-Allow-Origin': '*',
        'Access-Control-Expose-Headers': '*',
        'Access-Control-Allow-Methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
        'Access-Control-Allow-Headers': 'authorization,content-type,x-stainless-os',
        'Access-Control-Max-Age': '7200',
        Vary: 'Access-Control-Request-Headers',
      });
      expect(response.get('x-ratelimit-limit')).toBe('100000');
      expect(response.get('x-ratelimit-remaining')).toBe('100000');
      expect(response.get('x-ratelimit-reset')).toBe('0');
      expect(response.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
      expect(seen).toEqual([]);
    },
  );

  it('that asks for no headers is allowed none, and no preflight is allowed into a private network', async () => {
    for (const headers of [
      [],
      ['Access-Control-Request-Headers: '],
      ['Access-Control-Request-Private-Network: true'],
    ]) {
      const response = await preflight(path, ...headers);
      expect(response.status).toBe(204);
      expect(Object.keys(cors(response))).not.toContain('Access-Control-Allow-Headers');
      expect(Object.keys(cors(response))).not.toContain('Access-Control-Allow-Private-Network');
    }
  });

  it('leaves the connection open for the request that follows', async () => {
    const closing = [];
    // One response in 64 without a body closes its connection (src/http/unread.ts): five in a row do so once in a thousand million runs.
    for (let i = 0; i < 5; i++) closing.push((await preflight(path)).get('connection'));
    expect(closing).toContain(null);
  });

  it('takes no token: it is answered while Redis, where the tokens are, is silent', async () => {
    market.redis.pause();
    try {
      expect((await preflight(path)).status).toBe(204);
      expect((await send('GET /api/v1/discover')).status).toBe(503);
    } finally {
      market.redis.resume();
    }
  });

  it.each([
    ['invalid names', 'a b'],
    ['an empty name', 'a,,b'],
    ['a header line', 'a: b'],
    ['quotes', '"a"'],
    ['more than 2 048 characters', 'x'.repeat(2_049)],
  ])('with %s as header names is 400, and the answer does not echo them', async (_what, names) => {
    const response = await preflight(path, `Access-Control-Request-Headers: ${names}`);
    expect(response.status).toBe(400);
    expect(response.json()).toMatchObject({
      error: 'invalid_request',
      message: expect.stringContaining('access-control-request-headers: must be header names'),
    });
    expect(response.get('access-control-allow-headers')).toBeNull();
  });

  it('with 2 048 characters of header names is answered', async () => {
    const names = 'x'.repeat(1_023).concat(', ', 'y'.repeat(1_023));
    expect(
      (await preflight(path, `Access-Control-Request-Headers: ${names}`)).get('access-control-allow-headers'),
    ).toBe(names);
  });

  it('for a path below /api/v1/admin/ is refused, so that no page of another origin can send a key there', async () => {
    const response = await preflight('/api/v1/admin/credits', 'Access-Control-Request-Headers: authorization');
    expect([response.status, cors(response)]).toEqual([405, {}]);
    expect(response.json()).toMatchObject({ error: 'method_not_allowed' });
  });

  it('is not an OPTIONS request that names no method, or that has a body', async () => {
    const responses = [
      await send(`OPTIONS ${path}`, [], { key: buyer }),
      await send(`OPTIONS ${path}`, [ASKS], { key: buyer, body: 'x' }),
    ];
    for (const response of responses) {
      expect([response.status, response.get('access-control-allow-methods')]).toEqual([405, null]);
    }
  });
});

describe('a call of a page', () => {
  it('has the CORS headers of the gateway, once each, instead of those of its service', async () => {
    seen = [];
    const response = await send(`POST ${path}`, ['Access-Control-Request-Method: GET'], { key: buyer, body: '{}' });
    expect([response.status, response.body.toString()]).toEqual([200, 'streamed in chunks']);
    expect(cors(response)).toEqual({ 'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': '*' });
    expect(response.get('cross-origin-resource-policy')).toBe('same-origin');
    expect(seen).toHaveLength(1);
    expect(seen[0]?.headers).toContain('origin');
    expect(seen[0]?.headers.filter((name) => name.startsWith('access-control-'))).toEqual([]);
  });
});
