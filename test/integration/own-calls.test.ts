import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { authorization, echo, type Key, Marketplace, startService, type TestService } from './marketplace.ts';
import { type McpService, server2025 } from './mcp-servers.ts';

let market: Marketplace;
let service: TestService;
let tools: McpService;
let owner: Key;
let buyerKeyOfOwner: Key;

beforeAll(async () => {
  market = await Marketplace.start();
  [service, tools] = await Promise.all([startService(echo), server2025()]);
  owner = market.provider;
  buyerKeyOfOwner = await market.anotherKey(owner);
});
afterAll(async () => {
  await market.stop();
  await Promise.all([service.close(), tools.close()]);
});

const call = (path: string, key: Key, headers = {}): Promise<Response> =>
  fetch(market.baseUrl + path, { headers: { Authorization: authorization(key), ...headers } });

function billOf(response: Response) {
  const get = (name: string): string | null => response.headers.get(name);
  return {
    status: response.status,
    amount: get('x-acf-amount'),
    free: get('x-acf-free-tier'),
    left: Number(get('x-ratelimit-remaining')),
    limit: Number(get('x-ratelimit-limit')),
  };
}

describe("a provider's call of its own listing", () => {
  it('costs nothing with any key of the account, takes a token but no free call, has a record, and is in no sum', async () => {
    const path = await market.service({ endpoint: service.url, price: 5, free_calls: 1 });
    const buyer = await market.buyer(10);
    for (const key of [owner, buyerKeyOfOwner]) {
      const before = await market.settled().then(() => call(path, key));
      const [first, second] = [billOf(before), billOf(await call(path, key, { 'X-ACF-Max-Amount': '0' }))];
      expect([first, second]).toMatchObject(Array(2).fill({ status: 200, amount: '0', free: 'false' }));
      // Not compared with each other: a token comes back every fifth of a second.
      for (const { left, limit } of [first, second]) expect(left).toBeLessThan(limit);
      const records = await market.records(key);
      expect(records).toMatchObject(Array(2).fill({ amount: 0, free_tier: false, outcome: 'completed' }));
    }
    // The buyer still has the free call, and is charged after it.
    expect(billOf(await call(path, buyer))).toMatchObject({ amount: '0', free: 'true' });
    expect(billOf(await call(path, buyer))).toMatchObject({ amount: '5', free: 'false' });
    await market.settled();
    const { sql } = market.stores;
    expect(await sql`SELECT account_id, used FROM free_usage`).toEqual([{ account_id: buyer.account_id, used: 1 }]);
    expect(await market.json('/api/v1/earnings/me', { key: owner })).toMatchObject({ by_service: [{ calls: 2 }] });
    expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
  });

  it('says why its service failed; buyers only see that it failed, but the owner sees the reasons of their calls', async () => {
    const away = await startService(() => {});
    await away.close();
    const path = await market.service({ endpoint: away.url });
    const buyer = await market.buyer(0);
    const errorOf = async (key: Key) => (await call(path, key)).json();
    const cause = 'connect_failed';
    const message = 'Nothing accepts connections at the address.';
    expect(await errorOf(owner)).toMatchObject({ error: 'upstream_error', message, cause });
    const told = await errorOf(buyer);
    expect(told).toMatchObject({ error: 'upstream_error' });
    expect(JSON.stringify(told)).not.toMatch(/cause|connect/);
    const [record] = await market.records(buyer);
    expect(record).not.toHaveProperty('cause');
    const sold = await market.json<{ records: object[] }>(`/api/v1/services/${path.split('/').at(-1)}/calls`, {
      key: owner,
    });
    expect(sold.records).toMatchObject([{ usage_id: record?.usage_id, cause }]);
    expect(await market.json(`/api/v1/usage/${record?.usage_id}`, { key: market.admin })).toMatchObject({ cause });
  });

  it('reaches a paused listing, which buyers cannot call', async () => {
    const path = await market.service({ endpoint: service.url, price: 1 });
    await market.json(path.replace('proxy', 'services'), { key: owner, method: 'PATCH', body: { status: 'paused' } });
    expect((await call(path, owner)).status).toBe(200);
    expect((await call(path, await market.buyer(1))).status).toBe(404);
    expect((await call(path, market.admin)).status).toBe(404);
  });

  it('costs nothing for tools of an MCP server, and is refused like any other call if the listing refuses it', async () => {
    const path = await market.service({
      endpoint: `${tools.url}/mcp`,
      protocol: 'mcp',
      price: 1,
      only_operations: true,
      operations: [{ tool: 'echo', price: 2 }],
    });
    const send = (tool: string, key: Key) =>
      market.request(path, {
        key,
        method: 'POST',
        headers: { Accept: 'application/json, text/event-stream' },
        body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: tool, arguments: { text: 'x' } } },
      });
    const answer = await send('echo', owner);
    expect(answer.headers.get('x-acf-amount')).toBe('0');
    expect((await send('other', owner)).status).toBe(404);
  });

  it('cannot be made with a provider key of another account, which is told why', async () => {
    const path = await market.service({ endpoint: service.url });
    const response = await call(path, await market.anotherProvider());
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({
      error: 'forbidden',
      message: expect.stringContaining('its own account'),
    });
  });
});
