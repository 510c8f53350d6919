import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { echo, type Key, Marketplace, startService, type TestService } from './marketplace.ts';

let market: Marketplace;
let service: TestService;

beforeAll(async () => {
  market = await Marketplace.start();
  service = await startService(echo);
});
afterAll(async () => {
  await market.stop();
  await service.close();
});

type Echoed = { readonly method: string; readonly url: string; readonly headers: string[]; readonly body: string };

describe('a call', () => {
  let buyer: Key;
  beforeAll(async () => {
    buyer = await market.buyer(1);
  });

  it('is charged the listed price, reports it, and appears in usage, balance and earnings', async () => {
    const path = await market.service({ endpoint: `${service.url}/base`, price: 0.002 });
    const response = await market.request(`${path}/hello?x=1&y=%20`, { key: buyer });
    expect(response.status).toBe(200);
    const received = (await response.json()) as Echoed;
    expect(received).toMatchObject({ method: 'GET', url: '/base/hello?x=1&y=%20' });
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'x-acf-amount': '0.002',
      'x-acf-free-tier': 'false',
      'x-acf-balance': '0.998',
      'x-ratelimit-limit': '300',
    });
    const usage = await market.usage(buyer, 1);
    expect(usage.records[0]).toMatchObject({
      usage_id: response.headers.get('x-acf-usage-id'),
      amount: 0.002,
      outcome: 'completed',
      status: 200,
    });
    expect(await market.balance(buyer)).toMatchObject({ balance: 0.998, held: 0 });
    const earnings = await market.json<{ gross: number; fees: number; payable: number }>('/api/v1/earnings/me', {
      key: market.provider,
    });
    expect(earnings).toMatchObject({ gross: 0.002, fees: 0.0002, earned: 0.0018, payable: 0.0018 });
  });

  it.each(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])('passes %s', async (method) => {
    const path = await market.service({ endpoint: service.url });
    const body = method === 'GET' || method === 'HEAD' ? {} : { body: { a: 1 } };
    const response = await market.request(`${path}/x`, { key: buyer, method, ...body });
    expect(response.status).toBe(200);
    if (method === 'HEAD') return;
    const received = (await response.json()) as Echoed;
    expect(received.method).toBe(method);
    expect(received.body).toBe('body' in body ? '{"a":1}' : '');
  });
});
