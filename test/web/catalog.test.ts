import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import '../support/browser.ts';
import { echo, startService, type TestService } from '../integration/marketplace.ts';
import { until } from '../support/wait.ts';
import { type Visit, WebMarket } from './web-market.ts';

const HOSTILE = '<img src=x onerror=alert(1)>';

let web: WebMarket;
let service: TestService;

beforeAll(async () => {
  [web, service] = await Promise.all([WebMarket.start({ PRICE_NOTICE_SECONDS: '86400' }), startService(echo)]);
  const { market } = web;
  const add = (name: string, fields: object) => market.service({ endpoint: service.url, name, ...fields });
  const weather = await add('Weather', { price: 0.002, free_calls: 100, category: 'data', description: 'Forecasts' });
  await add('Translate', { price: 0.01, category: 'language', description: 'Between thirty languages. '.repeat(20) });
  await add(HOSTILE, { category: 'testing', description: `"><script>alert(2)</script>${HOSTILE}` });
  await add('خدمة الطقس', { price: 1, category: 'data-ar', description: 'توقعات الطقس (API) لكل مدينة' });
  await add('Free Echo', { price: 0, category: 'tools' });
  for (let i = 0; i < 23; i++) await add(`Number ${i}`, { price: 1, category: 'many' });
  // The price of a listing that nobody has called would change at once.
  await market.request(weather, { key: await market.buyer(1) });
  const body = { price: 0.004 };
  const id = weather.split('/').at(-1) as string;
  await market.json(`/api/v1/services/${id}`, { key: market.provider, method: 'PATCH', body });
  // The sums of calls of twelve buyers, who fared better lately: so the job finds about the same quality whenever it looks.
  await market.stores.sql`
    INSERT INTO key_hours (key_id, hour, service_id, account_id, calls, completed, free_calls, succeeded, failed, spent,
                           latency_sum_us, latency_count, succeeded_us, first_call_at, last_call_at)
    SELECT 'key ' || n, date_trunc('hour', now()) - days * interval '1 day', ${id}, md5('buyer ' || n)::uuid, 100, 100 - days * 5, 0,
           100 - days * 5, days * 5, 0, 2000000, 100, 20000 * (100 - days * 5), now(), now()
    FROM generate_series(1, 12) n, (VALUES (0), (8)) AS t (days)`;
  await market.stores.sql`
    INSERT INTO service_quality (service_id, quality, trend, lower_bound, evidence, success_rate, latency_us, buyers, calls,
                                 calls_succeeded, changed_at, computed_at)
    VALUES (${id}, 83.4, 2.5, 80, 20, 1, 20000, 13, 2400, 0.8, now(), now())`;
  // The gateway looks for new qualities each ten seconds.
  await until(async () => {
    const { services } = await market.json<{ services: { quality: number }[] }>('/api/v1/discover?q=weather');
    return (services[0]?.quality ?? 50) > 60;
  }, 15_000);
});
afterAll(async () => {
  await web?.stop();
  await service?.close();
});

const cards = ({ page }: Visit) => page.locator('.service-card h2').allTextContents();
const first = (visit: Visit, name: string) => until(async () => (await cards(visit))[0] === name);
const status = ({ page }: Visit) => page.getByRole('status').first();
const searchbox = ({ page }: Visit) => page.getByRole('searchbox');

describe('the catalog in a browser', () => {
  it('finds a service while the user types, and keeps the search in the address', async () => {
    const visit = await web.visit('/');
    const { page } = visit;
    await searchbox(visit).fill('weath');
    await page.waitForURL(/\?q=weath$/);
    await page.getByText('1 service', { exact: true }).waitFor();
    const card = page.locator('.service-card');
    expect(await card.textContent()).toContain('$0.002 per call100 free calls$0.004 from ');
    expect(await card.locator('.quality').getAttribute('title')).toMatch(
      /^Quality \d\d\.\d of 100 · Up \d+\.\d in seven days$/,
    );
    expect(await card.locator('.track-record').textContent()).toMatch(/^80% of 2,400 calls · 13 buyers · \d\d ms$/);
    await visit.shot('catalog-search');
    await page.getByRole('link', { name: 'Weather' }).click();
    await page.waitForURL(/\/services\//);
    await page.goBack();
    await page.getByText('1 service', { exact: true }).waitFor();
    expect(await searchbox(visit).inputValue()).toBe('weath');
    expect(visit.complaints).toEqual([]);
    await visit.close();
  });

  it('never shows the answer to an older search, however late that answer comes', async () => {
    const visit = await web.visit('/');
    const { page } = visit;
    let release = (): void => {};
    const late = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route(/discover\?.*q=tran/, async (route) => {
      await late;
      await route.continue().catch(() => {});
    });
    await searchbox(visit).fill('tran');
    await page.waitForRequest(/q=tran/);
    await searchbox(visit).fill('weather');
    await page.getByText('1 service', { exact: true }).waitFor();
    expect(await cards(visit)).toEqual(['Weather']);
    release();
    await page.evaluate('fetch("/api/v1/discover?q=nothing")');
    expect(await cards(visit)).toEqual(['Weather']);
    await visit.close();
  });

  it('writes the texts of sellers in the direction of their language', async () => {
    const visit = await web.visit('/?category=data-ar');
    const { page } = visit;
    const directionOf = (selector: string) =>
      page.evaluate<string>(`getComputedStyle(document.querySelector('${selector}')).direction`);
    for (const selector of ['.service-card-link', '.service-card-text'])
      expect(await directionOf(selector)).toBe('rtl');
    expect(await directionOf('.service-card')).toBe('ltr');
    await visit.shot('catalog-arabic');
    await page.locator('.service-card-link').click();
    await page.waitForURL(/\/services\//);
    await page.locator('.service-description').waitFor();
    for (const selector of ['h1', '.service-description']) expect(await directionOf(selector)).toBe('rtl');
    expect(await visit.findings()).toEqual([]);
    await visit.shot('service-arabic');
    await visit.close();
  });

  it('can be used by keyboard: a slash searches, the space of the next word stays, Escape clears', async () => {
    const visit = await web.visit('/');
    const { page } = visit;
    const sell = page.getByRole('link', { name: 'Sell your API' });
    expect(await sell.getAttribute('href')).toBe('/console/services/new');
    expect(await page.locator('.hero-sell').textContent()).toMatch(/millionth of a dollar/);
    await page.getByRole('link', { name: 'Browse services' }).focus();
    await page.keyboard.press('/');
    await page.keyboard.type('thirty ');
    await page.waitForURL(/\?q=thirty$/);
    await page.getByText('1 service', { exact: true }).waitFor();
    await page.keyboard.type('lang');
    await page.waitForURL(/\?q=thirty\+lang$/);
    expect(await searchbox(visit).inputValue()).toBe('thirty lang');
    await page.keyboard.press('Escape');
    await page.waitForURL((url) => url.search === '');
    await expect.poll(() => searchbox(visit).inputValue()).toBe('');
    await page.keyboard.press('Escape');
    expect(await page.evaluate('document.activeElement.tagName')).toBe('BODY');
    expect(visit.complaints).toEqual([]);
    await visit.close();
  });

  it('filters and sorts by address, goes back through choices, and says when nothing matches', async () => {
    const visit = await web.visit('/');
    const { page } = visit;
    await page.getByLabel('Category').selectOption('data');
    await page.getByText('1 service', { exact: true }).waitFor();
    await page.getByLabel('Category').selectOption('language');
    await first(visit, 'Translate');
    await page.getByLabel('Free to try').check();
    await page.getByText('No service matches').waitFor();
    await page.getByRole('navigation', { name: 'All categories' }).getByRole('link', { name: 'many 23' }).waitFor();
    expect(await visit.findings()).toEqual([]);
    await visit.shot('catalog-empty');
    await page.goBack();
    await page.goBack();
    await first(visit, 'Weather');
    expect(await page.getByLabel('Category').inputValue()).toBe('data');
    await page.getByRole('link', { name: 'Clear filters' }).click();
    await page.getByText('28 services', { exact: true }).waitFor();
    await expect.poll(() => visit.focused()).toMatch(/^select Best quality/);
    await page.getByLabel('Sort by').selectOption('name');
    await first(visit, HOSTILE);
    expect(visit.complaints).toEqual([]);
    await visit.close();
  });

  it('appends further results below, and drops them at the next search', async () => {
    const visit = await web.visit('/?sort=name');
    const { page } = visit;
    expect(await cards(visit)).toHaveLength(24);
    await page.getByRole('link', { name: 'More services' }).click();
    await until(async () => (await cards(visit)).length === 28);
    expect(new Set(await cards(visit)).size).toBe(28);
    expect(await page.getByRole('link', { name: 'More services' }).count()).toBe(0);
    await page.getByLabel('Highest price').selectOption('0.01');
    await page.getByText('4 services', { exact: true }).waitFor();
    expect(await cards(visit)).toHaveLength(4);
    await visit.close();
  });

  it('keeps its results when a search fails, says why, and continues by itself when it may', async () => {
    const visit = await web.visit('/');
    const { page } = visit;
    const refusal = { error: 'rate_limited', message: 'Rate limit exceeded.', status: 429 };
    await page.route(
      /discover\?.*q=weather/,
      (route) => route.fulfill({ status: 429, headers: { 'Retry-After': '1' }, json: refusal }),
      { times: 1 },
    );
    await searchbox(visit).fill('weather');
    await page.getByRole('alert').getByText('goes on in 1 second.').waitFor();
    expect(await cards(visit)).toHaveLength(24);
    expect(await visit.findings()).toEqual([]);
    await visit.shot('catalog-refused');
    await page.getByText('1 service', { exact: true }).waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
    await page.route(/discover\?.*q=echo/, (route) => route.abort(), { times: 1 });
    await searchbox(visit).fill('echo');
    await page.getByText('No answer came.').waitFor();
    await page.getByRole('button', { name: 'Try again' }).click();
    await first(visit, 'Free Echo');
    await visit.close();
  });

  it('explains an invalid parameter in the page, and the next search works', async () => {
    const visit = await web.visit('/?min_quality=abc');
    await visit.page.getByText('This search cannot be understood. min_quality').waitFor();
    await visit.page.getByLabel('Lowest quality').selectOption('60');
    await visit.page.getByText('1 service', { exact: true }).waitFor();
    expect(await visit.page.getByRole('alert').count()).toBe(0);
    await visit.close();
  });

  it.each([
    [404, 'is another version that has replaced the files, and opens', 1],
    [503, 'fails for another reason, and is not loaded again', 0],
  ])('a page whose file is %i %s', async (status, _, loads) => {
    const visit = await web.visit('/?q=weather');
    const asked = (part: string) => visit.requested.filter((url) => url.includes(part)).length;
    let isReplaced = true;
    await visit.page.route('**/assets/{main,service-page}-*.js', (route) =>
      isReplaced ? route.fulfill({ status }) : route.continue(),
    );
    let loaded = 0;
    await visit.page.route('**/services/*', (route) => {
      if (route.request().isNavigationRequest()) {
        loaded++;
        isReplaced = false;
      }
      return route.continue();
    });
    await visit.page.locator('.service-card-link').first().click();
    // It asks whether its own file is still there.
    await until(() => asked('/assets/main-') >= 2);
    await until(() => loaded >= loads);
    if (loads > 0) await visit.page.getByRole('heading', { name: 'Call it' }).waitFor();
    else await visit.page.getByText('A part of this page did not arrive.').waitFor();
    expect(loaded).toBe(loads);
    await visit.close();
  });

  it('uses the language of the browser, and changes the language with a link that keeps the search', async () => {
    const visit = await web.visit('/?q=weather', { language: 'de-AT' });
    const { page } = visit;
    await page.getByText('1 Dienst', { exact: true }).waitFor();
    expect(await page.locator('.service-card-foot').textContent()).toMatch(
      /^0,002\s\$ pro Aufruf100 kostenlose Aufrufe/,
    );
    await page.getByRole('link', { name: '日本語' }).click();
    await page.waitForURL(/lang=ja/);
    await page.getByText('1 件のサービス', { exact: true }).waitFor();
    expect(await page.evaluate('document.documentElement.lang')).toBe('ja');
    // Everything that follows stays in that language.
    await searchbox(visit).fill('');
    await page.getByText('28 件のサービス', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Weather' }).click();
    await page.waitForURL(/\/services\/.*lang=ja/);
    expect(visit.complaints).toEqual([]);
    await visit.close();
  });

  it.each([
    ['light', {}],
    ['dark', { dark: true }],
    ['phone', { phone: true, language: 'fr' }],
    ['phone-dark', { phone: true, dark: true, language: 'zh-TW' }],
  ])('is readable and accessible: %s', async (name, look) => {
    const visit = await web.visit('/', look);
    const { page } = visit;
    await until(async () => (await cards(visit)).length === 24);
    expect(await visit.findings()).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
    // Services are to be seen without scrolling.
    expect((await page.locator('.service-card').first().boundingBox())?.y).toBeLessThan(620);
    if ('phone' in look) {
      const filters = page.locator('.filters-toggle');
      expect(await page.locator('#filters').isVisible()).toBe(false);
      await filters.click();
      await page.locator('#filters select').first().waitFor();
      await page.locator('#filters select').first().selectOption('data');
      await until(async () => (await cards(visit)).length === 1);
      expect(await filters.textContent()).toMatch(/1$/);
      expect(await visit.findings()).toEqual([]);
    }
    await visit.shot(`catalog-${name}`);
    expect(visit.complaints).toEqual([]);
    await visit.close();
  });

  it('shows texts of others as plain text, and sends requests only to this gateway', async () => {
    const visit = await web.visit('/?category=testing');
    const { page } = visit;
    let alerts = 0;
    page.on('dialog', (dialog) => {
      alerts++;
      void dialog.dismiss();
    });
    await page.reload();
    expect(await cards(visit)).toEqual([HOSTILE]);
    // Once more, as the browser draws it.
    await page.getByLabel('Category').selectOption('');
    await page.getByText('28 services', { exact: true }).waitFor();
    await page.getByLabel('Category').selectOption('testing');
    await page.getByText('1 service', { exact: true }).waitFor();
    expect(await cards(visit)).toEqual([HOSTILE]);
    expect(await page.locator('img, main script').count()).toBe(0);
    expect(alerts).toBe(0);
    expect(visit.requested.filter((url) => !url.startsWith(web.market.baseUrl))).toEqual([]);
    expect(visit.complaints).toEqual([]);
    await visit.close();
  });
});

describe('the catalog without scripts', () => {
  it('searches with its form, pages with its links, and shows nothing that needs a script', async () => {
    const visit = await web.visit('about:blank', { scripts: false });
    const { page } = visit;
    await page.goto(`${web.market.baseUrl}/`);
    expect(await status(visit).textContent()).toBe('28 services');
    expect(await page.locator('.needs-script:visible').count()).toBe(0);
    await page.getByRole('link', { name: 'More services' }).click();
    expect(await cards(visit)).toHaveLength(4);
    await page.getByRole('link', { name: 'Back to the first services' }).click();
    await searchbox(visit).fill('translate');
    await page.getByRole('button', { name: 'Search' }).click();
    expect(await cards(visit)).toEqual(['Translate']);
    await searchbox(visit).fill('no such thing');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('navigation', { name: 'All categories' }).getByRole('link', { name: 'many 23' }).click();
    expect(await status(visit).textContent()).toBe('23 services');
    await visit.close();
  });
});
