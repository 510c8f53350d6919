import { afterAll, beforeAll, expect, it } from 'vitest';
import { MAX_BLOCKED_BUYERS } from '../../src/catalog/blocked-buyers.ts';
import { until } from '../support/wait.ts';
import { echo, type Key, Marketplace, startService, type TestService } from './marketplace.ts';
import { agent, REVISIONS } from './mcp-agent.ts';

type Listing = { readonly id: string; readonly blocked_buyers?: string[]; readonly updated_at: string };

let market: Marketplace;
let service: TestService;
let other: Awaited<ReturnType<Marketplace['anotherGateway']>>;
let buyer: Key;
let bystander: Key;
/** `buyer` as the provider knows it. */
let pseudonym: string;

beforeAll(async () => {
  market = await Marketplace.start();
  service = await startService(echo);
  other = await market.anotherGateway();
  [buyer, bystander] = [await market.buyer(1), await market.buyer(1)];
  const { id } = await list();
  pseudonym = await pseudonymOf(id, buyer);
});
afterAll(async () => {
  await other.stop();
  await market.stop();
  await service.close();
});

const list = (fields: object = {}): Promise<Listing> =>
  market.json('/api/v1/services', {
    key: market.provider,
    method: 'POST',
    body: { name: 'n', description: '', category: 'test', price: 0.01, endpoint: service.url, ...fields },
  });
const look = (id: string, key?: Key): Promise<Listing> => market.json(`/api/v1/services/${id}`, { key });
const put = (id: string, who: string, status: string, key = market.provider): Promise<Response> =>
  market.request(`/api/v1/services/${id}/buyers/${who}`, { key, method: 'PUT', body: { status } });
const statusOf = async (id: string, key: Key): Promise<number> =>
  (await market.request(`/api/v1/proxy/${id}/`, { key })).status;

async function pseudonymOf(id: string, key: Key): Promise<string> {
  const { headers } = await market.json<{ headers: string[] }>(`/api/v1/proxy/${id}/`, { key });
  return headers[headers.indexOf('x-acf-buyer') + 1] as string;
}

it('a blocked buyer gets 403 before anything is charged, on every gateway, until the provider unblocks the account', async () => {
  const { id } = await list();
  const blocked = await put(id, pseudonym, 'blocked');
  expect([blocked.status, await blocked.json()]).toEqual([200, { buyer: pseudonym, status: 'blocked' }]);
  const before = await market.balance(buyer);
  const refused = await market.request(`/api/v1/proxy/${id}/`, { key: buyer });
  expect([refused.status, await refused.json()]).toEqual([403, expect.objectContaining({ error: 'forbidden' })]);
  expect(await market.balance(buyer)).toEqual(before);
  const there = { headers: { authorization: `Bearer ${buyer.key_id}:${buyer.secret}` } };
  const elsewhere = async () => (await fetch(`${other.baseUrl}/api/v1/proxy/${id}/`, there)).status;
  await until(async () => (await elsewhere()) === 403);
  expect([await statusOf(id, bystander), await statusOf(id, market.provider)]).toEqual([200, 200]);
  expect((await put(id, pseudonym, 'active')).status).toBe(200);
  expect(await statusOf(id, buyer)).toBe(200);
  await until(async () => (await elsewhere()) === 200);
});

it('a block is for one service, whose provider and admins see which buyers are blocked', async () => {
  const [{ id }, another] = [await list(), await list()];
  await put(id, pseudonym, 'blocked');
  expect([await statusOf(id, buyer), await statusOf(another.id, buyer)]).toEqual([403, 200]);
  for (const key of [market.provider, market.admin]) expect((await look(id, key)).blocked_buyers).toEqual([pseudonym]);
  for (const key of [undefined, buyer]) expect(await look(id, key)).not.toHaveProperty('blocked_buyers');
  expect((await look(another.id, market.provider)).blocked_buyers).toEqual([]);
});

it('a blocked buyer cannot send a message to an MCP server, even a free one or one through call_service', async () => {
  const { id } = await list({ protocol: 'mcp' });
  await put(id, pseudonym, 'blocked');
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  const free = await market.request(`/api/v1/proxy/${id}`, { key: buyer, method: 'POST', body });
  expect(free.status).toBe(403);
  expect((await market.request(`/api/v1/proxy/${id}`, { key: buyer, method: 'DELETE' })).status).toBe(403);
  const { id: plain } = await list();
  await put(plain, pseudonym, 'blocked');
  const tools = await agent(REVISIONS[0], market.baseUrl, buyer);
  const answer = await tools.call('call_service', { service_id: plain, path: '/', method: 'GET' });
  expect(answer).toMatchObject({ isError: true, structured: { error: 'forbidden' } });
});

it('a block that changes nothing makes no gateway read the listing again', async () => {
  const { id } = await list();
  await put(id, pseudonym, 'active');
  await put(id, pseudonym, 'blocked');
  const { updated_at: at } = await look(id, market.provider);
  expect((await put(id, pseudonym, 'blocked')).status).toBe(200);
  expect((await look(id, market.provider)).updated_at).toBe(at);
});

it('blocks are bounded in number, can be set only by the provider or an admin, and cannot block the provider', async () => {
  const { id } = await list();
  const own = await pseudonymOf(id, market.provider);
  expect((await put(id, own, 'blocked')).status).toBe(400);
  for (const who of ['x', pseudonym.toUpperCase(), `${pseudonym}0`])
    expect((await put(id, who, 'blocked')).status).toBe(400);
  expect((await put(id, pseudonym, 'gone')).status).toBe(400);
  expect((await put(id, pseudonym, 'blocked', buyer)).status).toBe(403);
  expect((await put(id, pseudonym, 'blocked', await market.anotherProvider())).status).toBe(403);
  const many = Array.from({ length: MAX_BLOCKED_BUYERS - 1 }, (_, i) => i.toString(16).padStart(32, '0'));
  await market.stores.sql`UPDATE services SET blocked_buyers = ${many.join()} WHERE id = ${id}`;
  // Two at once: neither undoes the other, and the bound holds.
  const both = await Promise.all([put(id, pseudonym, 'blocked', market.admin), put(id, 'f'.repeat(32), 'blocked')]);
  expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
  expect((await look(id, market.provider)).blocked_buyers).toHaveLength(MAX_BLOCKED_BUYERS);
  expect((await put(id, many[0] as string, 'active')).status).toBe(200);
  expect((await put(id, 'e'.repeat(32), 'blocked')).status).toBe(200);
});
