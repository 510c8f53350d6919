import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Browser, startBrowser } from '../support/browser.ts';
import { Marketplace } from './marketplace.ts';

let market: Marketplace;
let browser: Browser;

beforeAll(async () => {
  [market, browser] = await Promise.all([Marketplace.start(), startBrowser()]);
});
afterAll(async () => {
  await browser.close();
  await market.stop();
});

describe('GET /', () => {
  const FOR_BROWSERS = { Accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };

  it('says in JSON what this is, in which version, and where to continue; every link leads somewhere', async () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    for (const headers of [{ Accept: '*/*' }, { Accept: 'application/json' }]) {
      const response = await market.request('/', { headers });
      expect([response.headers.get('vary'), response.headers.get('content-type')]).toEqual([
        'Accept',
        'application/json; charset=utf-8',
      ]);
      const { links, ...rest } = (await response.json()) as { links: Record<string, string> };
      expect(rest).toEqual({ name: 'tollgate', version });
      expect(links).toMatchObject({ discover: '/api/v1/discover', docs: '/docs', openapi: '/api/v1/openapi.json' });
      for (const path of Object.values(links)) expect([path, (await market.request(path)).status]).not.toContain(404);
    }
  });

  it('is a page for a browser that obeys its own policy, and every link leads somewhere', async () => {
    expect((await market.request('/', { headers: FOR_BROWSERS })).headers.get('vary')).toBe('Accept');
    const page = await browser.newPage();
    const faults: string[] = [];
    page.on('console', (message) => faults.push(message.text()));
    await page.goto(market.baseUrl);
    expect(await page.locator('h1').textContent()).toBe('Tollgate');
    // Its policy let its style through.
    expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(246, 247, 249)');
    const links = await page.evaluate('[...document.links].map((link) => link.href)');
    expect(links).toContain(`${market.baseUrl}/docs`);
    for (const url of links as string[]) expect([url, (await fetch(url)).status]).toEqual([url, 200]);
    expect(faults).toEqual([]);
    await page.close();
  });
});

describe('GET /docs', () => {
  it('renders every operation, loads nothing from elsewhere, and has no inline script or style', async () => {
    const page = await browser.newPage({ viewport: { width: 390, height: 844 }, colorScheme: 'dark' });
    const faults: string[] = [];
    const requested: string[] = [];
    page.on('console', (message) => faults.push(message.text()));
    page.on('pageerror', (error) => faults.push(String(error)));
    page.on('request', (request) => requested.push(request.url()));
    const response = await page.goto(`${market.baseUrl}/docs`);
    expect(response?.headers()['content-security-policy']).not.toContain('unsafe');
    await page.locator('.opblock').first().waitFor();
    const { paths } = await market.json<{ paths: Record<string, object> }>('/api/v1/openapi.json');
    const operations = Object.values(paths).reduce((sum, methods) => sum + Object.keys(methods).length, 0);
    expect(await page.locator('.opblock').count()).toBe(operations);
    await page.locator('#operations-Keys-postKeys .opblock-summary-control').click();
    await page.locator('#operations-Keys-postKeys .responses-table').waitFor();
    expect(await page.locator('#operations-Keys-postKeys').textContent()).toContain('acme-bot');
    expect(await page.evaluate('document.documentElement.className')).toBe('dark-mode');
    // On a phone the page scrolls down only.
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
    expect(requested.filter((url) => !url.startsWith(market.baseUrl) && !url.startsWith('data:'))).toEqual([]);
    expect(faults).toEqual([]);
    await page.close();
  });

  it('has files that are cached for good, smaller for callers that accept gzip, and free of tokens', async () => {
    const html = await (await market.request('/docs')).text();
    const files = [...html.matchAll(/(?:src|href)="(\/docs\/[^"]+)"/g)].map(([, path = '']) => path);
    expect(files).toHaveLength(4);
    const key = await market.buyer(0);
    const before = Number((await market.request('/api/v1/keys/me', { key })).headers.get('x-ratelimit-remaining'));
    for (const path of files) {
      const plain = await market.request(path, { key, headers: { 'Accept-Encoding': 'identity' } });
      expect(plain.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      expect(plain.headers.get('content-encoding')).toBeNull();
      const packed = await market.request(path, { key, headers: { 'Accept-Encoding': 'gzip' } });
      expect([packed.headers.get('content-encoding'), packed.headers.get('vary')]).toEqual(['gzip', 'Accept-Encoding']);
      // fetch unpacks.
      expect(await packed.text()).toBe(await plain.text());
      const head = await market.request(path, { key, method: 'HEAD', headers: { 'Accept-Encoding': 'gzip' } });
      expect(head.headers.get('content-length')).toBe(packed.headers.get('content-length'));
      expect((await market.request(path.replace(/\.[^.]+\./, '.older.'), { key })).status).toBe(404);
    }
    const after = Number((await market.request('/api/v1/keys/me', { key })).headers.get('x-ratelimit-remaining'));
    expect(after).toBeGreaterThanOrEqual(before - 1);
  });
});
