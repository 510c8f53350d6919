import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { oneRedis } from '../support/redis-kind.ts';
import { until } from '../support/wait.ts';
import { bodyOf, type Key, Marketplace, startService, type TestService } from './marketplace.ts';

// A listing with operations: a free status page, items at a low price, a report that costs more than the listing.
const OPERATIONS = [
  { method: 'GET', path: '/status', summary: 'Whether the service works', price: 0 },
  { method: 'GET', path: '/items/{id}', summary: 'One item', price: 0.001, output: { type: 'object' } },
  {
    method: 'POST',
    path: '/items/report',
    summary: 'A report of all items',
    price: 0.5,
    input: { type: 'object', required: ['year'] },
    example: { body: { year: 2026 }, response: { pages: 3 } },
  },
  { method: 'POST', path: '/items/{id}', summary: 'Changes an item' },
];
const PRICE = 0.01;

let market: Marketplace;
let service: TestService;
let id: string;
/** Calls to `/items/slow`, which the service answers when the test tells it to. */
const waiting: ServerResponse[] = [];
const served: string[] = [];

beforeAll(async () => {
  market = await Marketplace.start({}, { durableRedis: true });
  service = await startService(async (request, response) => {
    await bodyOf(request);
    served.push(`${request.method} ${request.url}`);
    if (request.url === '/items/slow') waiting.push(response);
    else response.end('done');
  });
  const listing = { price: PRICE, free_calls: 2, only_operations: true, operations: OPERATIONS };
  id = (await market.service({ endpoint: service.url, ...listing })).split('/').at(-1) as string;
});
afterAll(async () => {
  await market.stop();
  await service.close();
});

type Answer = { status: number; amount: string | null; free: string | null; body: Record<string, unknown> | null };

async function call(key: Key, line: string, headers: Record<string, string> = {}): Promise<Answer> {
  const [method, path] = line.split(' ') as [string, string];
  const response = await market.request(`/api/v1/proxy/${id}${path}`, { key, method, headers });
  const text = await response.text();
  return {
    status: response.status,
    amount: response.headers.get('x-acf-amount'),
    free: response.headers.get('x-acf-free-tier'),
    body: text.startsWith('{') ? JSON.parse(text) : null,
  };
}

const patch = (body: object): Promise<Response> =>
  market.request(`/api/v1/services/${id}`, { key: market.provider, method: 'PATCH', body });

describe('a listing with operations', () => {
  it('tells an agent how to call it, with the price of each operation', async () => {
    const listing = await market.json<{ operations: object[] }>(`/api/v1/discover/${id}`);
    expect(listing).toMatchObject({ id, price: PRICE, protocol: 'http', only_operations: true });
    expect(listing.operations[2]).toEqual({ ...OPERATIONS[2], price: 0.5, price_label: '$0.50 per call' });
    expect(listing.operations[3]).toMatchObject({ price: PRICE });
    expect(JSON.stringify(listing)).not.toContain(service.url);
  });

  it('charges each call the price of its operation, once', async () => {
    const buyer = await market.buyer(1);
    expect(await call(buyer, 'GET /status')).toMatchObject({ status: 200, amount: '0', free: 'false' });
    expect(await call(buyer, 'POST /items/report')).toMatchObject({ status: 200, amount: '0.5', free: 'false' });
    // Free calls serve what costs at most the price of the listing: two of these three.
    expect(await call(buyer, 'GET /items/5')).toMatchObject({ amount: '0', free: 'true' });
    expect(await call(buyer, 'POST /items/5')).toMatchObject({ amount: '0', free: 'true' });
    expect(await call(buyer, 'HEAD /items/5')).toMatchObject({ amount: '0.001', free: 'false' });
    const records = await market.records(buyer);
    expect(records.map(({ amount }) => amount)).toEqual([0.001, 0, 0, 0.5, 0]);
    expect(await market.balance(buyer)).toMatchObject({ balance: 0.499, held: 0 });
  });

  it('compares the price of the operation with what the caller will pay, and with what it has', async () => {
    const buyer = await market.buyer(0.4);
    const refused = await call(buyer, 'POST /items/report', { 'X-ACF-Max-Amount': '0.1' });
    expect(refused).toMatchObject({ status: 412, body: { error: 'price_exceeds_maximum', price: 0.5 } });
    const poor = await call(buyer, 'POST /items/report');
    expect(poor).toMatchObject({ status: 402, body: { error: 'insufficient_balance', required: 0.5, balance: 0.4 } });
    const cheap = await call(buyer, 'GET /items/1', { 'X-ACF-Max-Amount': '0.001' });
    expect(cheap.status).toBe(200);
    expect(await market.records(buyer)).toHaveLength(1);
  });

  it('refuses other calls for free: no operation, another spelling of an expensive one, a method changed by a header', async () => {
    const buyer = await market.buyer(1);
    served.length = 0;
    const notFound = { status: 404, amount: null, body: { error: 'operation_not_found' } };
    for (const line of ['GET /', 'DELETE /items/5', 'GET /items/5/x', 'POST /items/REPORT', 'POST /items/%72eport']) {
      expect(await call(buyer, line), line).toMatchObject(notFound);
    }
    const override = await call(buyer, 'GET /items/5', { 'X-HTTP-Method-Override': 'POST' });
    expect(override).toMatchObject({ status: 400, body: { error: 'invalid_request' } });
    expect((await call(buyer, 'GET /items/5?_method=POST')).status).toBe(400);
    expect(served).toEqual([]);
    expect(await market.records(buyer)).toEqual([]);
    expect(await market.balance(buyer)).toMatchObject({ balance: 1, held: 0 });
  });

  it.skipIf(oneRedis('kills it'))(
    'holds, charges and refunds the price of the operation when Redis is killed in the middle of the call',
    async () => {
      const buyer = await market.buyer(1);
      for (const [line, status] of [
        ['GET /items/1', 200],
        ['GET /items/2', 200],
      ] as const) {
        expect((await call(buyer, line)).status).toBe(status);
      }
      const calls = [call(buyer, 'GET /items/slow'), call(buyer, 'GET /items/slow')];
      await until(() => waiting.length === 2);
      expect(await market.balance(buyer)).toMatchObject({ balance: 0.998, held: 0.002 });
      await market.redis.kill();
      const [first, second] = waiting.splice(0) as [ServerResponse, ServerResponse];
      first.end('done');
      second.statusCode = 500;
      second.end('failed');
      const answers = await Promise.all(calls);
      await market.redis.restart();
      await until(async () => (await market.request('/readyz')).status === 200);
      expect(answers.map(({ amount }) => amount).sort()).toEqual(['0', '0.001']);
      const records = await market.records(buyer);
      expect(records.map(({ amount }) => amount).sort()).toEqual([0, 0, 0, 0.001]);
      expect(await market.balance(buyer)).toMatchObject({ balance: 0.999, held: 0 });
      expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
    },
  );

  it('keeps its rules whichever fields a change contains', async () => {
    const before = await market.json<{ operations: object[] }>(`/api/v1/services/${id}`, { key: market.provider });
    expect(before.operations).toEqual(OPERATIONS);
    for (const [body, message] of [
      [{ only_operations: false }, 'operations: an operation may cost more than'],
      [{ operations: null }, 'only_operations: needs operations'],
      [{ operations: [{ tool: 'x' }] }, 'operations.0.method: is required'],
      [
        { operations: [{ ...OPERATIONS[0], tool: 'x' }] },
        'operations.0.tool: is not supported for a listing with protocol http',
      ],
      [{ protocol: 'mcp' }, 'protocol: is not known'],
      [{ idle_seconds: 3601 }, 'idle_seconds: must be <= 3600'],
    ] as const) {
      const response = await patch(body);
      expect(response.status, message).toBe(400);
      expect(((await response.json()) as { message: string }).message).toContain(message);
    }
    expect((await patch({ only_operations: false, price: 0.5 })).status).toBe(200);
    expect((await patch({ price: 0.4 })).status).toBe(400);
    const changed = await (await patch({ operations: null, idle_seconds: 600 })).json();
    expect(changed).toMatchObject({ operations: [], idle_seconds: 600, price: 0.5 });
    const buyer = await market.buyer(2);
    await until(async () => (await call(buyer, 'GET /anything')).status === 200);
    const back = await patch({ operations: OPERATIONS, only_operations: true, price: PRICE, idle_seconds: null });
    expect(back.status).toBe(200);
  });
});
