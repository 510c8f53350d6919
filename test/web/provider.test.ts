// A provider's day in the console: list a service, try it, say how it is called, and follow its calls and its money.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import '../support/browser.ts';
import { bodyOf, type Key, startService, type TestService } from '../integration/marketplace.ts';
import { importWorker } from '../support/build.ts';
import { until } from '../support/wait.ts';
import { type Look, type Visit, WebMarket, WIDE_TABLES } from './web-market.ts';

const XSS = `<img src=x onerror="document.title='owned'">"><script>document.title='owned'</script>`;
const UPSTREAM_SECRET = 'wk-a-key-of-the-service-itself';

const DOCUMENT = {
  openapi: '3.1.0',
  info: { title: 'Weather', version: '1' },
  paths: {
    '/now/{city}': { get: { summary: `Weather now ${XSS}`.slice(0, 190), responses: { 200: { description: 'Now' } } } },
    '/forecast/{city}': {
      get: {
        summary: 'Seven days',
        'x-price': 0.001,
        'x-max-price': 0.0015,
        responses: { 200: { description: 'Later' } },
      },
    },
    '/{a}.{b}': { get: { responses: { 200: { description: 'No template' } } } },
  },
};

let web: WebMarket;
let service: TestService;
let provider: Key;
const received: string[] = [];

beforeAll(async () => {
  // Compiled here, because a page has 5 s for its answer.
  importWorker();
  const settings = {
    SECRETS_KEY: Buffer.alloc(32, 'a test key').toString('base64'),
    PRICE_NOTICE_SECONDS: '3600',
    OPERATOR_NAME: 'The operator',
  };
  [web, service] = await Promise.all([
    WebMarket.start(settings, { asksNewEndpoints: true }),
    startService(async (request, response) => {
      received.push(String(request.headers['x-weather-key']));
      const body = await bodyOf(request);
      response.statusCode = request.url?.includes('fail') ? 500 : 200;
      response.setHeader('Content-Type', 'text/html');
      response.end(`<h1>${XSS}</h1> ${request.method} ${request.url} ${body.toString()}`);
    }),
  ]);
  provider = await web.market.anotherProvider();
});
afterAll(async () => {
  await web?.stop();
  await service?.close();
});

const visitAs = (address: string, look: Look = {}): Promise<Visit> =>
  web.visit(address, { key: `${provider.key_id}:${provider.secret}`, ...look });

/** A buyer calls the service, so that changes of its prices are announced from now on. */
async function calledOnce(id: string, path: string): Promise<void> {
  const response = await web.market.request(`/api/v1/proxy/${id}${path}`, { key: await web.market.buyer(1) });
  expect(response.status).toBe(200);
  await web.market.settled();
}

/** No page ran what a stranger wrote, asked elsewhere, or put a key into an address. */
async function isClean(visit: Visit): Promise<void> {
  expect(visit.complaints).toEqual([]);
  expect(await visit.page.title()).not.toBe('owned');
  for (const address of visit.requested) {
    expect(address.startsWith(web.market.baseUrl) || address.startsWith('blob:')).toBe(true);
    expect(address).not.toContain('sk_');
  }
  expect(await visit.page.content()).not.toContain(UPSTREAM_SECRET);
}

/** The page in light, in dark and on a phone, as people see it and as axe-core judges it. */
async function looksGood(address: string, name: string, ready: (visit: Visit) => Promise<unknown>): Promise<void> {
  const visit = await visitAs(address);
  await ready(visit);
  expect(await visit.findings()).toEqual([]);
  await visit.shot(`provider-${name}`);
  await visit.page.emulateMedia({ colorScheme: 'dark' });
  expect(await visit.findings('colours')).toEqual([]);
  await visit.shot(`provider-${name}-dark`);
  await visit.page.setViewportSize({ width: 390, height: 844 });
  // Charts follow the width a moment later.
  await until(() => visit.page.evaluate('document.documentElement.scrollWidth <= 390'));
  expect(await visit.page.evaluate(WIDE_TABLES)).toEqual([]);
  await visit.shot(`provider-${name}-phone`);
  await isClean(visit);
  await visit.close();
}

const serviceId = (visit: Visit): string => new URL(visit.page.url()).pathname.split('/')[3] ?? '';

describe('a provider in a browser', () => {
  let id = '';

  it('sees the first steps, lists a service with the form, corrects what is wrong, and keeps the signing secret', async () => {
    const visit = await visitAs('/console');
    const { page } = visit;
    await page.getByRole('heading', { name: 'List your first service' }).waitFor();
    await visit.shot('provider-first-steps');
    expect(await visit.findings()).toEqual([]);
    await page.getByRole('link', { name: 'List a service' }).click();
    await page.getByRole('heading', { name: 'List a service' }).waitFor();
    await page.getByLabel('Name').fill(`Weather ${XSS}`.slice(0, 100));
    await page.getByLabel('Category').fill('Weather Now');
    await page.getByLabel('Description').fill(`Weather by city. ${XSS}`);
    await page.getByLabel('Documentation').fill('javascript:alert(1)');
    await page.getByLabel('Price in US dollars').fill('0.0020001');
    await page.getByLabel('Endpoint').fill(`${service.url}/v1?key=1`);
    await page.getByRole('button', { name: 'List it' }).click();
    await page.getByText('Must be lower-case words joined by hyphens').waitFor();
    await page.getByText('Must have at most 6 decimals.').waitFor();
    await page.getByText('Must not have a query.').waitFor();
    await page.getByText('Must be an absolute http or https URL.').waitFor();
    await visit.shot('provider-new-faults');
    expect(visit.requested.filter((address) => address.endsWith('/api/v1/services'))).toEqual([]);
    await page.getByLabel('Category').fill('weather');
    await page.getByLabel('Documentation').fill('https://weather.example/docs');
    await page.getByLabel('Price in US dollars').fill('0.002');
    await page.getByLabel('Maximum in US dollars').fill('0.001');
    await page.getByText('Must be at least the price.').waitFor();
    await page.getByLabel('Maximum in US dollars').fill('0.05');
    await page.getByText('Buyers see: $0.002 up to $0.05 per call. You earn $0.0018 to $0.045;').waitFor();
    await page.getByLabel('Maximum in US dollars').fill('');
    await page.getByText("Buyers see: $0.002 per call. You earn $0.0018; the platform's fee is 10%.").waitFor();
    await page.getByLabel('Endpoint').fill(`${service.url}/v1`);
    await page.getByLabel('Health path').fill('/fail');
    await page.getByText(`GET ${service.url}/v1/fail`).waitFor();
    await page.getByRole('button', { name: 'Add a header' }).click();
    await page.getByLabel('Header 1', { exact: true }).fill('X-ACF-Mine');
    await page.getByLabel('Value of header 1').fill(UPSTREAM_SECRET);
    await page.getByRole('button', { name: 'Add a parameter' }).click();
    await page.getByLabel('Parameter 1', { exact: true }).fill('api key');
    await page.getByLabel('Value of parameter 1').fill('wk-in-the-query');
    await page.getByLabel(/^Sign each call/).check();
    await page.getByRole('button', { name: 'List it' }).click();
    await page.getByText('X-ACF-Mine cannot be set').waitFor();
    await page.getByText('Each name must have 1 to 64 characters').waitFor();
    await page.getByLabel('Parameter 1', { exact: true }).fill('api_key');
    await page.getByLabel('Header 1', { exact: true }).fill('X-Weather-Key');
    await page.getByRole('button', { name: 'List it' }).click();
    const dialog = page.getByRole('dialog', { name: 'Keep this signing secret' });
    await dialog.waitFor();
    expect(await visit.findings()).toEqual([]);
    await visit.shot('provider-signing-secret');
    await dialog.getByRole('button', { name: 'I have kept it' }).click();
    await page.getByRole('heading', { name: 'State of the service' }).waitFor();
    id = serviceId(visit);
    expect(id).toMatch(/^[0-9a-f-]{36}$/);
    await page.getByText('x-weather-key: ••••••').waitFor();
    await page.getByText('api_key=••••••').waitFor();
    await page.getByText('Answers', { exact: true }).waitFor();
    await page.getByText('It answered 500. Only 2xx and 3xx mean that the service is up.').waitFor();
    await page.getByRole('button', { name: 'Check the endpoint again' }).click();
    await page.getByRole('button', { name: 'Checking…' }).waitFor({ state: 'detached' });
    await isClean(visit);
    await visit.close();
  });

  it("enters a profile, which cannot use the operator's name, and which buyers see as plain text on its services", async () => {
    const { id } = await web.market.json<{ id: string }>('/api/v1/services', {
      key: provider,
      method: 'POST',
      body: { name: 'Of a provider', description: '', category: 'weather', price: 0, endpoint: service.url },
    });
    const visit = await visitAs('/console/profile');
    const { page } = visit;
    await page.getByLabel('Display name').fill('Ac\u202eme');
    await page.getByLabel('Display name').blur();
    await page.getByText('Must not contain control characters').waitFor();
    await page.getByLabel('Display name').fill(' the OPERATOR ');
    await page.getByLabel('Contact').fill('help@weather.example');
    await page.getByLabel('Web page').fill('https://weather.example/us');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('Is the name of').waitFor();
    expect(await visit.findings()).toEqual([]);
    await page.getByLabel('Display name').fill(`Weather ${XSS}`.slice(0, 60));
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('Saved.').waitFor();
    await visit.close();
    await looksGood('/console/profile', 'profile', ({ page }) => page.getByLabel('Display name').waitFor());

    const buyer = await web.visit(`/services/${id}?lang=de`);
    await buyer.page.getByText(/\d+ Dienste?/).waitFor();
    await buyer.page.getByText(`Weather ${XSS}`.slice(0, 60), { exact: true }).waitFor();
    expect(await buyer.page.getByRole('link', { name: 'help@weather.example' }).getAttribute('href')).toBe(
      'mailto:help@weather.example',
    );
    expect(await buyer.findings()).toEqual([]);
    await buyer.shot('service-provider');
    await isClean(buyer);
    await buyer.close();
    const phone = await web.visit(`/services/${id}`, { phone: true });
    await phone.page.getByText('help@weather.example').waitFor();
    expect(await phone.page.evaluate('document.documentElement.scrollWidth <= 390')).toBe(true);
    await phone.shot('service-provider-phone');
    await phone.close();
    const catalog = await web.visit('/');
    await catalog.page.locator('bdi', { hasText: 'Weather' }).first().waitFor();
    await isClean(catalog);
    await catalog.shot('catalog-provider');
    await catalog.close();

    const operator = await web.visit(`/console/accounts/${provider.account_id}`, {
      key: `${web.market.admin.key_id}:${web.market.admin.secret}`,
    });
    await operator.page.getByText('Its listings say:').waitFor();
    expect(await operator.findings()).toEqual([]);
    await operator.shot('account-profile');
    await operator.page.getByRole('button', { name: 'Clear profile' }).click();
    await operator.page.getByRole('dialog').getByRole('button', { name: 'Clear profile' }).click();
    await operator.page.getByText('Its listings say:').waitFor({ state: 'detached' });
    await operator.close();
    const own = await web.market.json<object>('/api/v1/accounts/me', { key: provider });
    expect(own).toMatchObject({ display_name: null, contact: null, url: null });
    await web.market.request(`/api/v1/services/${id}`, { key: provider, method: 'DELETE' });
  });

  it('saves a service without listing it, so that no search finds it until it is listed', async () => {
    const visit = await visitAs('/console/services/new');
    const { page } = visit;
    await page.getByLabel('Name').fill('Draft of a service');
    await page.getByLabel('Category').fill('weather');
    await page.getByLabel('Price in US dollars').fill('0');
    await page.getByLabel('Endpoint').fill(`${service.url}/v1`);
    await page.getByRole('button', { name: 'Save without listing' }).click();
    await page.getByText('Not listed', { exact: true }).waitFor();
    const isFound = async (): Promise<boolean> =>
      (await web.market.request(`/api/v1/discover/${serviceId(visit)}`)).status === 200;
    expect(await isFound()).toBe(false);
    // A held Enter lists it, and does not go on to ask whether to pause it.
    await page.getByRole('button', { name: 'List it' }).focus();
    await page.keyboard.down('Enter');
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    await page.keyboard.down('Enter');
    await page.keyboard.up('Enter');
    await visit.drawn();
    expect(await page.getByRole('dialog').count()).toBe(0);
    expect(await isFound()).toBe(true);

    // The button that asked would list the service again.
    await page.keyboard.press('Enter');
    await expect.poll(() => visit.focused()).toBe('button Cancel');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByText('Not listed', { exact: true }).waitFor();
    await expect.poll(() => visit.focused()).toBe('h1 Draft of a service');
    expect(await isFound()).toBe(false);
    await web.market.request(`/api/v1/services/${serviceId(visit)}`, { key: provider, method: 'DELETE' });
    await visit.close();
  });

  it('sees at a field what the gateway refuses in that field', async () => {
    const visit = await visitAs(`/console/services/${id}`);
    const { page } = visit;
    await page.getByLabel('Endpoint', { exact: true }).fill('http://10.9.8.7/v1');
    await page.getByText(/This is another server/).waitFor();
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('Must be on the public internet; this address is not.').waitFor();
    await until(() => page.evaluate("document.activeElement.name === 'endpoint'"));
    await page.getByRole('button', { name: 'Discard' }).click();
    // The browser tells of the 400; nothing else may have gone wrong.
    expect(visit.complaints.filter((text) => !text.includes('400'))).toEqual([]);
    await visit.close();
  });

  it('still sees the page heading and navigation while the gateway does not answer', async () => {
    const visit = await visitAs(`/console/services/${id}`);
    const { page } = visit;
    await page.getByRole('heading', { name: 'State of the service' }).waitFor();
    await page.route('**/api/v1/services/**', (route) => route.abort());
    await page.getByRole('link', { name: 'Operations' }).click();
    await page.getByText('The gateway did not answer').waitFor();
    // No page with statistics: those are kept for a while, and no call was made yet.
    await page.getByRole('link', { name: 'Listing', exact: true }).click();
    await page.waitForURL(new RegExp(`${id}$`));
    await page.getByText('The gateway did not answer').waitFor();
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toMatch(/^Weather/);
    await page.unroute('**/api/v1/services/**');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'State of the service' }).waitFor();
    expect(visit.complaints.filter((text) => !text.includes('ERR_FAILED'))).toEqual([]);
    await visit.close();
  });

  it('makes a free test call, whose answer is shown as text', async () => {
    const visit = await visitAs(`/console/services/${id}`);
    const { page } = visit;
    await page.getByLabel('Path', { exact: true }).fill('/now/{city}');
    await page.getByText('Put a value in place of {city}.').waitFor();
    await page.getByLabel('Path', { exact: true }).fill('/../../keys');
    await page.getByText('Must stay below the service.').waitFor();
    await page.getByLabel('Method').selectOption('POST');
    await page.getByLabel('Path', { exact: true }).fill('/now/rome?units=c');
    await page.getByText('Headers and body').click();
    await page.getByLabel('Headers', { exact: true }).fill('no header');
    await page.getByText(/is not a header/).waitFor();
    await page.getByLabel('Headers', { exact: true }).fill('Content-Type: text/plain');
    await page.getByLabel('Body', { exact: true }).fill('hello');
    await page.getByRole('button', { name: 'Make the call' }).click();
    await page.getByText('200 OK').waitFor();
    const answer = page.getByRole('region', { name: 'Body of the answer' });
    // The service writes its own URL into its answer, and bodies pass as they are.
    const url = '/v1/now/rome?units=c&api_key=wk-in-the-query';
    expect(await answer.textContent()).toContain(`<h1>${XSS}</h1> POST ${url} hello`);
    expect(received).toContain(UPSTREAM_SECRET);
    expect(await visit.findings()).toEqual([]);
    await visit.shot('provider-test-call');
    await web.market.settled();
    await page.getByRole('link', { name: 'This call' }).click();
    await page.getByText('Buyer paid').waitFor();
    await isClean(visit);
    await visit.close();
  });

  it('imports an OpenAPI document after a preview that changes nothing', async () => {
    const visit = await visitAs(`/console/services/${id}/operations`);
    const { page } = visit;
    await page.getByRole('button', { name: 'Import OpenAPI' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Or paste it here').fill('{"openapi": ');
    await dialog.getByText(/Not valid JSON yet/).waitFor();
    await dialog.getByLabel('Or paste it here').fill('openapi: 3.1.0');
    await dialog.getByText(/Not valid JSON yet/).waitFor({ state: 'detached' });
    // As YAML, because of its first line.
    const buffer = Buffer.from(`# Weather\n${JSON.stringify(DOCUMENT)}`);
    const file = { name: 'openapi.yaml', mimeType: 'application/yaml', buffer };
    await dialog.getByLabel('File').setInputFiles(file);
    // Once the file has been read.
    const preview = dialog.getByRole('button', { name: 'Preview', disabled: false });
    await preview.waitFor();
    await preview.press('Enter');
    await dialog.getByText('2 operations').waitFor();
    // Whoever presses Enter once more has not seen it yet.
    await expect.poll(() => visit.focused()).toContain('2 operations');
    await dialog.getByText('Not imported (1)').waitFor();
    await dialog.getByText('$0.001 up to $0.0015').waitFor();
    expect(await operationsOf()).toBe(0);
    expect(await visit.findings()).toEqual([]);
    await visit.shot('provider-import-preview');
    await dialog.getByRole('button', { name: 'Import', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByText('GET /forecast/{city}').waitFor();
    expect(await operationsOf()).toBe(2);
    await isClean(visit);
    await visit.close();
  });

  const operationsOf = async (): Promise<number> =>
    (await web.market.json<{ operations: object[] }>(`/api/v1/services/${id}`)).operations.length;

  it('edits an operation, whose schemas are checked during typing', async () => {
    const visit = await visitAs(`/console/services/${id}/operations`);
    const { page } = visit;
    await page.getByRole('button', { name: 'Add an operation' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Path').fill('/now/{city}');
    await dialog.getByRole('button', { name: 'Add operation' }).click();
    await until(() => page.evaluate("document.activeElement.name === 'summary'"));
    await dialog.getByLabel('Summary').fill('Again');
    await dialog.getByRole('button', { name: 'Add operation' }).click();
    await dialog.getByText('There is such an operation already.').waitFor();
    await dialog.getByLabel('Path').fill('/alerts/{city');
    await dialog.getByText('Schemas and example').click();
    await dialog.getByLabel('JSON Schema of the request').fill('{"type": ');
    await dialog.getByText(/Not valid JSON yet/).waitFor();
    await dialog.getByText(/Must consist of literal segments/).waitFor();
    await dialog.getByLabel('Path').fill('/alerts/{city}');
    await dialog.getByLabel('JSON Schema of the request').fill('{"type": "object"}');
    expect(await visit.findings()).toEqual([]);
    await visit.shot('provider-operation');
    await dialog.getByRole('button', { name: 'Add operation' }).click();
    await page.getByText('Not saved yet.').waitFor();
    await page.getByRole('button', { name: 'Save operations' }).click();
    await page.getByText('Not saved yet.').waitFor({ state: 'detached' });
    expect(await operationsOf()).toBe(3);
    await isClean(visit);
    await visit.close();
  });

  it('learns of the notice period before a higher price is saved, and afterwards when that price applies', async () => {
    await calledOnce(id, '/now/rome');
    const visit = await visitAs(`/console/services/${id}`);
    const { page } = visit;
    await page.getByLabel('Price in US dollars').fill('0.003');
    await page.getByText('1 hour after you save').waitFor();
    await visit.shot('provider-price-rises');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('Announced:').waitFor();
    // The button cannot be pressed again.
    await until(() => page.evaluate("document.activeElement.matches('.listing-form *')"));
    expect(await web.market.json(`/api/v1/services/${id}`)).toMatchObject({
      price: 0.002,
      next_price: { price: 0.003 },
    });
    expect(await page.getByLabel('Price in US dollars').inputValue()).toBe('0.003');
    expect(await visit.findings()).toEqual([]);
    await visit.shot('provider-price-announced');
    await isClean(visit);
    await visit.close();
  });

  it('is asked before leaving unsaved changes: with a link, with the back button, and with a reload', async () => {
    const visit = await visitAs('/console/services');
    const { page } = visit;
    const asked = page.getByRole('dialog', { name: 'Leave without saving?' });
    await page
      .getByRole('table', { name: 'Your services' })
      .getByRole('link', { name: /^Weather/ })
      .click();
    const description = page.getByLabel('Description');
    await description.click();
    await description.fill('Not saved');
    await page.getByRole('link', { name: 'Operations' }).click();
    await asked.getByRole('button', { name: 'Stay' }).click();
    expect(await description.inputValue()).toBe('Not saved');
    await page.evaluate('history.back()');
    await asked.waitFor();
    await page.keyboard.press('Escape');
    await asked.waitFor({ state: 'detached' });
    expect(serviceId(visit)).toBe(id);
    expect(await description.inputValue()).toBe('Not saved');
    const dialog = page.waitForEvent('dialog');
    void page.evaluate('location.reload()').catch(() => {});
    expect((await dialog).type()).toBe('beforeunload');
    await (await dialog).dismiss();
    expect(await visit.findings()).toEqual([]);
    await page.evaluate('history.back()');
    await asked.getByRole('button', { name: 'Leave', exact: true }).click();
    await page.getByRole('heading', { name: 'Services' }).waitFor();
    await page
      .getByRole('table', { name: 'Your services' })
      .getByRole('link', { name: /^Weather/ })
      .click();
    await page.getByRole('link', { name: 'Operations' }).click();
    await page.getByText('GET /forecast/{city}').waitFor();
    await isClean(visit);
    await visit.close();
  });

  it('sees announced operations as they will be, and keeps them through a further change', async () => {
    const made = await web.market.json<{ id: string }>('/api/v1/services', {
      key: provider,
      method: 'POST',
      body: {
        name: 'Two ways',
        description: 'Two ways.',
        category: 'tools',
        endpoint: service.url,
        price: 0.002,
        operations: [{ method: 'GET', path: '/a', summary: 'One' }],
      },
    });
    await calledOnce(made.id, '/a');
    const visit = await visitAs(`/console/services/${made.id}/operations`);
    const { page } = visit;
    const priceOf = (name: string) => page.getByRole('row').filter({ hasText: name }).locator('.price-lines');
    await page.getByRole('button', { name: 'Edit GET /a' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Price in US dollars').fill('0,005');
    await page.keyboard.press('Escape');
    await dialog.getByRole('button', { name: 'Go on typing' }).click();
    await dialog.getByRole('button', { name: 'Change operation' }).click();
    await dialog.getByText('Must have a point in place of the comma: 0.005.').waitFor();
    await dialog.getByLabel('Price in US dollars').fill('0.005');
    await dialog.getByRole('button', { name: 'Change operation' }).click();
    // The gateway would refuse this, so the page does not offer it.
    await page.getByText('GET /a costs more than the listing.').waitFor();
    expect(await page.getByRole('button', { name: 'Save operations' }).isDisabled()).toBe(true);
    await page.getByRole('button', { name: 'Refuse calls that match no operation' }).click();
    await page.getByText('1 hour after you save').waitFor();
    await page.getByRole('button', { name: 'Save operations' }).click();
    await page
      .getByText(/Announced:.*GET \/a for \$0\.005 instead of \$0\.002, calls that match no operation are refused/)
      .waitFor();
    expect(await priceOf('GET /a').textContent()).toBe('$0.005now $0.002');
    await page.getByRole('button', { name: 'Add an operation' }).click();
    await dialog.getByLabel('Path').fill('/b');
    await dialog.getByLabel('Summary').fill('Two');
    await dialog.getByRole('button', { name: 'Add operation' }).click();
    await page.getByRole('button', { name: 'Save operations' }).click();
    await page.getByText('Not saved yet.').waitFor({ state: 'detached' });
    const { next_price: next } = await web.market.json<{ next_price: { operations: object[] } }>(
      `/api/v1/services/${made.id}`,
    );
    expect(next.operations).toMatchObject([{ path: '/a', price: 0.005 }, { path: '/b' }]);
    expect(await priceOf('GET /b').textContent()).toContain('not yet');
    await isClean(visit);
    await visit.shot('provider-operations-announced');
    await visit.close();
  });

  it('sees the calls of a buyer, failed calls, the quality, and what was earned and paid out', async () => {
    const buyer = await web.market.buyer(1);
    const paths = ['/now/oslo', '/forecast/rome', '/now/fail', `/now/${encodeURIComponent(XSS)}`, '/fail'];
    for (const path of paths) await web.market.request(`/api/v1/proxy/${id}${path}`, { key: buyer });
    await web.market.usage(buyer, paths.length);
    const owed = await until(async () => {
      const earnings = await web.market.json<{ payable: number }>('/api/v1/earnings/me', { key: provider });
      return earnings.payable > 0 ? earnings : null;
    });
    const body = { account_id: provider.account_id, amount: 0.001, reference: `payout ${XSS}`.slice(0, 200) };
    await web.market.json('/api/v1/admin/payouts', { key: web.market.admin, method: 'POST', body });

    await looksGood('/console', 'overview', async ({ page }) => {
      await page.getByText('Payable now').waitFor();
      const periods = page.getByRole('table', { name: /by period/ });
      await periods.getByRole('cell', { name: '7', exact: true }).first().waitFor();
    });
    expect(owed.payable).toBeGreaterThan(0.001);
  });

  it.each<[page: string, of: () => string, ready: (visit: Visit) => Promise<unknown>]>([
    [
      'calls',
      () => `services/${id}/calls`,
      async ({ page }) => {
        await page.getByText('Failed 500').first().waitFor();
        await page.locator('.chart-plot svg').waitFor();
      },
    ],
    ['quality', () => `services/${id}/quality`, ({ page }) => page.locator('.chart-plot svg').waitFor()],
    ['earnings', () => 'earnings', ({ page }) => page.getByText('$0.001', { exact: true }).first().waitFor()],
    ['listing', () => `services/${id}`, ({ page }) => page.getByText('State of the service').waitFor()],
    ['operations', () => `services/${id}/operations`, ({ page }) => page.getByText('Seven days').waitFor()],
    ['services', () => 'services', ({ page }) => page.getByText('$0.002 per call').first().waitFor()],
  ])('can read the page of %s in light mode, in dark mode and on a phone', async (name, of, ready) => {
    await looksGood(`/console/${of()}`, name, ready);
  });

  it('refunds a call in part; an operator refunds the rest, which the platform pays, and the buyer sees both', async () => {
    const { market } = web;
    const buyer = await market.buyer(1);
    await market.request(`/api/v1/proxy/${id}/now/bern`, { key: buyer });
    const [call] = await market.usage(buyer, 1).then(({ records }) => records);
    const visit = await visitAs(`/console/services/${id}/calls`);
    const { page } = visit;
    await page
      .getByRole('row', { name: /now\/bern/ })
      .getByRole('link')
      .first()
      .click();
    await page.waitForURL(`**/console/calls/${call?.usage_id}`);
    await page.getByRole('button', { name: 'Give this call back' }).click();
    await page.getByRole('button', { name: /^Give back \$/ }).click();
    await page.getByText('Say why: the buyer reads it.').waitFor();
    await page.getByLabel('Amount in US dollars').fill('9');
    await page.getByText('Must be at most $0.002').waitFor();
    await page.getByLabel('Amount in US dollars').fill('0.0005');
    await page.getByLabel('Reason').fill(`Half of it was wrong ${XSS}`);
    await page.getByText('out of your earnings').last().waitFor();
    expect(await visit.findings()).toEqual([]);
    await visit.shot('provider-give-back');
    await page.getByRole('button', { name: 'Give back $0.0005' }).click();
    await page.getByText('$0.0005 was given back.').waitFor();
    await page.getByText('Given back in part').waitFor();
    await page.getByText('$0.0015 is left of it.').waitFor();
    await page.getByRole('link', { name: 'Statement' }).click();
    await page.getByText(/^Call given back:/).waitFor();
    await page.getByText('Fee given back: call').waitFor();
    expect(await visit.findings()).toEqual([]);
    await visit.shot('provider-statement-refund');
    await page
      .getByText(/^Call given back:/)
      .getByRole('link')
      .first()
      .click();
    await page.waitForURL(`**/console/calls/${call?.usage_id}`);
    await isClean(visit);
    await visit.close();

    const { payable } = await market.json<{ payable: number }>('/api/v1/earnings/me', { key: provider });
    const body = { account_id: provider.account_id, amount: payable, reference: 'all of it' };
    await market.json('/api/v1/admin/payouts', { key: market.admin, method: 'POST', body });
    const operator = await web.visit(`/console/calls/${call?.usage_id}`, {
      key: `${market.admin.key_id}:${market.admin.secret}`,
    });
    await operator.page.getByRole('button', { name: 'Give this call back' }).click();
    expect(await operator.page.getByLabel('Reference').inputValue()).toBe(`call ${call?.usage_id} no. 2`);
    await operator.page.getByLabel('Reason').fill('The rest, too');
    await operator.page.getByText(/^The platform pays \$0\.00/).waitFor();
    expect(await operator.findings()).toEqual([]);
    await operator.shot('admin-platform-pays');
    await operator.page.getByRole('button', { name: 'Give back $0.0015' }).click();
    await operator.page.getByText(/\$0\.0015 was given back\. The platform pays \$0\.00/).waitFor();
    // The statement of somebody who has earned is that of the earnings.
    await operator.page.goto(`${market.baseUrl}/console/accounts/${provider.account_id}?tab=statement`);
    await operator.page.getByText('Fee given back: call').first().waitFor();
    expect(operator.complaints).toEqual([]);
    await operator.close();

    const key = `${buyer.key_id}:${buyer.secret}`;
    for (const look of [{}, { dark: true, phone: true }]) {
      const bought = await web.visit(`/console/calls/${call?.usage_id}`, { key, ...look });
      await bought.page.getByText('of it was given back to you, so the call cost').waitFor();
      expect(await bought.page.getByRole('table', { name: 'Given back' }).getByRole('row').count()).toBe(3);
      expect(await bought.page.getByText('Not what you paid for?').count()).toBe(0);
      expect(await bought.findings()).toEqual([]);
      await bought.shot(`buyer-call-came-back${'dark' in look ? '-dark-phone' : ''}`);
      await isClean(bought);
      await bought.close();
    }
    await looksGood(`/console/calls/${call?.usage_id}`, 'call', ({ page: its }) =>
      its.getByText('All of it was given back.').waitFor(),
    );
    await looksGood('/console/earnings', 'earnings-overdrawn', ({ page: its }) =>
      its.getByText('The platform gave back more than was payable to you').waitFor(),
    );
    await looksGood(`/console/services/${id}/calls`, 'calls-given-back', ({ page: its }) =>
      its.getByText('of the price given back').waitFor(),
    );
  });

  it('filters calls by an outcome that is kept in the address, and saves the calls as CSV', async () => {
    const visit = await visitAs(`/console/services/${id}/calls`);
    const { page } = visit;
    const rows = page.getByRole('table', { name: 'Calls of' }).locator('tbody tr');
    await page.getByText('Failed 500').first().waitFor();
    expect(await rows.count()).toBe(7);
    await page.getByLabel('Outcome').selectOption('failed');
    await page.waitForURL(/outcome=failed/);
    // Two of them failed, and one was given back whole.
    await until(async () => (await rows.count()) === 3);
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Export CSV' }).click();
    expect((await download).suggestedFilename()).toContain(`calls-${id}`);
    await isClean(visit);
    await visit.close();
  });

  it('blocks a buyer after a confirmation, and lifts the block', async () => {
    const visit = await visitAs(`/console/services/${id}/calls`);
    const { page } = visit;
    const blocked = async (): Promise<number> =>
      (await web.market.json<{ blocked_buyers: string[] }>(`/api/v1/services/${id}`, { key: web.market.admin }))
        .blocked_buyers.length;
    await page
      .getByRole('button', { name: /^Block buyer/ })
      .first()
      .click();
    await page.getByRole('dialog').getByRole('button', { name: 'Block buyer' }).click();
    await page.getByRole('heading', { name: 'Blocked buyers' }).waitFor();
    expect(await blocked()).toBe(1);
    await visit.shot('provider-blocked-buyers');
    await page.getByRole('button', { name: /^Unblock buyer/ }).click();
    await page.getByRole('heading', { name: 'Blocked buyers' }).waitFor({ state: 'detached' });
    expect(await blocked()).toBe(0);
    await isClean(visit);
    await visit.close();
  });

  it('pauses and permanently removes a service after a confirmation, and resumes a paused service', async () => {
    const visit = await visitAs(`/console/services/${id}`);
    const { page } = visit;
    const status = async (): Promise<number> => (await web.market.request(`/api/v1/discover/${id}`)).status;
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Pause service' }).click();
    await page.getByText('Not listed', { exact: true }).waitFor();
    expect(await status()).toBe(404);
    await page.getByRole('button', { name: 'List it' }).click();
    await page.getByText('Listed', { exact: true }).waitFor();
    expect(await status()).toBe(200);
    await page.getByRole('button', { name: 'New signing secret' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Make a new secret' }).click();
    await page
      .getByRole('dialog', { name: 'Keep this signing secret' })
      .getByRole('button', { name: 'I have kept it' })
      .click();
    await page.getByRole('button', { name: 'Remove', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: /^Remove Weather/ });
    await visit.shot('provider-remove');
    await dialog.getByRole('button', { name: 'Remove service' }).click();
    await page.getByRole('table', { name: 'Your services' }).waitFor();
    expect(await page.getByRole('link', { name: /^Weather/ }).count()).toBe(0);
    expect(await status()).toBe(404);
    await page.goto(`/console/services/${id}`);
    await page.getByText(/removed for good/).waitFor();
    await page.getByRole('link', { name: 'Calls and errors' }).click();
    await page.getByText('Failed 500').first().waitFor();
    await isClean(visit);
    await visit.close();
  });
});
