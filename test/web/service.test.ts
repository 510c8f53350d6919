import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import '../support/browser.ts';
import { type Key, startService, type TestService } from '../integration/marketplace.ts';
import { until } from '../support/wait.ts';
import { type Look, type Visit, WebMarket } from './web-market.ts';

const XSS = '<img src=x onerror="alert(1)">"><script>alert(2)</script>';
const schema = {
  type: 'object',
  properties: {
    query: { type: 'object', required: ['city'], properties: { city: { type: 'string', description: XSS } } },
    path: { type: 'object', properties: { day: { type: 'string', enum: ['today'] } } },
  },
};

/** What streams are waiting for: a test lets them go on. */
const goOn = new Map<string, () => void>();

/** One service with an answer of each kind, by path. */
async function answers(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname } = new URL(request.url ?? '/', 'http://x');
  request.resume();
  if (pathname === '/hostile') return void response.setHeader('Content-Type', 'text/html').end(XSS);
  if (pathname === '/fails') return void response.writeHead(500).end(JSON.stringify({ error: XSS }));
  if (pathname === '/picture') {
    return void response.setHeader('Content-Type', 'image/png').end(Buffer.from([0x89, 0x50, 0, 1]));
  }
  if (pathname === '/stream') {
    response.setHeader('Content-Type', 'text/event-stream');
    response.write('event: first\ndata: {"n":1}\n\n');
    // Sooner than the page draws again.
    setTimeout(() => response.write('data: soon\n\n'), 10);
    await new Promise<void>((resolve) => goOn.set('stream', resolve));
    return void response.end(`event: last\ndata: ${XSS}\n\n`);
  }
  if (pathname === '/greedy') return void response.setHeader('X-ACF-Charge', '0.05').end();
  if (pathname === '/by-use') {
    response.writeHead(200, { 'Content-Type': 'text/plain', Trailer: 'X-ACF-Charge' }).write('work');
    response.addTrailers({ 'X-ACF-Charge': '0.0123' });
    return void response.end();
  }
  response.setHeader('Content-Type', 'application/json');
  if (request.method === 'POST') response.setHeader('Mcp-Session-Id', 'session-1');
  response.end(JSON.stringify({ got: request.url, max: request.headers['x-acf-max-amount'] ?? null }));
}

const operation = (method: string, path: string, more: object = {}) => ({
  method,
  path,
  summary: `${method} ${path}`,
  ...more,
});

describe('the page of a service in a browser', () => {
  let web: WebMarket;
  let service: TestService;
  let buyer: Key;
  const ids = { free: '', paid: '', hostile: '', mcp: '', charted: '' };

  beforeAll(async () => {
    [web, service] = await Promise.all([
      WebMarket.start(),
      startService((request, response) => void answers(request, response)),
    ]);
    const { market } = web;
    const list = async (body: object): Promise<string> => {
      const listing = { endpoint: service.url, category: 'weather', description: '', price: 0, ...body };
      const made = { key: market.provider, method: 'POST', body: listing };
      return (await market.json<{ id: string }>('/api/v1/services', made)).id;
    };
    const forecast = operation('GET', '/forecast/{day}', {
      input: schema,
      output: { type: 'object', properties: { got: { type: 'string' } } },
      example: { query: { city: 'Bern' }, response: { got: 'rain' } },
    });
    [ids.free, ids.paid, ids.hostile, ids.mcp, ids.charted] = await Promise.all([
      list({
        name: 'Free Weather',
        description: 'Line one.\nLine two.',
        price: 0.002,
        free_calls: 3,
        operations: [forecast],
      }),
      list({
        name: 'Paid Weather',
        price: 0.01,
        only_operations: true,
        forward_headers: ['x-auth-token'],
        docs_url: 'https://docs.example/weather',
        timeout_seconds: 7,
        idle_seconds: 90,
        operations: ['/forecast', '/hostile', '/fails', '/picture', '/stream', '/by-use'].map((path) =>
          operation('GET', path, path === '/by-use' ? { price: 0.01, max_price: 0.05 } : {}),
        ),
      }),
      list({
        name: XSS.slice(0, 99),
        description: XSS,
        operations: [operation('POST', '/x', { summary: XSS, example: { body: XSS } })],
      }),
      list({
        name: 'Tools',
        protocol: 'mcp',
        price: 0.02,
        operations: [{ tool: 'search', price: 0.01, summary: 'Finds' }],
      }),
      list({ name: 'Charted', price: 0.01, max_price: 0.05 }),
    ]);
    buyer = await market.buyer(1);
  });
  afterAll(async () => {
    await web?.stop();
    await service?.close();
  });

  const secret = (key: Key): string => `${key.key_id}:${key.secret}`;
  const open = (id: string, look: Look = {}): Promise<Visit> => web.visit(`/services/${id}`, look);
  const answer = (visit: Visit) => visit.page.getByRole('region', { name: 'Answer', exact: true });
  /** Chooses an operation of the paid service, and calls it. */
  const call = async (visit: Visit, path: string): Promise<void> => {
    await visit.page.getByLabel('Operation', { exact: true }).selectOption({ label: `GET ${path} · $0.01 per call` });
    await visit.page.getByRole('button', { name: 'Call $0.01' }).click();
  };
  /** Ends a visit: no complaints, nothing serious for axe, no key in any address. */
  const end = async (visit: Visit, complaints: readonly string[] = []): Promise<void> => {
    expect(await visit.findings()).toEqual([]);
    expect(visit.complaints).toEqual(complaints);
    expect(visit.requested.filter((url) => /sk_|acf_/.test(url))).toEqual([]);
    await visit.close();
  };

  it('leads a new visitor from the catalog to a call in one click, and shows the body, the price and the rest', async () => {
    // A name without https: there the key is in the tab.
    const visit = await web.visit(`http://gateway.test:${new URL(web.market.baseUrl).port}/`);
    const { page } = visit;
    await page.getByRole('link', { name: 'Free Weather' }).click();
    await page.getByRole('heading', { name: 'Free Weather', level: 1 }).waitFor();
    await until(async () => (await page.title()) === 'Free Weather · Tollgate');
    await page.getByRole('button', { name: 'Open an account and call free call' }).click();
    await answer(visit).getByText('200 OK').waitFor();
    const shown = await answer(visit).textContent();
    expect(shown).toContain('"got": "/forecast/today?city=Bern"');
    expect(shown).toMatch(/Paid\$0\.00free call, 2 leftLeft\$0\.00/);
    const record = answer(visit).getByRole('link', { name: 'This call in your console' });
    expect(await record.getAttribute('href')).toMatch(/^\/console\/calls\/[0-9a-f-]{36}$/);
    expect(await page.getByRole('region', { name: 'Keep this key' }).textContent()).toMatch(/acf_\w{22}:sk_\w{49}/);
    // Status and price are on the screen, wherever the button was.
    await expect
      .poll(() => page.evaluate(`document.querySelector('.try-money').getBoundingClientRect().bottom <= innerHeight`))
      .toBe(true);
    await visit.shot('service-new-visitor');
    // Somebody who leaves without the key would lose the account: the browser asks. A tab that remembers the key may be loaded again.
    const mayLeave = (): Promise<boolean> =>
      page.evaluate('dispatchEvent(new Event("beforeunload", { cancelable: true }))');
    expect(await mayLeave()).toBe(false);
    await page.getByLabel('Remember it until this tab is closed').check();
    expect(await mayLeave()).toBe(true);
    expect(await page.evaluate('sessionStorage["tollgate.key"]')).toMatch(/^acf_/);
    await page.getByLabel('Remember it until this tab is closed').uncheck();
    expect(await page.evaluate('sessionStorage["tollgate.key"]')).toBe(undefined);
    await page.getByRole('button', { name: 'I have kept it' }).click();
    expect(await mayLeave()).toBe(true);
    // A button that vanishes leaves the focus to what comes before it, but not to a button that calls.
    await expect.poll(() => visit.focused()).toBe('summary Headers ');
    expect(await page.locator('main').textContent()).not.toContain('sk_');
    // The account stays: three calls are free, and the fourth is told what is missing.
    for (const button of ['Call 2 free calls left', 'Call 1 free call left']) {
      await page.getByRole('button', { name: button }).waitFor();
      if (button.includes('2')) await visit.shot('service-free-left');
      const arrived = page.waitForResponse(/\/proxy\//);
      await page.getByRole('button', { name: button }).click();
      expect((await arrived).headers()['x-acf-free-tier']).toBe('true');
    }
    await page.getByRole('button', { name: 'Call $0.002' }).click();
    await answer(visit).getByText('402 Payment Required').waitFor();
    expect(await answer(visit).textContent()).toContain(
      'The call needs $0.002, and $0.00 is left. Nothing was charged.',
    );
    expect(await answer(visit).getByRole('link', { name: 'How to add money' }).getAttribute('href')).toBe(
      '/console/money',
    );
    await visit.shot('service-402');
    // A page that is being left sends no request for the next page's address.
    const asked = visit.requested.length;
    await answer(visit).getByRole('link', { name: 'How to add money' }).click();
    await page.getByText('Nothing has moved yet').waitFor();
    expect(visit.requested.slice(asked).filter((url) => url.includes('/discover/'))).toEqual([]);
    expect(await visit.focused()).toBe('h1 Money');
    await page.goBack();
    await page.getByRole('heading', { name: 'Free Weather', level: 1 }).waitFor();
    expect(await visit.skippedHeadings()).toEqual([]);
    await end(visit, [
      // It wants https, too.
      expect.stringContaining('Cross-Origin-Opener-Policy header has been ignored'),
      'Failed to load resource: the server responded with a status of 402 (Payment Required)',
    ]);
  });

  it('shows programs for what was typed, and for another operation its example again', async () => {
    const visit = await open(ids.paid);
    const { page } = visit;
    const program = page.locator('.snippets pre');
    const choose = (path: string): Promise<unknown> =>
      page.getByLabel('Operation', { exact: true }).selectOption({ label: `GET ${path} · $0.01 per call` });
    await choose('/picture');
    await page.getByLabel(/x-auth-token/).fill('hush');
    await page.getByText('More query parameters').click();
    await page.getByRole('button', { name: 'Add parameter' }).click();
    await page.getByLabel(/^Parameter 1.*name/i).fill('size');
    await page.getByLabel(/^Parameter 1.*value/i).fill('10 cm');
    await expect.poll(() => program.textContent()).toContain('/picture?size=10%20cm');
    expect(await program.textContent()).not.toContain('hush');
    await choose('/stream');
    await choose('/picture');
    await expect.poll(() => program.textContent()).toMatch(/\/picture \\$/m);
    await end(visit);
  });

  it('makes a paid call with a key, and never for more than the button says', async () => {
    const visit = await open(ids.paid, { key: secret(buyer) });
    await call(visit, '/forecast');
    await answer(visit).getByText('200 OK').waitFor();
    expect(await answer(visit).textContent()).toMatch(/Paid\$0\.01Left\$0\.99/);
    await visit.shot('service-paid');
    // The price rises while somebody looks at the page.
    await web.market.json(`/api/v1/services/${ids.paid}`, {
      key: web.market.provider,
      method: 'PATCH',
      body: { price: 0.5 },
    });
    await call(visit, '/forecast');
    await answer(visit).getByText('412 Precondition Failed').waitFor();
    expect(await answer(visit).textContent()).toContain('The price is $0.50, more than the button said.');
    await web.market.json(`/api/v1/services/${ids.paid}`, {
      key: web.market.provider,
      method: 'PATCH',
      body: { price: 0.01 },
    });
    expect((await web.market.balance(buyer)).balance).toBe(0.99);
    // Priced by use: the most is said before the call, and what it did cost after it.
    const { page } = visit;
    await page
      .getByLabel('Operation', { exact: true })
      .selectOption({ label: 'GET /by-use · $0.01 up to $0.05 per call' });
    await page.getByText('It may cost at most $0.05.').waitFor();
    await page.getByRole('button', { name: 'Call up to $0.05' }).click();
    await answer(visit).getByText('of at most $0.05').waitFor();
    expect(await answer(visit).textContent()).toMatch(/Paid\$0\.0123of at most \$0\.05Left\$0\.9777/);
    expect(await page.locator('.stat', { has: page.locator('.service-price') }).textContent()).toContain(
      'Operations cost $0.01 to $0.05',
    );
    await visit.shot('service-by-use');
    // With less than it may cost it can be made for what is left.
    const required = { error: 'insufficient_balance', required: 0.05, balance: 0.02 };
    await page.route('**/api/v1/proxy/**', (route) => route.fulfill({ status: 402, json: required }), { times: 1 });
    await page.getByRole('button', { name: 'Call up to $0.05' }).click();
    await answer(visit).getByText('The call may cost up to $0.05, and $0.02 is left.').waitFor();
    await answer(visit).getByRole('button', { name: 'Call for at most $0.02' }).click();
    await answer(visit).getByText('of at most $0.02').waitFor();
    await page.setViewportSize({ width: 390, height: 844 });
    await expect.poll(() => page.evaluate('document.documentElement.scrollWidth <= 390')).toBe(true);
    // The price leaves the path room: it is not broken between letters.
    const paths = page.locator('.operation-path').filter({ hasText: '/by-use' });
    expect(await paths.evaluate(({ offsetHeight }) => offsetHeight)).toBeLessThan(30);
    await visit.shot('service-by-use-phone');
    await end(visit, [
      'Failed to load resource: the server responded with a status of 412 (Precondition Failed)',
      'Failed to load resource: the server responded with a status of 402 (Payment Required)',
    ]);
  });

  it('shows a stream event by event, and says so when a stream is cancelled', async () => {
    const visit = await open(ids.paid, { key: secret(buyer), dark: true });
    await call(visit, '/stream');
    const events = visit.page.getByRole('list', { name: '2 events' });
    await events.getByText('{"n":1}').waitFor();
    expect(await answer(visit).textContent()).toContain('Receiving');
    await visit.shot('service-stream-dark');
    goOn.get('stream')?.();
    await visit.page.getByRole('list', { name: '3 events' }).getByText(XSS).waitFor();
    goOn.delete('stream');
    await visit.page.getByRole('button', { name: 'Call $0.01' }).click();
    await events.getByText('{"n":1}').waitFor();
    await visit.page.getByRole('button', { name: 'Cancel' }).click();
    await answer(visit).getByText('You ended the call').waitFor();
    await expect.poll(() => visit.focused()).toBe('summary Headers ');
    goOn.get('stream')?.();
    await end(visit);
  });

  it('shows and explains a refund when the service fails', async () => {
    const visit = await open(ids.paid, { key: secret(buyer) });
    const before = (await web.market.balance(buyer)).balance;
    await call(visit, '/fails');
    await answer(visit).getByText('500 Internal Server Error').waitFor();
    expect(await answer(visit).textContent()).toContain('The service failed, so this call costs nothing.');
    await web.market.settled();
    expect((await web.market.balance(buyer)).balance).toBe(before);
    await visit.shot('service-refunded');
    await end(visit, ['Failed to load resource: the server responded with a status of 500 (Internal Server Error)']);
  });

  it('shows everything that a service or a provider sends as plain text', async () => {
    const called = await open(ids.paid, { key: secret(buyer) });
    await call(called, '/hostile');
    await answer(called).getByText(XSS).waitFor();
    await call(called, '/picture');
    await answer(called).getByText('The body is not text: image/png, 4 bytes.').waitFor();
    expect(await called.page.locator('main img').count()).toBe(0);
    await end(called);
    const listed = await open(ids.hostile);
    expect(await listed.page.getByRole('heading', { level: 1 }).textContent()).toBe(XSS.slice(0, 99));
    expect(await listed.page.locator('main img, main script').count()).toBe(0);
    await listed.shot('service-hostile');
    await end(listed);
  });

  it('links only to web pages, and never to a URL that runs as a script', async () => {
    // The API takes no such address. So it comes as if from a gateway of somebody else's.
    const visit = await web.visit('/');
    await visit.page.route('**/api/v1/discover/*', async (route) => {
      const response = await route.fetch();
      await route.fulfill({
        response,
        json: { ...((await response.json()) as object), docs_url: 'javascript:alert(1)' },
      });
    });
    await visit.page.getByRole('link', { name: 'Paid Weather' }).click();
    await visit.page.getByRole('heading', { name: 'Paid Weather' }).waitFor();
    expect(await visit.page.locator('a[href^="javascript"]').count()).toBe(0);
    await end(visit);
    const real = await open(ids.paid);
    const docs = real.page.getByRole('link', { name: 'docs.example/weather' });
    expect(await docs.getAttribute('rel')).toBe('noopener noreferrer nofollow');
    await end(real);
  });

  it('does not expose the service itself: a browser gets 401 there, so no content of a service runs in our origin', async () => {
    const visit = await web.visit('/');
    const response = await visit.page.goto(`/api/v1/proxy/${ids.paid}/hostile`);
    expect(response?.status()).toBe(401);
    expect(await visit.page.content()).not.toContain('onerror');
    await visit.close();
  });

  it("explains to a provider what the provider's key may do", async () => {
    const other = await web.market.anotherProvider();
    const visit = await open(ids.paid, { key: secret(other) });
    await visit.page.getByText('You are signed in with a provider key').waitFor();
    expect(await visit.page.getByRole('button', { name: 'Call $0.01' }).isDisabled()).toBe(true);
    await end(visit);
    const own = await open(ids.paid, { key: secret(web.market.provider) });
    await own.page.getByRole('button', { name: 'Call free' }).click();
    await answer(own).getByText('200 OK').waitFor();
    expect(await answer(own).textContent()).toMatch(/Paid\$0\.00/);
    await end(own);
  });

  it('says for each refusal and failure what it costs and what can be done', async () => {
    const visit = await open(ids.paid, { key: secret(buyer) });
    const { page } = visit;
    const cases: readonly (readonly [
      status: number,
      headers: Record<string, string>,
      words: string,
      error?: string,
    ])[] = [
      [401, {}, 'The gateway does not know the key.', 'unauthorized'],
      [402, {}, 'The gateway refused the call. It cost nothing.', 'unheard_of'],
      [403, {}, XSS, 'forbidden'],
      [404, {}, 'There is no such operation, or the service is no longer listed.'],
      [429, { 'Retry-After': '1' }, 'Too many requests for this key. Nothing was charged.', 'rate_limited'],
      [502, { 'X-ACF-Amount': '0', 'X-ACF-Usage-Id': 'u' }, 'The service could not be reached'],
      [503, { 'Retry-After': '30' }, 'The service or the gateway is busy. Nothing was charged.'],
      [504, { 'X-ACF-Amount': '0', 'X-ACF-Usage-Id': 'u' }, 'The service did not answer in time. Try again later.'],
      [404, { 'X-ACF-Amount': '0.01', 'X-ACF-Usage-Id': 'u' }, 'This answer is the service’s own'],
    ];
    for (const [status, headers, words, error] of cases) {
      await page.route(
        '**/api/v1/proxy/**',
        (route) => route.fulfill({ status, headers, json: { error, message: XSS, status } }),
        {
          times: 1,
        },
      );
      await page.getByRole('button', { name: 'Call $0.01' }).click();
      await answer(visit).getByText(words).first().waitFor();
      if (status === 402) expect(await answer(visit).getByRole('link', { name: 'How to add money' }).count()).toBe(0);
      if (status !== 429) continue;
      // It can be pressed when the time is up, and not before.
      expect(await page.getByRole('button', { name: /^Again in 1 second/ }).isDisabled()).toBe(true);
      await page.getByRole('button', { name: 'Call again' }).click();
      await answer(visit).getByText('200 OK').waitFor();
    }
    // Only the list of calls knows how a call without an answer ended.
    await page.route('**/api/v1/proxy/**', (route) => route.abort(), { times: 1 });
    await page.getByRole('button', { name: 'Call $0.01' }).click();
    await answer(visit).getByText('The gateway did not answer.').waitFor();
    expect(await answer(visit).getByRole('link', { name: 'Console' }).getAttribute('href')).toBe('/console/calls');
    expect(visit.complaints.every((text) => text.startsWith('Failed to load resource'))).toBe(true);
    visit.complaints.length = 0;
    await end(visit);
  });

  it("draws the calls of its first days by hour, in the reader's language, and shows what the quality consists of", async () => {
    for (const path of ['greedy', 'greedy', 'fails']) {
      await web.market.request(`/api/v1/proxy/${ids.charted}/${path}`, { key: buyer });
    }
    await web.market.settled();
    const visit = await open(ids.charted);
    await visit.page.locator('.service-chart').last().scrollIntoViewIfNeeded();
    await visit.page.locator('.service-chart svg').nth(3).waitFor();
    expect(await visit.page.getByRole('table', { name: 'Calls by outcome' }).locator('tbody tr').count()).toBe(24);
    expect(await visit.page.getByText(/3 calls: /).textContent()).toBe(
      '3 calls: 2 succeeded, 1 failed, 0 were mistakes of callers.',
    );
    // Of the same calls as the sums.
    await visit.page.getByText('of 3 counted calls in 30 days').waitFor();
    // Who always takes the most is seen.
    const figures = await visit.page
      .locator('header')
      .filter({ has: visit.page.locator('h1') })
      .textContent();
    expect(figures).toContain('$0.01 up to $0.05 per callThe service reports what a call cost');
    expect(figures).toContain('Cost, median$0.05100% of calls priced by use cost the maximum');
    await visit.page.getByText('How it is computed').click();
    await visit.page.getByText('Nobody can buy the quality').waitFor();
    await visit.shot('service-charts');
    await end(visit);
    const japanese = await open(ids.charted, { language: 'ja' });
    // Screen readers get the numbers of a chart as a table.
    await japanese.page.locator('.service-chart th').filter({ hasText: '日付' }).first().waitFor({ state: 'attached' });
    await japanese.page.locator('.service-chart').first().scrollIntoViewIfNeeded();
    await japanese.page.locator('.service-chart svg').first().waitFor();
    await japanese.page.setViewportSize({ width: 390, height: 844 });
    await japanese.shot('service-charts-phone-ja');
    await end(japanese);
  });

  it('can be read on a phone, in dark mode, and without scripts', async () => {
    for (const dark of [false, true]) {
      const phone = await open(ids.free, { phone: true, dark });
      await phone.page.getByRole('button', { name: 'Open an account and call' }).waitFor();
      const width = await phone.page.evaluate('document.documentElement.scrollWidth');
      expect(width).toBe(390);
      // The gateway wrote the first view, answers of the API included: nothing is asked again, and nothing is there twice.
      expect(phone.requested.filter((url) => url.includes('/api/'))).toEqual([]);
      expect(await phone.page.locator('h1, .snippets, form.try').count()).toBe(3);
      await phone.shot(`service-phone${dark ? '-dark' : ''}`);
      await end(phone);
    }
    const page = await (await web.market.request(`/services/${ids.free}`, { headers: { Accept: 'text/html' } })).text();
    for (const part of [
      'Line one.\nLine two.',
      '/forecast/{day}',
      'curl -sS',
      'urllib.request',
      '100 free calls'.slice(4),
    ]) {
      expect(page).toContain(part);
    }
    expect(page).toContain('<meta property="og:title" content="Free Weather · Tollgate">');
    expect(page).not.toContain(XSS);
    expect(page).not.toMatch(/ style="/);
  });

  it('shows nothing that needs a script to visitors without scripts, and shows all programs with their names', async () => {
    const visit = await web.visit(`/services/${ids.free}`, { scripts: false });
    const { page } = visit;
    // Found by tag: for Playwright, the content of <noscript> has neither role nor text.
    expect(await page.locator('.snippets h3').allTextContents()).toEqual(['curl', 'JavaScript', 'Python', 'MCP']);
    expect(await page.locator('.try-waiting noscript').textContent()).toMatch(/^Trying a call here needs JavaScript/);
    for (const dead of ['.copy', '.tabs', '.service-choice', '.skeleton', 'a[href="#try"]']) {
      expect(await page.locator(`main ${dead}`).filter({ visible: true }).count(), dead).toBe(0);
    }
    await visit.close();
  });

  it('says in words that nothing is known about a service', async () => {
    const unrated = await open(ids.hostile);
    await unrated.page.locator('.service-quality-figure').getByText('Not rated').waitFor();
    await end(unrated);
  });

  it('explains how an MCP server is used, and can call it', async () => {
    const visit = await open(ids.mcp, { key: secret(buyer) });
    await visit.page.getByText(`/api/v1/proxy/${ids.mcp}"`).waitFor();
    await visit.page.getByRole('button', { name: 'Call $0.01' }).waitFor();
    await visit.page.getByRole('button', { name: 'tools/list' }).click();
    await visit.page.getByRole('button', { name: 'Call free' }).click();
    await answer(visit).getByText('200 OK').waitFor();
    await visit.shot('service-mcp');
    // The server has named a session; what follows belongs to it.
    const next = visit.page.waitForRequest(/\/proxy\//);
    await visit.page.getByRole('button', { name: 'Call free' }).click();
    expect((await next).headers()['mcp-session-id']).toBe('session-1');
    await end(visit);
  });
});
