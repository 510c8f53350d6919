// The limits of child keys on real calls: of the proxy, and of the tool that makes calls.

import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/wait.ts';
import { type Key, Marketplace, startService, type TestService } from './marketplace.ts';
import { agent, REVISIONS } from './mcp-agent.ts';

type Refusal = { readonly error: string; readonly status?: number; readonly [field: string]: unknown };

const PRICE = 0.01;
const MAX = 0.5;
const UNAUTHORIZED = { status: 401, error: 'unauthorized' };

let market: Marketplace;
let service: TestService;
let root: Key;
/** Proxy paths of a service at a fixed price, and of one that is priced by use. */
let fixed: string;
let byUse: string;
/** Calls to `/wait`, which are answered when the test says so. */
const waiting: ServerResponse[] = [];

beforeAll(async () => {
  market = await Marketplace.start();
  service = await startService((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://service');
    const charge = searchParams.get('charge');
    if (charge !== null) response.setHeader('X-ACF-Charge', charge);
    if (pathname === '/wait') waiting.push(response);
    else response.end(JSON.stringify({ authorized: request.headers['x-acf-authorized'] ?? null }));
  });
  root = await market.buyer(10);
  fixed = await market.service({ endpoint: service.url, price: PRICE });
  byUse = await market.service({ endpoint: service.url, price: PRICE, max_price: MAX });
});
afterAll(async () => {
  for (const response of waiting) response.end();
  await market?.stop();
  await service?.close();
});

async function child(by: Key, limits: object = {}): Promise<Key> {
  const key = await market.json<Key>('/api/v1/keys', { key: by, method: 'POST', body: limits });
  return { ...key, account_id: by.account_id };
}
const change = (by: Key, key: Key, body: object): Promise<object> =>
  market.json(`/api/v1/keys/${key.key_id}`, { key: by, method: 'PATCH', body });
const idOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

async function refused(path: string, key: Key): Promise<Refusal> {
  const response = await market.request(path, { key });
  expect(response.headers.get('x-acf-amount')).toBeNull();
  return (await response.json()) as Refusal;
}

async function refusedTool(path: string, key: Key): Promise<Refusal> {
  const tools = await agent(REVISIONS[0], market.baseUrl, key);
  const answer = await tools.call('call_service', { service_id: idOf(path), method: 'GET', path: '/' });
  await tools.close();
  expect(answer.isError).toBe(true);
  return answer.text as Refusal;
}

/** What the service of a call that is priced by use was told it may charge. */
async function authorized(key: Key, charge: number, headers: Record<string, string> = {}): Promise<string | null> {
  const response = await market.request(`${byUse}/?charge=${charge}`, { key, headers });
  expect([response.status, response.headers.get('x-acf-amount')]).toEqual([200, String(charge)]);
  return ((await response.json()) as { authorized: string | null }).authorized;
}

describe.each([
  ['the proxy', refused],
  ['call_service', refusedTool],
] as const)('a call by %s', (_by, refuse) => {
  it('to a service that the key, or a key above it, may not call is 403', async () => {
    const parent = await child(root, { services: [idOf(fixed)] });
    const key = await child(parent);
    expect(await refuse(byUse, key)).toMatchObject({ error: 'forbidden' });
    expect((await market.request(fixed, { key })).status).toBe(200);
    await change(root, parent, { services: null });
    await until(async () => (await market.request(byUse, { key })).status === 200);
    expect(await market.records(key)).toHaveLength(2);
  });

  it('whose price is above the maximum of the key, or of a key above it, is 412', async () => {
    const parent = await child(root, { max_price: 0.009999 });
    const key = await child(parent);
    expect(await refuse(fixed, key)).toMatchObject({ error: 'price_exceeds_maximum', price: PRICE });
    expect(await refuse(byUse, key)).toMatchObject({ error: 'price_exceeds_maximum', price: PRICE });
    expect(await market.records(key)).toEqual([]);
  });

  it('that a budget does not cover is told whose budget it is, how much is left, and when it starts again', async () => {
    const parent = await child(root, { budget: { amount: 0.025, period: 'total' } });
    const key = await child(parent, { budget: { amount: 0.015, period: 'day' } });
    expect((await market.request(fixed, { key })).status).toBe(200);
    const own = await refuse(fixed, key);
    expect(own).toMatchObject({ error: 'budget_exceeded', limit_key: key.key_id, remaining: 0.005 });
    expect(own.resets_at).toMatch(/T00:00:00.000Z$/);
    await change(parent, key, { budget: null });
    expect((await market.request(fixed, { key })).status).toBe(200);
    const above = { limit_key: parent.key_id, remaining: 0.005, resets_at: null };
    expect(await refuse(fixed, key)).toMatchObject({ error: 'budget_exceeded', ...above });
    expect(await market.records(key)).toHaveLength(2);
  });

  it('is 401 once the key, or a key above it, is revoked', async () => {
    const parent = await child(root);
    const key = await child(await child(parent));
    expect((await market.request(fixed, { key })).status).toBe(200);
    await market.json(`/api/v1/keys/${parent.key_id}`, { key: root, method: 'DELETE' });
    expect(await refuse(fixed, key)).toMatchObject(UNAUTHORIZED);
    expect((await market.request('/api/v1/balance/me', { key })).status).toBe(401);
  });
});

describe('a call that is priced by use', () => {
  it('is authorised at most the lowest maximum of the key, of the keys above it and of the caller', async () => {
    const parent = await child(root, { max_price: 0.3 });
    const key = await child(parent, { max_price: 0.2 });
    expect(await authorized(key, 0.001)).toBe('0.2');
    expect(await authorized(key, 0.001, { 'X-ACF-Max-Amount': '0.25' })).toBe('0.2');
    expect(await authorized(key, 0.001, { 'X-ACF-Max-Amount': '0.1' })).toBe('0.1');
    expect(await authorized(parent, 0.001)).toBe('0.3');
    expect(await authorized(root, 0.001)).toBe(String(MAX));
  });

  it('is authorised what the budgets leave, provided that this covers the price', async () => {
    const parent = await child(root, { budget: { amount: 0.05, period: 'month' } });
    const key = await child(parent, { budget: { amount: 0.04, period: 'total' } });
    expect(await authorized(parent, 0.02)).toBe('0.05');
    expect(await authorized(key, 0.015)).toBe('0.03');
    expect(await authorized(key, 0.006)).toBe('0.015');
    // 0.009 is left of the parent's, and the price is 0.01.
    expect(await refused(byUse, key)).toMatchObject({ error: 'budget_exceeded', limit_key: parent.key_id });
    const [record] = await market.records(key);
    expect(record).toMatchObject({ authorized: 0.015, amount: 0.006 });
  });
});

it('a key that has expired is 401, and so are the keys below it', async () => {
  const parent = await child(root, { expires_at: '2099-01-01T00:00:00Z' });
  const key = await child(parent);
  expect((await market.request(fixed, { key })).status).toBe(200);
  // Its time has come, as if the test had waited for it. Any change publishes what Postgres has.
  await market.stores.sql`UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE key_id = ${parent.key_id}`;
  await change(root, parent, { label: 'expired' });
  for (const path of [fixed, '/api/v1/balance/me', '/api/v1/keys/me']) {
    expect([path, await refused(path, key)]).toEqual([path, expect.objectContaining(UNAUTHORIZED)]);
  }
  expect((await market.request(fixed, { key: parent })).status).toBe(401);
});

it('revoking a key takes effect at once on every gateway, for keys below it too', async () => {
  const other = await market.anotherGateway();
  const parent = await child(root);
  const key = await child(await child(parent));
  const call = async (): Promise<number> => {
    const headers = { Authorization: `Bearer ${key.key_id}:${key.secret}` };
    return (await fetch(other.baseUrl + fixed, { headers })).status;
  };
  expect(await call()).toBe(200);
  await market.json(`/api/v1/keys/${parent.key_id}`, { key: root, method: 'DELETE' });
  expect(await call()).toBe(401);
  await other.stop();
});

describe('the balance of a child key', () => {
  it('is what the wallet and the budgets of all levels leave it; held is what its own tree holds', async () => {
    const parent = await child(root, { budget: { amount: 0.1, period: 'week' } });
    const [key, sibling] = [await child(parent, { budget: { amount: 0.08, period: 'day' } }), await child(parent)];
    const below = await child(key);
    const resets_at = expect.stringMatching(/T00:00:00.000Z$/);
    expect(await market.balance(key)).toMatchObject({ balance: 0.08, held: 0, limit_key: key.key_id, resets_at });
    expect(await market.balance(sibling)).toMatchObject({ balance: 0.1, limit_key: parent.key_id, resets_at });
    expect(await market.balance(root)).not.toHaveProperty('limit_key');
    const open: Promise<Response>[] = [];
    for (const by of [below, sibling]) {
      open.push(market.request(`${fixed}/wait`, { key: by }));
      await until(() => waiting.length === open.length);
    }
    expect(await market.balance(below)).toMatchObject({ balance: 0.07, held: 0.01 });
    expect(await market.balance(key)).toMatchObject({ balance: 0.07, held: 0.01 });
    expect(await market.balance(sibling)).toMatchObject({ balance: 0.08, held: 0.01 });
    expect(await market.balance(parent)).toMatchObject({ balance: 0.08, held: 0.02 });
    for (const response of waiting.splice(0)) response.end();
    const headers = await Promise.all(open.map(async (call) => (await call).headers.get('x-acf-balance')));
    expect(headers).toEqual(['0.07', '0.08']);
    await market.settled(root.account_id);
    const spend = await market.request(fixed, { key: sibling });
    expect([spend.headers.get('x-acf-balance'), await market.balance(key)]).toEqual([
      '0.07',
      expect.objectContaining({ balance: 0.07 }),
    ]);
    await change(root, parent, { budget: { amount: 0.02 } });
    expect(await market.balance(key)).toMatchObject({ balance: 0, held: 0 });
    expect(await refused(fixed, key)).toMatchObject({ error: 'budget_exceeded', remaining: 0 });
  });
});
