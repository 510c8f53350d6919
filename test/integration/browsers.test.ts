// What web pages can do, in a real browser. The headers that let them: cors.test.ts.

import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Browser, type OpenedPage, type Page, startBrowser, startPage } from '../support/browser.ts';
import { until } from '../support/wait.ts';
import { authorization, bodyOf, type Key, Marketplace, startService, type TestService } from './marketplace.ts';

let market: Marketplace;
let service: TestService;
let browser: Browser;
/** A page of another site than the gateway's. */
let shop: OpenedPage;
let buyer: Key;
let path: string;
let tooDear: string;
let free: string;
/** Methods of the requests that reached the service. */
let seen: (string | undefined)[] = [];
/** The event stream that is open. */
let events: ServerResponse | null = null;

beforeAll(async () => {
  [market, browser, service] = await Promise.all([
    Marketplace.start(),
    startBrowser(),
    startService(async (request, response) => {
      seen.push(request.method);
      if (request.url === '/events') {
        events = response.writeHead(200, { 'Content-Type': 'text/event-stream' });
        response.write('data: one\n\n');
        return;
      }
      if (request.url === '/document') {
        response.writeHead(200, { 'Content-Type': 'text/html', 'Cache-Control': 'public, max-age=600' });
        response.end('<title>quiet</title><script>document.title = "ran"</script>');
        return;
      }
      // Each of these would keep the page from reading the response, if the gateway let it decide.
      response.setHeader('Access-Control-Allow-Origin', 'https://elsewhere.example');
      response.setHeader('Cross-Origin-Resource-Policy', 'same-origin');
      response.end(`you sent ${await bodyOf(request)}`);
    }),
  ]);
  shop = await startPage(browser, 'shop.test');
  buyer = await market.buyer(1);
  path = await market.service({ endpoint: service.url, price: 0.25 });
  tooDear = await market.service({ endpoint: service.url, price: 50 });
  free = await market.service({ endpoint: service.url });
});
afterAll(async () => {
  await browser.close();
  await shop.close();
  await market.stop();
  await service.close();
});

type Request = Pick<RequestInit, 'method' | 'credentials'> & {
  readonly headers?: Record<string, string>;
  readonly body?: string;
};
type Answer = { readonly status: number; readonly headers: Record<string, string>; readonly body: string };

/** fetch() in the page. @returns what the page's script can read; rejects as it does in the page */
function fetchIn(page: Page, url: string, init: Request = {}): Promise<Answer> {
  return page.evaluate(
    async ([target, options]) => {
      const response = await fetch(target, options);
      const headers = Object.fromEntries(response.headers);
      return { status: response.status, headers, body: await response.text() };
    },
    [url, init] as const,
  );
}

const gateway = (target: string): string => market.baseUrl + target;
const withKey = (key: Key): Record<string, string> => ({ Authorization: authorization(key) });

describe('a page of another origin', () => {
  it('lists the catalog', async () => {
    const { status, headers, body } = await fetchIn(shop.page, gateway('/api/v1/discover'));
    expect([status, JSON.parse(body).total]).toEqual([200, 3]);
    expect(headers['x-ratelimit-limit']).toBe('100000');
  });

  it('makes a paid call and reads its price; the preflight does not count as a call', async () => {
    seen = [];
    const request = { method: 'POST', headers: { ...withKey(buyer), 'Content-Type': 'application/json' }, body: '{}' };
    const { status, headers, body } = await fetchIn(shop.page, gateway(`${path}/echo`), request);
    expect([status, body]).toEqual([200, 'you sent {}']);
    expect(headers).toMatchObject({ 'x-acf-amount': '0.25', 'x-acf-free-tier': 'false', 'x-acf-balance': '0.75' });
    expect(headers['x-acf-usage-id']).toBe(headers['x-request-id']);
    expect(seen).toEqual(['POST']);
    expect((await market.records(buyer)).map(({ amount }) => amount)).toEqual([0.25]);
  });

  it('sees where the time of a call went, in the response and in its Performance Timeline', async () => {
    const url = gateway(`${free}/timed`);
    const { headers } = await fetchIn(shop.page, url, { headers: withKey(buyer) });
    expect(headers['server-timing']).toMatch(/^admission;dur=\d+\.\d, service;dur=\d+\.\d$/);
    // For a response without Timing-Allow-Origin a browser shows 0.
    const requestStart = await shop.page.evaluate(
      (name) =>
        (performance.getEntriesByName(name).at(-1)?.toJSON() as { requestStart: number } | undefined)?.requestStart,
      url,
    );
    expect(requestStart).toBeGreaterThan(0);
  });

  it('gets no answer to a request that would carry cookies', async () => {
    const request = { credentials: 'include' } as const;
    await expect(fetchIn(shop.page, gateway('/api/v1/discover'), request)).rejects.toThrow('Failed to fetch');
  });

  it.each([
    ['401', 'unauthorized', () => path, () => ({})],
    ['402', 'insufficient_balance', () => tooDear, () => withKey(buyer)],
    ['404', 'service_not_found', () => '/api/v1/proxy/00000000-0000-7000-8000-000000000000', () => withKey(buyer)],
  ])('reads the body of a %s', async (status, error, target, headers) => {
    const answer = await fetchIn(shop.page, gateway(target()), { headers: headers() });
    expect([String(answer.status), JSON.parse(answer.body).error]).toEqual([status, error]);
  });

  it('reads an event stream with fetch, event by event', async () => {
    events = null;
    const { page } = shop;
    // The page keeps its reader, so that it can be asked for one piece after the other.
    await page.evaluate(
      async ([url, headers]) => {
        const { body } = await fetch(url, { headers });
        const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
        Object.assign(globalThis, { nextEvent: async () => (await reader?.read())?.value ?? 'end' });
      },
      [gateway(`${path}/events`), withKey(buyer)] as const,
    );
    expect(await page.evaluate('nextEvent()')).toBe('data: one\n\n');
    const open = events as ServerResponse | null;
    open?.write('data: two\n\n');
    expect(await page.evaluate('nextEvent()')).toBe('data: two\n\n');
    open?.end();
    expect(await page.evaluate('nextEvent()')).toBe('end');
  });

  it('gets nothing with an EventSource, which cannot send a key: it is refused once and does not reconnect', async () => {
    seen = [];
    const script = `(url) => new Promise((resolve) => {
      const source = new EventSource(url);
      source.onerror = () => resolve(source.readyState === EventSource.CLOSED);
    })`;
    expect(await shop.page.evaluate(`(${script})(${JSON.stringify(gateway(`${path}/events`))})`)).toBe(true);
    expect(seen).toEqual([]);
  });

  it("cannot make a service's document run as a page of the gateway by fetching it with a key and navigating to it", async () => {
    const url = gateway(`${path}/document`);
    // The navigation has no key: the document comes from the browser's cache, which drops documents as it likes.
    const { page, close } = await until(async () => {
      seen = [];
      const lure = await startPage(browser, 'lure.test');
      await fetchIn(lure.page, url, { headers: withKey(buyer) });
      const response = await lure.page.goto(url);
      if (response?.status() === 200) return lure;
      expect(response?.status()).toBe(401);
      await lure.close();
      return null;
    });
    expect(seen).toEqual(['GET']);
    expect([await page.title(), await page.evaluate('self.origin')]).toEqual(['quiet', 'null']);
    await close();
  });

  it('can neither send an admin key to the admin pages nor read what they answer without one', async () => {
    const url = gateway('/api/v1/admin/reconciliation');
    await expect(fetchIn(shop.page, url, { headers: withKey(market.admin) })).rejects.toThrow('Failed to fetch');
    await expect(fetchIn(shop.page, url)).rejects.toThrow('Failed to fetch');
  });
});

describe('the first admin of a new gateway', () => {
  const body = JSON.stringify({ owner_id: 'mallory', role: 'admin' });
  const create = (page: Page, origin: string): Promise<Answer> =>
    fetchIn(page, `${origin}/api/v1/keys`, { method: 'POST', body });
  const admins = async (): Promise<number> =>
    Number((await market.stores.sql`SELECT count(*)::int AS n FROM api_keys WHERE role = 'admin'`)[0]?.n);

  beforeAll(async () => {
    // There are none now, as on a new gateway.
    await market.stores.sql`UPDATE api_keys SET role = 'provider' WHERE role = 'admin'`;
  });

  it('is not made by a page of another site, or of another port of the same host', async () => {
    const neighbour = await startPage(browser, '127.0.0.1');
    for (const { page } of [shop, neighbour]) {
      const { status, body: text } = await create(page, market.baseUrl);
      expect([status, JSON.parse(text)]).toMatchObject([
        403,
        { error: 'forbidden', message: expect.stringContaining('another origin') },
      ]);
    }
    await neighbour.close();
    expect(await admins()).toBe(0);
  });

  it('is not made by a form, whose page could not read the answer', async () => {
    const { page, close } = await startPage(browser, 'form.test');
    const answered = page.waitForResponse((response) => response.url().endsWith('/api/v1/keys'));
    // A form sends text as it is written: {"owner_id":"=","role":"admin"} is JSON.
    await page.setContent(`<form method="post" enctype="text/plain" action="${gateway('/api/v1/keys')}">
      <input name='{"owner_id":"' value='","role":"admin"}'></form>`);
    await page.evaluate('document.forms[0].submit()');
    expect((await answered).status()).toBe(403);
    await close();
    expect(await admins()).toBe(0);
  });

  it('is not made by a page whose host name was rebound to the gateway, though its Origin equals Host', async () => {
    const rebound = market.baseUrl.replace('127.0.0.1', 'evil.test');
    const page = await browser.newPage();
    await page.goto(`${rebound}/healthz`);
    expect((await create(page, rebound)).status).toBe(403);
    await page.close();
    expect(await admins()).toBe(0);
  });

  it("is made by a page of the gateway's own", async () => {
    const page = await browser.newPage();
    await page.goto(gateway('/healthz'));
    expect((await create(page, market.baseUrl)).status).toBe(201);
    await page.close();
    await until(async () => (await admins()) === 1);
  });
});
