import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { timed } from '../support/timed.ts';
import { until } from '../support/wait.ts';
import { bodyOf, type Key, Marketplace, startService, type TestService } from './marketplace.ts';

let market: Marketplace;
let service: TestService;
/** Calls to `/wait`, which the service answers when the test tells it to. */
const waiting: ServerResponse[] = [];

beforeAll(async () => {
  market = await Marketplace.start();
  service = await startService(async (request, response) => {
    await bodyOf(request);
    if (request.url === '/wait') {
      waiting.push(response);
      return;
    }
    response.statusCode = Number(/\/status\/(\d+)/.exec(request.url ?? '')?.[1] ?? 200);
    response.end('done');
  });
});
afterAll(async () => {
  await market.stop();
  await service.close();
});

type Bill = { status: number; amount: string | null; free: string | null; balance: string | null; body: unknown };

async function call(path: string, key: Key): Promise<Bill> {
  const response = await market.request(path, { key });
  const text = await response.text();
  const get = (name: string): string | null => response.headers.get(name);
  return {
    status: response.status,
    amount: get('x-acf-amount'),
    free: get('x-acf-free-tier'),
    balance: get('x-acf-balance'),
    body: text.startsWith('{') ? JSON.parse(text) : text,
  };
}

const count = (bills: readonly Bill[], wanted: Partial<Bill>): number =>
  bills.filter((bill) => Object.entries(wanted).every(([name, value]) => bill[name as keyof Bill] === value)).length;

describe('the last cent', () => {
  it('pays for one of two simultaneous calls; the other gets 402 with the missing amount', async () => {
    const path = await market.service({ endpoint: service.url, price: 0.01 });
    for (let round = 0; round < 5; round++) {
      const buyer = await market.buyer(0.01);
      const bills = await Promise.all([call(path, buyer), call(path, buyer)]);
      bills.sort((a, b) => a.status - b.status);
      expect(bills[0]).toMatchObject({ status: 200, amount: '0.01', balance: '0' });
      expect(bills[1]).toMatchObject({ status: 402, amount: null });
      expect(bills[1]?.body).toMatchObject({ error: 'insufficient_balance', status: 402, required: 0.01, balance: 0 });
      // TOP_UP_URL is not set. test/openapi/contract.test.ts has the answer where it is.
      expect(bills[1]?.body).toMatchObject({ message: expect.stringMatching(/operator.*GET \/api\/v1\/balance\/me/) });
      expect(bills[1]?.body).not.toHaveProperty('top_up');
      expect(await market.records(buyer)).toHaveLength(1);
      expect(await market.balance(buyer)).toMatchObject({ balance: 0, held: 0 });
    }
  });

  it('is held while the call is under way, so no other call can spend it', async () => {
    const path = await market.service({ endpoint: service.url, price: 0.01 });
    const buyer = await market.buyer(0.015);
    const first = call(`${path}/wait`, buyer);
    const response = await until(() => waiting.pop());
    expect(await market.balance(buyer)).toMatchObject({ balance: 0.005, held: 0.01 });
    expect(await call(path, buyer)).toMatchObject({ status: 402, body: { required: 0.01, balance: 0.005 } });
    response.end();
    expect(await first).toMatchObject({ status: 200, balance: '0.005' });
  });
});

describe('the free tier', () => {
  it('serves exactly 100 of 200 simultaneous calls, the balance pays for 50, and 50 get 402', async () => {
    const path = await market.service({ endpoint: service.url, price: 0.01, free_calls: 100 });
    const first = await market.buyer(0.5);
    const keys = [
      first,
      await market.anotherKey(first),
      await market.anotherKey(first),
      await market.anotherKey(first),
    ];
    const bills = await Promise.all(Array.from({ length: 200 }, (_, i) => call(path, keys[i % 4] as Key)));
    expect(count(bills, { status: 200, free: 'true', amount: '0' })).toBe(100);
    expect(count(bills, { status: 200, free: 'false', amount: '0.01' })).toBe(50);
    expect(count(bills, { status: 402 })).toBe(50);
    const records = (await Promise.all(keys.map((key) => market.records(key)))).flat();
    expect(records).toHaveLength(150);
    expect(records.filter((record) => record.free_tier)).toHaveLength(100);
    expect(await market.balance(first)).toMatchObject({ balance: 0, held: 0 });
  });

  it('gets its slot back when the call is refunded', async () => {
    const path = await market.service({ endpoint: service.url, price: 0.01, free_calls: 2 });
    const buyer = await market.buyer(0.01);
    expect(await call(path, buyer)).toMatchObject({ status: 200, free: 'true', amount: '0' });
    for (let i = 0; i < 3; i++) {
      expect(await call(`${path}/status/500`, buyer)).toMatchObject({ status: 500, amount: '0', free: 'true' });
      await market.settled();
    }
    expect(await call(path, buyer)).toMatchObject({ status: 200, free: 'true', amount: '0', balance: '0.01' });
    expect(await call(path, buyer)).toMatchObject({ status: 200, free: 'false', amount: '0.01', balance: '0' });
    expect(await call(path, buyer)).toMatchObject({ status: 402 });
    const outcomes = (await market.records(buyer)).map(({ outcome, free_tier, amount }) => [
      outcome,
      free_tier,
      amount,
    ]);
    expect(outcomes.reverse()).toEqual([
      ['completed', true, 0],
      ...Array(3).fill(['refunded:upstream_5xx', true, 0]),
      ['completed', true, 0],
      ['completed', false, 0.01],
    ]);
  });

  it('can be required by a call, which is then 402 if no free call is left; the caller sees how many are left', async () => {
    const path = await market.service({ endpoint: service.url, price: 0.01, free_calls: 2 });
    const without = await market.service({ endpoint: service.url, price: 0.02 });
    const gratis = await market.service({ endpoint: service.url });
    const buyer = await market.buyer(1);
    const child = await market.json<Key>('/api/v1/keys', {
      key: buyer,
      method: 'POST',
      body: { budget: { amount: 1, period: 'total' } },
    });
    const ask = async (to: string, key = buyer, value = 'true'): Promise<unknown[]> => {
      const response = await market.request(to, { key, headers: { 'X-ACF-Free-Only': value } });
      const text = await response.text();
      const { error, price } = response.ok ? ({} as { error?: string; price?: number }) : JSON.parse(text);
      const told = ['x-acf-free-tier', 'x-acf-free-left', 'x-acf-amount'].map((name) => response.headers.get(name));
      return error === undefined ? [response.status, ...told] : [response.status, error, price];
    };
    const refunded = await market.request(`${path}/status/500`, { key: buyer });
    expect(['x-acf-free-tier', 'x-acf-free-left'].map((name) => refunded.headers.get(name))).toEqual(['true', '2']);
    await refunded.text();
    await market.settled();
    expect(await ask(path, child)).toEqual([200, 'true', '1', '0']);
    expect(await ask(path)).toEqual([200, 'true', '0', '0']);
    expect(await ask(path)).toEqual([402, 'free_calls_used', 0.01]);
    expect(await ask(path, child)).toEqual([402, 'free_calls_used', 0.01]);
    expect(await ask(without)).toEqual([402, 'free_calls_used', 0.02]);
    expect(await ask(without, child)).toEqual([402, 'free_calls_used', 0.02]);
    expect(await ask(gratis)).toEqual([200, 'false', null, '0']);
    expect(await ask(path, buyer, 'yes')).toEqual([400, 'invalid_request', undefined]);
    expect(await ask(path, buyer, 'false')).toEqual([200, 'false', '0', '0.01']);
    expect(await market.balance(buyer)).toMatchObject({ balance: 0.99, held: 0 });
  });

  it('are counted on the page of the service for keys that can use them, per account', async () => {
    const path = await market.service({ endpoint: service.url, price: 0.01, free_calls: 2 });
    const id = path.split('/').at(-1) as string;
    const another = (await market.service({ endpoint: service.url })).split('/').at(-1) as string;
    const [buyer, other] = [await market.buyer(1), await market.buyer(1)];
    const childWith = (more: object) =>
      market.json<Key>('/api/v1/keys', {
        key: buyer,
        method: 'POST',
        body: { budget: { amount: 1, period: 'total' }, ...more },
      });
    const left = async (key?: Key): Promise<unknown> => {
      const response = await market.request(`/api/v1/discover/${id}`, key === undefined ? {} : { key });
      expect(response.headers.get('vary')).toBe('Accept-Language, Authorization, X-Api-Key');
      expect(response.headers.get('cache-control')).toBe(key === undefined ? 'no-cache' : 'private, no-cache');
      expect(response.headers.get('etag')).toBeNull();
      return ((await response.json()) as { free_calls_left?: number }).free_calls_left;
    };
    // The wallets are not in Redis yet: the page loads them.
    expect([await left(buyer), await left(other), await left(market.admin), await left()]).toEqual([
      2,
      2,
      2,
      undefined,
    ]);
    expect((await market.request(path, { key: buyer })).headers.get('x-acf-free-left')).toBe('1');
    const [child, elsewhere] = [await childWith({}), await childWith({ services: [another] })];
    const owner = await market.json<Key>('/api/v1/keys', {
      key: market.provider,
      method: 'POST',
      body: { role: 'buyer' },
    });
    const asked = [buyer, other, child, elsewhere, market.provider, owner, await market.anotherProvider()];
    expect(await Promise.all(asked.map(left))).toEqual([1, 2, 1, undefined, undefined, undefined, undefined]);
    // A lower number than is used leaves none, and a wallet that is damaged hides the number alone.
    await market.request(path, { key: buyer });
    const { redis, keys } = market.stores;
    await redis.command('hset', [keys.wallet(keys.shardOf(other.account_id), other.account_id), `free:${id}`, 'x']);
    expect([await left(buyer), await left(other)]).toEqual([0, undefined]);
    const list = await market.request('/api/v1/discover', { key: buyer });
    expect(await list.text()).not.toContain('free_calls_left');
  });

  it('does not lose a slot to a call that the balance could not pay for, or to a call of another service', async () => {
    const free = await market.service({ endpoint: service.url, price: 0.01, free_calls: 1 });
    const priced = await market.service({ endpoint: service.url, price: 0.01 });
    const buyer = await market.buyer(0);
    expect(await call(priced, buyer)).toMatchObject({ status: 402 });
    expect(await call(free, buyer)).toMatchObject({ status: 200, free: 'true' });
    expect(await call(free, buyer)).toMatchObject({ status: 402 });
  });

  it('is not reported for a service without a price', async () => {
    const path = await market.service({ endpoint: service.url, price: 0 });
    expect(await call(path, await market.buyer(0))).toMatchObject({ status: 200, amount: '0', free: 'false' });
  });
});

describe('a balance', () => {
  it('never goes below zero, and in the end equals what the records say, whatever runs at the same time', async () => {
    const prices = [0.000001, 0.003, 0.01, 0.25];
    const paths = await Promise.all(prices.map((price) => market.service({ endpoint: service.url, price })));
    const buyer = await market.buyer(2);
    const keys = [buyer, await market.anotherKey(buyer)];
    const watcher = await market.anotherKey(buyer);
    let lowest = Number.POSITIVE_INFINITY;
    let done = false;
    const watch = (async () => {
      while (!done) lowest = Math.min(lowest, (await market.balance(watcher)).balance);
    })();
    const bills = await Promise.all(
      Array.from({ length: 200 }, (_, i) => {
        const status = i % 7 === 3 ? 500 : 200;
        return call(`${paths[i % 4]}/status/${status}`, keys[i % 2] as Key);
      }),
    );
    done = true;
    await watch;
    const spent = bills.reduce((sum, { amount }) => sum + Math.round(Number(amount ?? 0) * 1e6), 0);
    expect(count(bills, { status: 402 })).toBeGreaterThan(0);
    expect(count(bills, { status: 500, amount: '0' })).toBeGreaterThan(0);
    expect(bills.every(({ balance }) => balance === null || Number(balance) >= 0)).toBe(true);
    expect(lowest).toBeGreaterThanOrEqual(0);
    await market.settled();
    expect(await market.balance(buyer)).toMatchObject({ balance: (2_000_000 - spent) / 1e6, held: 0 });
  });
});

describe('the tag of a call', () => {
  it('is in its record, in sums of the account, and is a filter; an invalid tag is refused before anything is charged', async () => {
    const path = await market.service({ endpoint: service.url, price: 0.01 });
    const buyer = await market.buyer(1);
    const child = await market.json<Key>('/api/v1/keys', { key: buyer, method: 'POST', body: {} });
    const call = async (key: Key, tag: string): Promise<number> =>
      (await market.request(path, { key, headers: { 'X-ACF-Tag': tag } })).status;
    const tags = ['a', 'customer-17', 'A.b_c:d/e@f-9', 'x'.repeat(64)];
    for (const tag of ['', 'a b', 'a,b', 'ä', 'a=b', 'x'.repeat(65)])
      expect([tag, await call(buyer, tag)]).toEqual([tag, 400]);
    for (const tag of tags) expect([tag, await call(buyer, tag)]).toEqual([tag, 200]);
    expect(await call(child, 'a')).toBe(200);
    await (await market.request(path, { key: buyer })).text();
    await market.settled();
    const usage = (query = '', key = buyer) =>
      market.json<{ total_calls: number; by_tag?: { tag: string; calls: number }[]; records: { tag?: string }[] }>(
        `/api/v1/usage${query}`,
        { key },
      );
    const all = await usage();
    expect(all.records.map(({ tag }) => tag)).toEqual([undefined, 'a', ...tags.toReversed()]);
    expect(all.by_tag?.map(({ tag, calls }) => [tag, calls])).toEqual([
      ['a', 2],
      ...[...tags.slice(1)].sort().map((tag) => [tag, 1]),
    ]);
    expect(await usage(`?tag=${encodeURIComponent(tags[2] as string)}`)).toMatchObject({
      total_calls: 1,
      records: [{ tag: tags[2] }],
    });
    // The sums by tag are those of the account: a child key sees records only.
    const ofChild = await usage('?tag=a', child);
    expect([ofChild.total_calls, ofChild.by_tag, ofChild.records]).toEqual([1, undefined, [expect.anything()]]);
    expect((await usage('?tag=customer-17', child)).records).toEqual([]);
    const wrong = await market.request('/api/v1/usage?tag=a%20b', { key: buyer });
    expect([wrong.status, await wrong.text()]).toEqual([400, expect.stringContaining('tag')]);
    const { usage_id } = all.records[1] as { usage_id: string };
    expect(await market.json(`/api/v1/usage/${usage_id}`, { key: market.admin })).toMatchObject({ tag: 'a' });
    expect(await market.json(`/api/v1/usage/${usage_id}`, { key: market.provider })).not.toHaveProperty('tag');
  });
});

describe('a change of a listing', () => {
  const patch = (path: string, body: object): Promise<Response> =>
    market.request(`/api/v1/services/${path.split('/').at(-1)}`, { key: market.provider, method: 'PATCH', body });

  it('of the price applies to the next call; a call under way is charged the price it was admitted for', async () => {
    const path = await market.service({ endpoint: service.url, price: 0.01 });
    const buyer = await market.buyer(1);
    const underWay = call(`${path}/wait`, buyer);
    const response = await until(() => waiting.pop());
    expect((await patch(path, { price: 0.2 })).status).toBe(200);
    expect(await call(path, buyer)).toMatchObject({ status: 200, amount: '0.2', balance: '0.79' });
    response.end();
    expect(await underWay).toMatchObject({ status: 200, amount: '0.01', balance: '0.99' });
    const amounts = (await market.records(buyer)).map(({ amount }) => amount);
    expect(amounts.sort()).toEqual([0.01, 0.2]);
    expect(await market.balance(buyer)).toMatchObject({ balance: 0.79, held: 0 });
  });

  it('to paused or removed makes calls of the listing get 404 at once; back to active makes them work again', async () => {
    const path = await market.service({ endpoint: service.url, price: 0.01 });
    const buyer = await market.buyer(1);
    await patch(path, { status: 'paused' });
    expect(await call(path, buyer)).toMatchObject({ status: 404, body: { error: 'service_not_found' } });
    await patch(path, { status: 'active' });
    expect(await call(path, buyer)).toMatchObject({ status: 200 });
    const id = path.split('/').at(-1);
    await market.request(`/api/v1/services/${id}`, { key: market.provider, method: 'DELETE' });
    expect(await call(path, buyer)).toMatchObject({ status: 404, body: { error: 'service_not_found' } });
    expect(await market.records(buyer)).toHaveLength(1);
  });
});

it('a finished call appears in the usage within a second', async () => {
  const path = await market.service({ endpoint: service.url, price: 0.03 });
  const buyer = await market.buyer(1);
  await call(path, buyer);
  expect(await timed(() => market.usage(buyer, 1))).toBeLessThan(1_000);
});

describe('a credit', () => {
  const credit = (key: Key, amount: number, reference: string): Promise<Response> =>
    market.request('/api/v1/admin/credits', {
      key: market.admin,
      method: 'POST',
      body: { account_id: key.account_id, amount, reference },
    });

  it('counts once, however often its reference is sent, even simultaneously', async () => {
    const buyer = await market.buyer(0);
    const statuses = await Promise.all(
      Array.from({ length: 8 }, async () => (await credit(buyer, 0.5, `once ${buyer.key_id}`)).status),
    );
    expect(statuses.sort()).toEqual([200, 200, 200, 200, 200, 200, 200, 201]);
    expect((await credit(buyer, 0.5, `once ${buyer.key_id}`)).status).toBe(200);
    expect(await market.balance(buyer)).toMatchObject({ balance: 0.5 });
  });

  it('is spendable by the very next call', async () => {
    const path = await market.service({ endpoint: service.url, price: 0.3 });
    const buyer = await market.buyer(0);
    expect(await call(path, buyer)).toMatchObject({ status: 402, body: { required: 0.3, balance: 0 } });
    expect((await credit(buyer, 0.3, `next ${buyer.key_id}`)).status).toBe(201);
    expect(await call(path, buyer)).toMatchObject({ status: 200, amount: '0.3', balance: '0' });
  });

  it('adds up correctly with simultaneous credits and calls', async () => {
    const path = await market.service({ endpoint: service.url, price: 0.01 });
    const buyer = await market.buyer(1);
    const credits = Array.from({ length: 20 }, (_, i) =>
      // A credit may be refused on a busy machine. Sent again, it is made once.
      until(async () => {
        const { status } = await credit(buyer, 0.1, `many ${i} ${buyer.key_id}`);
        return status === 503 ? null : status;
      }),
    );
    const bills = await Promise.all(Array.from({ length: 50 }, () => call(path, buyer)));
    for (const status of await Promise.all(credits)) expect([200, 201]).toContain(status);
    expect(count(bills, { status: 200, amount: '0.01' })).toBe(50);
    await market.settled();
    expect(await market.balance(buyer)).toMatchObject({ balance: 2.5, held: 0 });
  });
});

it('the books balance after all of this', async () => {
  expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
});
