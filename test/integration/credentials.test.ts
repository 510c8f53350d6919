import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newKeyId, newSecret } from '../../src/keys/credentials.ts';
import { echo, type Key, Marketplace, startService, type TestService } from './marketplace.ts';
import { RawCaller } from './raw-caller.ts';

let market: Marketplace;
let service: TestService;
let buyer: Key;
let path: string;

beforeAll(async () => {
  market = await Marketplace.start();
  service = await startService(echo);
  buyer = await market.buyer(1);
  path = await market.service({ endpoint: service.url, price: 0.01 });
});
afterAll(async () => {
  await market.stop();
  await service.close();
});

const textOf = (key: Key): string => `${key.key_id}:${key.secret}`;
const balanceAfter = (response: Response): string | null => response.headers.get('x-acf-balance');

/** A key in Tollgate's format, with a valid checksum, that was never issued. */
const unknown = (): string => `${newKeyId()}:${newSecret()}`;

describe('a key in X-Api-Key', () => {
  it('pays for a call and opens a page, whatever Authorization contains', async () => {
    let balance = 1;
    for (const other of [{}, { Authorization: 'Bearer sk-ant-oat01-x' }, { Authorization: 'Basic YTpi' }]) {
      const headers = { 'X-Api-Key': textOf(buyer), ...other };
      const call = await market.request(path, { headers });
      balance = (balance * 1e6 - 1e4) / 1e6;
      expect([call.status, balanceAfter(call)]).toEqual([200, String(balance)]);
      const page = await market.request('/api/v1/balance/me', { headers });
      expect([page.status, ((await page.json()) as { balance: number }).balance]).toEqual([200, balance]);
    }
  });

  it('is accepted where a key is optional', async () => {
    const create = (headers: Record<string, string>): Promise<Response> =>
      market.request('/api/v1/keys', { method: 'POST', body: { role: 'buyer' }, headers });
    const added = (await (await create({ 'X-Api-Key': textOf(buyer) })).json()) as Key;
    expect(added.account_id).toBe(buyer.account_id);
    expect((await create({ 'X-Api-Key': unknown() })).status).toBe(401);
    expect((await create({ 'X-Api-Key': 'sk-ant-api03-x' })).status).toBe(401);
    expect((await create({ Authorization: 'Bearer sk-ant-oat01-x' })).status).toBe(401);
  });

  it("does not help if Authorization has a wrong key in Tollgate's format", async () => {
    const headers = { 'X-Api-Key': textOf(buyer), Authorization: `Bearer ${unknown()}` };
    for (const asked of [path, '/api/v1/usage/me']) {
      expect((await market.request(asked, { headers })).status).toBe(401);
    }
  });

  it("that is wrong, or not Tollgate's, counts as missing, and does not affect a key in Authorization", async () => {
    for (const given of [unknown(), 'sk-ant-api03-x', '']) {
      const headers = { 'X-Api-Key': given };
      const refused = await market.request(path, { headers });
      expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
      expect((await market.request(path, { key: buyer, headers })).status).toBe(200);
    }
  });

  it('is refused if it is sent twice, as in Authorization', async () => {
    for (const line of [`X-Api-Key: ${textOf(buyer)}`, `Authorization: Bearer ${textOf(buyer)}`]) {
      const caller = await RawCaller.connect(market.baseUrl);
      const response = await caller.exchange(`GET ${path}`, { headers: [line, line] });
      expect([response.status, response.json<{ error: string }>().error]).toEqual([400, 'invalid_request']);
      caller.destroy();
    }
  });
});

describe('a header that usually carries credentials', () => {
  it('does not reach the service, and no header takes a Tollgate key there', async () => {
    const foreign = 'sk-ant-api03-a-key-that-is-not-ours';
    const names = ['Cookie', 'Proxy-Authorization', 'X-Api-Key', 'Api-Key', 'X-Goog-Api-Key', 'X-Auth-Token'];
    const headers: Record<string, string> = Object.fromEntries(names.map((name) => [name, foreign]));
    Object.assign(headers, { 'X-Custom': `key=${textOf(buyer)}`, 'X-Other': 'stays' });
    const response = await market.request(path, { key: buyer, headers });
    const seen = await response.text();
    expect(response.status).toBe(200);
    expect(seen).toContain('x-other');
    expect(seen).not.toContain(foreign);
    expect(seen).not.toContain(buyer.secret);
    for (const name of names) expect(seen.toLowerCase()).not.toContain(`"${name.toLowerCase()}"`);
  });
});
