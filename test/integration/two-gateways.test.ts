import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/wait.ts';
import { authorization, echo, type Key, Marketplace, startService, type TestService } from './marketplace.ts';

/** Bound for changes that are promised within a second of the reply, with a margin for two busy cores. */
const A_SECOND_MS = 3_000;

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

/** Waits until this gateway knows a service that was made on the other gateway. */
async function listed(options: Parameters<Marketplace['service']>[0]): Promise<string> {
  const path = await market.service(options);
  await until(async () => (await fetch(`${other.baseUrl}${path.replace('proxy', 'services')}`)).ok, A_SECOND_MS);
  return path;
}

describe('a change made on one gateway applies on another', () => {
  it('a suspended account is told why, and may read only about its own money, at the cost of its address', async () => {
    const path = await listed({ endpoint: service.url, price: 0.01 });
    const key = await market.buyer(1);
    const seller = await market.anotherProvider();
    const patch = (of: Key, body: object): Promise<unknown> =>
      market.json(`/api/v1/admin/accounts/${of.account_id}`, { key: market.admin, method: 'PATCH', body });
    const says = async (target: string, by: Key): Promise<string> => {
      const response = await callThere(target, by);
      expect(response.status).toBe(403);
      return ((await response.json()) as { message: string }).message;
    };
    await callThere(path, key);
    const below = (by: Key): Promise<Key> =>
      market.json('/api/v1/keys', { key: by, method: 'POST', body: { expires_at: '2099-01-01T00:00:00Z' } });
    const [child, parent] = [await below(key), await below(key)];
    const expired = await below(parent);
    await market.stores
      .sql`UPDATE api_keys SET expires_at = now() - interval '1 minute' WHERE key_id = ${parent.key_id}`;
    await patch(key, { status: 'suspended', reason: 'Your last invoice is unpaid.' });
    await patch(seller, { status: 'suspended' });
    const reason = 'This account is suspended: Your last invoice is unpaid.';
    await until(async () => (await says(path, key)) === reason, A_SECOND_MS);
    expect(await says('/api/v1/keys', key)).toBe(reason);
    expect(await says('/api/v1/services?mine=true', seller)).toBe('This account is suspended.');
    for (const page of ['keys/me', 'balance/me', 'usage/me', 'statement/me']) {
      const response = await callThere(`/api/v1/${page}`, key);
      expect([page, response.status]).toEqual([page, 200]);
      expect(response.headers.get('x-ratelimit-limit')).toBe('100000');
    }
    expect((await callThere('/api/v1/earnings/me', seller)).status).toBe(200);
    expect((await callThere('/api/v1/balance/me', seller)).status).toBe(403);
    // Redis is not asked about these keys, but one that has expired is out.
    expect((await callThere('/api/v1/keys/me', child)).status).toBe(200);
    expect((await callThere('/api/v1/keys/me', expired)).status).toBe(401);
    const me = { account_status: 'suspended', suspension_reason: 'Your last invoice is unpaid.' };
    expect(await (await callThere('/api/v1/keys/me', key)).json()).toMatchObject(me);
    expect(await market.json('/api/v1/balance/me', { key })).toMatchObject({ account_id: key.account_id });
    // The same again without a reason, as after a 503, leaves it.
    await patch(key, { status: 'suspended' });
    expect(await market.json('/api/v1/keys/me', { key })).toMatchObject(me);
    await patch(key, { status: 'active' });
    const active = { account_status: 'active', suspension_reason: null };
    expect(await market.json('/api/v1/keys/me', { key })).toMatchObject(active);
    const acts = await market.json<{ acts: { action: string; after: unknown }[] }>(
      `/api/v1/admin/audit?subject=${key.account_id}`,
      { key: market.admin },
    );
    expect(acts.acts.map(({ action, after }) => [action, after]).slice(0, 2)).toEqual([
      ['account.resume', { status: 'active' }],
      ['account.suspend', { status: 'suspended', reason: 'Your last invoice is unpaid.' }],
    ]);
  });

  it('an account is told which key an operator issued to it, and when, until that key is revoked', async () => {
    const key = await market.buyer(0);
    const own = await market.anotherKey(key);
    type Told = { by_operator: boolean; operator_keys: unknown[] };
    const me = (by: Key): Promise<Told> => market.json('/api/v1/keys/me', { key: by });
    expect(await me(own)).toMatchObject({ by_operator: false, operator_keys: [] });
    const body = { owner_id: 'buyer', role: 'buyer', label: 'support', account_id: key.account_id };
    const issued = await market.json<Key>('/api/v1/keys', { key: market.admin, method: 'POST', body });
    const told = [
      { key_id: issued.key_id, role: 'buyer', label: 'support', created_at: expect.stringMatching(/^20.*Z$/) },
    ];
    expect(await me(key)).toMatchObject({ by_operator: false, operator_keys: told });
    expect(await me(issued)).toMatchObject({ by_operator: true });
    const { keys } = await market.json<{ keys: { key_id: string; by_operator: boolean }[] }>('/api/v1/keys', { key });
    expect(keys.filter(({ by_operator }) => by_operator).map(({ key_id }) => key_id)).toEqual([issued.key_id]);
    await market.json(`/api/v1/keys/${issued.key_id}`, { key, method: 'DELETE' });
    expect(await me(key)).toMatchObject({ operator_keys: [] });
  });

  it('a revoked key gets 401 on the very next call', async () => {
    const path = await listed({ endpoint: service.url });
    const key = await market.buyer(1);
    expect((await callThere(path, key)).status).toBe(200);
    await market.request(`/api/v1/keys/${key.key_id}`, { key: market.admin, method: 'DELETE' });
    expect((await callThere(path, key)).status).toBe(401);
  });

  it('a suspended account is refused with every key from the next request on, and is accepted again as fast', async () => {
    const path = await listed({ endpoint: service.url, price: 0.01 });
    const key = await market.buyer(1);
    const keys = [key, await market.anotherKey(key)];
    const [stranger, revoked] = [await market.buyer(1), await market.anotherKey(key)];
    await market.request(`/api/v1/keys/${revoked.key_id}`, { key, method: 'DELETE' });
    const setStatus = (status: string): Promise<Response> =>
      market.request(`/api/v1/admin/accounts/${key.account_id}`, {
        key: market.admin,
        method: 'PATCH',
        body: { status },
      });
    const ask = async (): Promise<number[]> => {
      const calls = keys.flatMap((its) => [callThere(path, its), market.request(path, { key: its })]);
      const pages = [callThere('/api/v1/keys', key), market.request('/api/v1/keys', { key })];
      return (await Promise.all([...calls, ...pages])).map(({ status }) => status);
    };
    expect(await ask()).toEqual(Array(6).fill(200));
    for (let round = 0; round < 3; round++) {
      const suspended = await setStatus('suspended');
      expect([suspended.status, await suspended.json()]).toEqual([
        200,
        { account_id: key.account_id, owner_id: 'buyer', status: 'suspended', suspension_reason: null },
      ]);
      expect(await ask()).toEqual(Array(6).fill(403));
      expect((await callThere(path, stranger)).status).toBe(200);
      // Changing the limit of a key does not bring back any key. Resuming the account does not bring back a revoked key.
      await market.json(`/api/v1/keys/${key.key_id}`, {
        key: market.admin,
        method: 'PATCH',
        body: { rate_limit: 299 },
      });
      expect(await ask()).toEqual(Array(6).fill(403));
      expect((await setStatus('active')).status).toBe(200);
      await until(async () => (await ask()).every((status) => status === 200), A_SECOND_MS);
      expect((await callThere(path, revoked)).status).toBe(401);
    }
    expect((await market.records(key)).every(({ outcome }) => outcome === 'completed')).toBe(true);
  });

  it('a key made while its account is suspended works only when the account is active again', async () => {
    const path = await listed({ endpoint: service.url });
    const key = await market.buyer(1);
    const patch = { key: market.admin, method: 'PATCH', body: { status: 'suspended' } };
    await market.json(`/api/v1/admin/accounts/${key.account_id}`, patch);
    const body = { owner_id: 'buyer', role: 'buyer', account_id: key.account_id };
    const another = await market.json<Key>('/api/v1/keys', { key: market.admin, method: 'POST', body });
    expect((await callThere(path, another)).status).toBe(403);
    await market.json(`/api/v1/admin/accounts/${key.account_id}`, { ...patch, body: { status: 'active' } });
    await until(async () => (await callThere(path, another)).status === 200, A_SECOND_MS);
  });

  it('a changed limit applies from the very next call, and both gateways share one bucket', async () => {
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

  it('a rotated secret is accepted within a second, and the old secret is then refused', async () => {
    const path = await listed({ endpoint: service.url });
    const key = await market.buyer(1);
    expect((await callThere(path, key)).status).toBe(200);
    const rotate = { key: market.admin, method: 'POST', body: { overlap_seconds: 0 } };
    const { secret } = await market.json<Key>(`/api/v1/keys/${key.key_id}/rotate`, rotate);
    await until(async () => (await callThere(path, { ...key, secret })).status === 200, A_SECOND_MS);
    expect((await callThere(path, key)).status).toBe(401);
  });

  it('both secrets of a rotated key are accepted from the very next call on, until the overlap is cut short', async () => {
    const path = await listed({ endpoint: service.url });
    let key = await market.buyer(1);
    const rotated = async (body: object): Promise<Key> => {
      const rotate = { key: market.admin, method: 'POST', body };
      return { ...key, ...(await market.json<Key>(`/api/v1/keys/${key.key_id}/rotate`, rotate)) };
    };
    for (let round = 0; round < 5; round++) {
      expect((await callThere(path, key)).status).toBe(200);
      const next = await rotated({});
      const calls = [next, key].flatMap((its) => [callThere(path, its), market.request(path, { key: its })]);
      expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      key = next;
    }
    const last = await rotated({ overlap_seconds: 0 });
    expect((await callThere(path, last)).status).toBe(200);
    expect((await market.request(path, { key })).status).toBe(401);
    await until(async () => (await callThere(path, key)).status === 401, A_SECOND_MS);
  });

  it('a paused service gets 404 within a second, and a new price is charged within a second', async () => {
    const path = await listed({ endpoint: service.url, price: 0.01 });
    const key = await market.buyer(10);
    const patch = (body: object): Promise<unknown> =>
      market.json(path.replace('proxy', 'services'), { key: market.provider, method: 'PATCH', body });
    expect((await callThere(path, key)).headers.get('x-acf-amount')).toBe('0.01');
    await patch({ price: 0.02 });
    await until(async () => (await callThere(path, key)).headers.get('x-acf-amount') === '0.02', A_SECOND_MS);
    await patch({ status: 'paused' });
    await until(async () => (await callThere(path, key)).status === 404, A_SECOND_MS);
    await patch({ status: 'active' });
    await until(async () => (await callThere(path, key)).status === 200, A_SECOND_MS);
  });

  it('services of a suspended account get 404 without a charge within a second, until it is resumed; open calls go on', async () => {
    const answers: (() => void)[] = [];
    const slow = await startService((_, response) => answers.push(() => response.end('done')));
    const seller = await market.json<Key>('/api/v1/keys', {
      method: 'POST',
      body: { owner_id: 'seller', role: 'provider' },
    });
    const list = async (endpoint: string): Promise<string> => {
      const body = { name: 'to be suspended', description: '', category: 'test', price: 0.01, endpoint };
      return (await market.json<{ id: string }>('/api/v1/services', { key: seller, method: 'POST', body })).id;
    };
    const [id, slowId] = [await list(service.url), await list(slow.url)];
    const key = await market.buyer(1);
    const gateways = [market.baseUrl, other.baseUrl];
    const headers = { Authorization: authorization(key) };
    /** The statuses of a call and a page, and the discovery, on each gateway. */
    const look = async (): Promise<[number, number, boolean][]> =>
      Promise.all(
        gateways.map(async (url): Promise<[number, number, boolean]> => {
          const call = await fetch(`${url}/api/v1/proxy/${id}/x`, { headers });
          const page = await fetch(`${url}/api/v1/services/${id}`);
          const discovered = await (await fetch(`${url}/api/v1/discover?q=suspended`)).text();
          return [call.status, page.status, discovered.includes(id)];
        }),
      );
    const all = (expected: [number, number, boolean]) => async () =>
      JSON.stringify(await look()) === JSON.stringify([expected, expected]);
    const set = (status: string): Promise<unknown> =>
      market.json(`/api/v1/admin/accounts/${seller.account_id}`, {
        key: market.admin,
        method: 'PATCH',
        body: { status },
      });
    await until(all([200, 200, true]), A_SECOND_MS);
    const underWay = fetch(`${other.baseUrl}/api/v1/proxy/${slowId}/`, { headers });
    await until(() => answers.length === 1);

    await set('suspended');
    await until(all([404, 404, false]), A_SECOND_MS);
    const refused = await fetch(`${other.baseUrl}/api/v1/proxy/${id}/x`, { headers });
    expect(await refused.json()).toMatchObject({ error: 'service_not_found', status: 404 });
    const before = await market.balance(key);
    expect(before.held).toBe(0.01);
    for (let i = 0; i < 10; i++) await look();
    expect(await market.balance(key)).toEqual(before);
    answers[0]?.();
    expect([(await underWay).status, await (await underWay).text()]).toEqual([200, 'done']);
    await market.settled();
    expect(await market.balance(key)).toEqual({ ...before, held: 0 });
    expect((await market.request(`/api/v1/services/${id}`, { key: market.admin })).status).toBe(200);

    await set('active');
    await until(all([200, 200, true]), A_SECOND_MS);
    expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
    await slow.close();
  });

  it('the last cent is spent only once', async () => {
    const path = await listed({ endpoint: service.url, price: 0.01 });
    for (let round = 0; round < 5; round++) {
      const key = await market.buyer(0.01);
      const both = await Promise.all([callThere(path, key), market.request(path, { key })]);
      expect(both.map(({ status }) => status).sort()).toEqual([200, 402]);
    }
    expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
  });
});

it('a gateway with a lower MAX_RATE_LIMIT caps keys with a higher limit, loaded or not, and shows the limit that applies', async () => {
  const { redis, keys } = market.stores;
  const lower = await market.anotherGateway({ maxRateLimit: 100 });
  const ask = (key: Key): Promise<Response> =>
    fetch(`${lower.baseUrl}/api/v1/keys/me`, { headers: { Authorization: authorization(key) } });
  const limitOf = async (key: Key): Promise<string | null> => (await ask(key)).headers.get('x-ratelimit-limit');
  try {
    const [loaded, unloaded] = [await market.buyer(0), await market.buyer(0)];
    const stored = await market.json<{ rate_limit: number }>('/api/v1/keys/me', { key: loaded });
    expect(stored.rate_limit).toBe(300);
    await until(async () => (await limitOf(loaded)) === '100', A_SECOND_MS);
    expect(await (await ask(loaded)).json()).toMatchObject({ rate_limit: 100 });
    await redis.command('del', [keys.key(keys.shardOf(unloaded.account_id), unloaded.key_id)]);
    expect(await limitOf(unloaded)).toBe('100');
    const all = await fetch(`${lower.baseUrl}/api/v1/admin/keys?account_id=${loaded.account_id}`, {
      headers: { Authorization: authorization(market.admin) },
    });
    expect(await all.json()).toMatchObject({ keys: [{ rate_limit: 100 }] });
  } finally {
    await lower.stop();
  }
});
