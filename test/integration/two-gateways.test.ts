import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/wait.ts';
import { authorization, echo, type Key, Marketplace, startService, type TestService } from './marketplace.ts';

let market: Marketplace;
let other: { readonly baseUrl: string; stop(): Promise<unknown> };
let service: TestService;

beforeAll(async () => {
  market = await Marketplace.start();
  other = await market.anotherGateway();
  service = await startService(echo);
});
afterAll(async () => {
  await other.stop();
  await market.stop();
  await service.close();
});

const callThere = (path: string, key: Key): Promise<Response> =>
  fetch(other.baseUrl + path, { headers: { Authorization: authorization(key) } });

/** Until this gateway has it: the other one made it. */
async function listed(options: Parameters<Marketplace['service']>[0]): Promise<string> {
  const path = await market.service(options);
  await until(async () => (await fetch(`${other.baseUrl}${path.replace('proxy', 'services')}`)).ok, 1_000);
  return path;
}

describe('what one gateway is told, another acts upon', () => {
  it('a revoked key gets 401 on the very next call', async () => {
    const path = await listed({ endpoint: service.url });
    const key = await market.buyer(1);
    expect((await callThere(path, key)).status).toBe(200);
    await market.request(`/api/v1/keys/${key.key_id}`, { key: market.admin, method: 'DELETE' });
    expect((await callThere(path, key)).status).toBe(401);
  });

  it('a changed limit counts from the very next call, and one bucket serves both', async () => {
    const path = await listed({ endpoint: service.url });
    const key = await market.buyer(1);
    expect((await callThere(path, key)).headers.get('x-ratelimit-limit')).toBe('300');
    await market.json(`/api/v1/keys/${key.key_id}`, { key: market.admin, method: 'PATCH', body: { rate_limit: 3 } });
    const remaining: (string | null)[] = [];
    const statuses: number[] = [];
    for (let i = 0; i < 4; i++) {
      const response = i % 2 === 0 ? await callThere(path, key) : await market.request(path, { key });
      remaining.push(response.headers.get('x-ratelimit-remaining'));
      statuses.push(response.status);
    }
    expect(remaining).toEqual(['2', '1', '0', '0']);
    expect(statuses).toEqual([200, 200, 200, 429]);
  });

  it('a rotated secret is good within a second, and the old one is not any more', async () => {
    const path = await listed({ endpoint: service.url });
    const key = await market.buyer(1);
    expect((await callThere(path, key)).status).toBe(200);
    const rotate = { key: market.admin, method: 'POST', body: { overlap_seconds: 0 } };
    const { secret } = await market.json<Key>(`/api/v1/keys/${key.key_id}/rotate`, rotate);
    await until(async () => (await callThere(path, { ...key, secret })).status === 200, 1_000);
    expect((await callThere(path, key)).status).toBe(401);
  });

  it('a paused service is 404 within a second, and a new price is charged within a second', async () => {
    const path = await listed({ endpoint: service.url, price: 0.01 });
    const key = await market.buyer(10);
    const patch = (body: object): Promise<unknown> =>
      market.json(path.replace('proxy', 'services'), { key: market.provider, method: 'PATCH', body });
    expect((await callThere(path, key)).headers.get('x-acf-amount')).toBe('0.01');
    await patch({ price: 0.02 });
    await until(async () => (await callThere(path, key)).headers.get('x-acf-amount') === '0.02', 1_000);
    await patch({ status: 'paused' });
    await until(async () => (await callThere(path, key)).status === 404, 1_000);
    await patch({ status: 'active' });
    await until(async () => (await callThere(path, key)).status === 200, 1_000);
  });

  it('the last cent is spent once', async () => {
    const path = await listed({ endpoint: service.url, price: 0.01 });
    for (let round = 0; round < 5; round++) {
      const key = await market.buyer(0.01);
      const both = await Promise.all([callThere(path, key), market.request(path, { key })]);
      expect(both.map(({ status }) => status).sort()).toEqual([200, 402]);
    }
    expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
  });
});
