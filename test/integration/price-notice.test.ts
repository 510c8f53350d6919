import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/wait.ts';
import { authorization, echo, type Key, Marketplace, startService, type TestService } from './marketplace.ts';

const NOTICE_SECONDS = 10;
/** How late a gateway may be: the answer that told it the time of Postgres, and two busy cores. */
const LATE_MS = 500;

let market: Marketplace;
let service: TestService;
let caller: Key;
const gateways: { readonly baseUrl: string; stop(): Promise<unknown> }[] = [];

beforeAll(async () => {
  market = await Marketplace.start({ PRICE_NOTICE_SECONDS: String(NOTICE_SECONDS) });
  service = await startService(echo);
  caller = await market.buyer(10);
  gateways.push({ baseUrl: market.baseUrl, stop: async () => {} }, await market.anotherGateway());
});
afterAll(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop()));
  await market.stop();
  await service.close();
});

type NextPrice = {
  price: number;
  max_price?: number;
  old_price?: number;
  from: string;
  free_calls?: number;
  only_operations?: boolean;
  operations?: object[];
};
type Shown = {
  id: string;
  price: number;
  max_price?: number;
  next_price?: NextPrice;
  operations?: object[];
  announced_operations?: object[];
};

const idOf = (path: string): string => path.split('/').at(-1) as string;
const listNew = async (options: object): Promise<string> =>
  idOf(await market.service({ endpoint: service.url, ...options }));
/** A listing that another account has called, whose changes are announced therefore. */
async function list(options: Record<string, unknown> & { operations?: readonly Record<string, unknown>[] }) {
  const id = await listNew(options);
  const path = options.operations?.[0]?.path as string | undefined;
  expect((await call(market.baseUrl, id, caller, path)).status).toBe(200);
  return id;
}
const change = (method: string, path: string, body: object): Promise<Shown> =>
  market.json(`/api/v1/services/${path}`, { key: market.provider, method, body });
const patch = (id: string, body: object): Promise<Shown> => change('PATCH', id, body);

type Answer = { status: number; amount: number; free: string | null; body: Record<string, unknown> };
async function call(baseUrl: string, id: string, key: Key, path = '', headers = {}): Promise<Answer> {
  const response = await fetch(`${baseUrl}/api/v1/proxy/${id}${path}`, {
    headers: { Authorization: authorization(key), ...headers },
  });
  const { status } = response;
  const amount = Number(response.headers.get('x-acf-amount'));
  const body = (await response.json()) as Record<string, unknown>;
  return { status, amount, free: response.headers.get('x-acf-free-tier'), body };
}

/** Waits until every gateway shows the announcement, then gives its time. */
async function announcedTime(id: string): Promise<number> {
  const times = await Promise.all(
    gateways.map(({ baseUrl }) =>
      until(async () => {
        const shown = (await (await fetch(`${baseUrl}/api/v1/discover/${id}`)).json()) as Shown;
        return shown.next_price?.from;
      }),
    ),
  );
  expect(new Set(times).size).toBe(1);
  return Date.parse(times[0] as string);
}

const passed = (fromMs: number): Promise<unknown> => until(() => Date.now() > fromMs + LATE_MS);

it('only the provider of a listing sees how long the notice is, and announced operations in full', async () => {
  const id = await list({ price: 0.002, operations: [{ method: 'GET', path: '/a', summary: 'A' }] });
  const operations = [{ method: 'GET', path: '/a', summary: 'A, better', price: 0.003 }];
  await market.settled();
  const changed = await patch(id, { operations, only_operations: true });
  const told = { price_notice_seconds: NOTICE_SECONDS, announced_operations: operations };
  expect(changed).toMatchObject(told);
  expect(await market.json(`/api/v1/services/${id}`, { key: market.provider })).toMatchObject(told);
  const others = await market.json(`/api/v1/services/${id}`);
  for (const name of Object.keys(told)) expect(others).not.toHaveProperty(name);
  // Nothing but the price of the listing is announced.
  const other = await list({ price: 0.004, operations });
  expect(await patch(other, { price: 0.005 })).not.toHaveProperty('announced_operations');
});

// Together, because most of their time they wait.
describe.concurrent('a price that rises', () => {
  it('applies from the announced time on, on every gateway at once, and never before', async () => {
    const [id, buyer] = await Promise.all([list({ price: 0.001 }), market.buyer(10)]);
    const before = Date.now();
    const { price, next_price } = await patch(id, { price: 0.002, name: 'Dearer' });
    expect([price, next_price?.price]).toEqual([0.001, 0.002]);
    const fromMs = Date.parse(next_price?.from as string);
    expect(fromMs - before).toBeGreaterThanOrEqual(NOTICE_SECONDS * 1000);
    expect(await announcedTime(id)).toBe(fromMs);
    const found = await market.json<{ services: Shown[] }>('/api/v1/discover');
    expect(found.services.find((it) => it.id === id)).toMatchObject({ name: 'Dearer', price: 0.001, next_price });

    const seen: { sent: number; answered: number; amount: number }[] = [];
    // Each with a key of its own: on a fast machine all visits together are more than one key may make.
    const visit = async ({ baseUrl }: { baseUrl: string }): Promise<void> => {
      const key = await market.anotherKey(buyer);
      // The last call of each is one at the new price, however late it is made.
      for (let sent = 0; sent <= fromMs + LATE_MS; ) {
        sent = Date.now();
        const { status, amount } = await call(baseUrl, id, key);
        if (status !== 200) throw new Error(`a call was answered with ${status}`);
        seen.push({ sent, answered: Date.now(), amount });
        await new Promise((resolve) => setTimeout(resolve, 40));
      }
    };
    // Without a message at that moment, and also on a gateway that did not run when the price was announced.
    const late = market.anotherGateway();
    await Promise.all([...gateways.map(visit), late.then(visit)]);
    gateways.push(await late);
    const early = seen.filter(({ answered }) => answered < fromMs);
    const after = seen.filter(({ sent }) => sent > fromMs + LATE_MS);
    expect(early.length).toBeGreaterThan(3);
    expect(after.length).toBeGreaterThanOrEqual(3);
    expect(new Set(early.map(({ amount }) => amount))).toEqual(new Set([0.001]));
    expect(new Set(after.map(({ amount }) => amount))).toEqual(new Set([0.002]));

    // What calls were told is what was taken.
    const told = seen.reduce((sum, { amount }) => sum + Math.round(amount * 1e6), 0);
    await market.settled();
    expect(Math.round((10 - (await market.balance(buyer)).balance) * 1e6)).toBe(told);
    const shown = await Promise.all(
      gateways.map(
        async ({ baseUrl }) => (await fetch(`${baseUrl}/api/v1/discover`)).json() as Promise<{ services: Shown[] }>,
      ),
    );
    for (const { services } of shown) {
      const listing = services.find((it) => it.id === id);
      expect(listing).toMatchObject({ price: 0.002 });
      expect(listing).not.toHaveProperty('next_price');
    }
  });

  it('is named by 412 and 402 from that time on, and applies to calls after free calls and to operations too', async () => {
    const operations = [{ method: 'GET', path: '/cheap', summary: 'Cheap', price: 0.001 }];
    const [plain, free, priced, poor, buyer] = await Promise.all([
      list({ price: 0.001 }),
      list({ price: 0.001, free_calls: 5 }),
      list({ price: 0.004, operations }),
      market.buyer(0),
      market.buyer(1),
    ]);
    await patch(plain, { price: 0.002 });
    const ended = { price: 0.001, free_calls: 0, old_free_calls: 5 };
    expect((await patch(free, { free_calls: null })).next_price).toMatchObject(ended);
    // Without the cheap operation, its calls cost what all others do.
    const { next_price, operations: shown } = await patch(priced, { operations: null });
    expect(shown).toEqual(operations);
    expect(next_price).toMatchObject({
      price: 0.004,
      operations: [{ method: 'GET', path: '/cheap', old_price: 0.001 }],
    });
    const bound = { 'X-ACF-Max-Amount': '0.001' };
    const observe = async (baseUrl: string) => ({
      bounded: await call(baseUrl, plain, buyer, '', bound),
      poor: (await call(baseUrl, plain, poor)).body.required,
      free: (await call(baseUrl, free, buyer)).free,
      cheap: (await call(baseUrl, priced, buyer, '/cheap')).amount,
    });
    const times = await Promise.all([plain, free, priced].map(announcedTime));
    const first = await observe(market.baseUrl);
    expect(Date.now()).toBeLessThan(Math.min(...times));
    expect(first).toMatchObject({ bounded: { status: 200, amount: 0.001 }, poor: 0.001, free: 'true', cheap: 0.001 });
    await passed(Math.max(...times));
    for (const { baseUrl } of gateways) {
      expect(await observe(baseUrl)).toMatchObject({
        bounded: { status: 412, body: { price: 0.002 } },
        poor: 0.002,
        free: 'false',
        cheap: 0.004,
      });
    }
    const after = await market.json<Shown>(`/api/v1/discover/${priced}`);
    expect(after).toMatchObject({ price: 0.004, operations: [] });
    expect(after).not.toHaveProperty('next_price');
  });

  it('is withdrawn by a lower price, which applies at once', async () => {
    const id = await list({ price: 0.005 });
    await patch(id, { price: 0.009 });
    const cheaper = await patch(id, { price: 0.004 });
    expect(cheaper).toMatchObject({ price: 0.004 });
    expect(cheaper).not.toHaveProperty('next_price');
    expect((await call(market.baseUrl, id, await market.buyer(1))).amount).toBe(0.004);
  });

  it('keeps its time if a lower price is announced instead, and gets a new time if a higher price is announced', async () => {
    const id = await list({ price: 0.001 });
    const first = (await patch(id, { price: 0.005 })).next_price as NextPrice;
    expect((await patch(id, { price: 0.003 })).next_price).toEqual({ ...first, price: 0.003 });
    // A change of something else leaves it alone.
    expect((await patch(id, { category: 'other', status: 'active' })).next_price).toEqual({ ...first, price: 0.003 });
    const higher = (await patch(id, { price: 0.004 })).next_price as NextPrice;
    expect(higher.price).toBe(0.004);
    expect(Date.parse(higher.from)).toBeGreaterThan(Date.parse(first.from));
    // Each field is changed from what was written last, announced or not.
    const both = await patch(id, { free_calls: 7 });
    expect(both).toMatchObject({ price: 0.001, next_price: { ...higher, free_calls: 7 } });
    expect(both).not.toHaveProperty('free_calls');
  });

  it('may be a max price that is new or higher; a lower max price applies at once', async () => {
    const id = await list({ price: 0.001 });
    const first = await patch(id, { max_price: 0.05 });
    expect(first).not.toHaveProperty('max_price');
    const from = expect.any(String);
    expect(first.next_price).toEqual({ price: 0.001, max_price: 0.05, from });
    expect((await patch(id, { max_price: 0.04 })).next_price).toEqual({ ...first.next_price, max_price: 0.04 });
    await passed(await announcedTime(id));
    expect(await patch(id, { max_price: 0.03 })).toMatchObject({ price: 0.001, max_price: 0.03 });
    const risen = { price: 0.001, max_price: 0.06, old_max_price: 0.03, from };
    expect((await patch(id, { max_price: 0.06 })).next_price).toEqual(risen);
    const ended = await patch(id, { max_price: null });
    expect([ended.max_price, ended.next_price]).toEqual([undefined, undefined]);
  });

  it('is the starting point of a later change once it applies', async () => {
    const id = await list({ price: 0.001, free_calls: 3 });
    await patch(id, { price: 0.002 });
    await passed(await announcedTime(id));
    const next = await patch(id, { free_calls: 2 });
    expect(next).toMatchObject({ price: 0.002, free_calls: 3, next_price: { price: 0.002, free_calls: 2 } });
    expect(await patch(id, { free_calls: 4 })).toMatchObject({ price: 0.002, free_calls: 4 });
  });

  it('of one operation is announced by itself, with the old price, and is what its calls cost from then on', async () => {
    const named = (path: string, price: number) => ({ method: 'GET', path, summary: path.slice(1), price });
    const operations = Array.from({ length: 28 }, (_, index) => named(`/o${index}`, 0.001));
    const [id, buyer] = await Promise.all([list({ price: 0.002, operations }), market.buyer(1)]);
    const cost = async (path: string) => (await call(market.baseUrl, id, buyer, path)).amount;
    const dearer = { operations: [{ method: 'GET', path: '/o5', price: 0.0015 }] };
    const tried = await change('PATCH', `${id}?dry_run=true`, dearer);
    expect(await market.json<Shown>(`/api/v1/services/${id}`)).not.toHaveProperty('next_price');
    const told = [{ method: 'GET', path: '/o5', price: 0.0015, old_price: 0.001 }];
    expect(tried.next_price).toMatchObject({ price: 0.002, operations: told });
    const { next_price: next, announced_operations: announced } = await patch(id, dearer);
    expect(next).toEqual({ price: 0.002, from: next?.from, operations: told });
    expect(announced).toHaveLength(28);
    // A further change of another one begins with what is announced, and joins it.
    const both = await patch(id, { operations: [{ method: 'GET', path: '/o6', price: 0.0005 }] });
    expect(both.next_price?.from).toBe(next?.from);
    expect(both.next_price?.operations).toEqual([
      ...told,
      { method: 'GET', path: '/o6', price: 0.0005, old_price: 0.001 },
    ]);
    const fromMs = await announcedTime(id);
    expect(await Promise.all(['/o5', '/o6', '/o7'].map(cost))).toEqual([0.001, 0.001, 0.001]);
    await passed(fromMs);
    expect(await Promise.all(['/o5', '/o6', '/o7'].map(cost))).toEqual([0.0015, 0.0005, 0.001]);
  });

  it('applies at once while no other account has ever called the listing, whatever its owner called', async () => {
    const id = await listNew({ price: 0.001 });
    expect((await call(market.baseUrl, id, market.provider)).amount).toBe(0);
    const changed = await patch(id, { price: 0.002 });
    expect(changed).toMatchObject({ price: 0.002, price_notice_seconds: 0 });
    expect(changed).not.toHaveProperty('next_price');
    const [buyer] = await Promise.all([market.buyer(1)]);
    expect((await call(market.baseUrl, id, buyer)).amount).toBe(0.002);
    // One call is enough, even before it is stored.
    expect(await patch(id, { price: 0.003 })).toMatchObject({ price: 0.002, next_price: { price: 0.003 } });
  });

  it('has its whole notice even if the listing is paused during the notice, or was paused when the price changed', async () => {
    const [first, second] = await Promise.all([list({ price: 0.001 }), list({ price: 0.001 })]);
    const next = (await patch(first, { price: 0.002 })).next_price;
    expect((await patch(first, { status: 'paused' })).next_price).toEqual(next);
    expect(await patch(first, { status: 'active' })).toMatchObject({ price: 0.001, next_price: next });
    await patch(second, { status: 'paused' });
    const before = Date.now();
    const changed = await patch(second, { price: 0.002 });
    expect(changed.price).toBe(0.001);
    expect(Date.parse(changed.next_price?.from as string) - before).toBeGreaterThanOrEqual(NOTICE_SECONDS * 1000);
  });

  it('must obey the rules of a listing when it is announced', async () => {
    const id = await list({ price: 0.001, operations: [{ method: 'GET', path: '/a', summary: 'A' }] });
    const operations = [{ method: 'GET', path: '/a', summary: 'A', price: 1 }];
    const refused = await market.request(`/api/v1/services/${id}`, {
      key: market.provider,
      method: 'PATCH',
      body: { operations },
    });
    expect([refused.status, ((await refused.json()) as { message: string }).message]).toEqual([
      400,
      expect.stringContaining('only_operations: true'),
    ]);
  });
});
