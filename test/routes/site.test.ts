// What the gateway sends to anyone who opens a page: people without scripts, crawlers and caches see nothing else.

import { request as sendRaw } from 'node:http';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LANGUAGES } from '../../src/catalog/languages.ts';
import { Marketplace } from '../integration/marketplace.ts';

const BROWSER = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8', 'Accept-Encoding': 'identity' };
const HOSTILE = '</script><img src=x onerror=alert(1)>';

let market: Marketplace;
/** Paths of the services' pages. */
const page: Record<string, string> = {};

beforeAll(async () => {
  market = await Marketplace.start({ WEB: 'on' }, { writer: false });
  const add = async (name: string, fields: object): Promise<void> => {
    const path = await market.service({ endpoint: 'http://127.0.0.1:9', name, category: 'data', ...fields });
    page[name] = path.replace('/api/v1/proxy/', '/services/');
  };
  await add('Weather', { price: 0.002, free_calls: 100, description: 'Forecasts for every place' });
  await add(HOSTILE, { price: 0, description: `${HOSTILE}"><svg onload=alert(2)>`, category: 'testing' });
  for (let i = 0; i < 30; i++) await add(`Many ${i}`, { price: 1, category: 'many' });
});
afterAll(() => market?.stop());

const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  market.request(path, { method, headers: { ...BROWSER, ...headers } });
const html = async (path: string, headers?: Record<string, string>): Promise<string> =>
  (await get(path, headers)).text();
const namesIn = (text: string): string[] =>
  [...text.matchAll(/class="service-card-link"[^>]*>([^<]*)</g)].map(([, name = '']) => name);

describe('the catalog without scripts', () => {
  it('shows the services with prices and free calls, their number, and a search form', async () => {
    const text = await html('/');
    expect(text).toMatch(/^<!doctype html>\n<html lang="en">/);
    expect(namesIn(text)).toHaveLength(24);
    expect(text).toContain('32 services');
    expect(await html('/?q=weather')).toMatch(/Forecasts for every place.*\$0\.002 per call.*100 free calls/s);
    expect(text).toMatch(/<form[^>]* action="\/" method="get"/);
    for (const name of ['q', 'category', 'min_quality', 'max_price', 'free', 'sort'])
      expect(text).toMatch(new RegExp(`<(input|select)[^>]* name="${name}"`));
  });

  it('searches as its form asks, accepts the empty fields that the form sends, and keeps what was chosen', async () => {
    const text = await html('/?q=weath&category=&min_quality=&max_price=0.01&free=true&sort=price');
    expect(namesIn(text)).toEqual(['Weather']);
    expect(text).toMatch(/<input[^>]* name="q"[^>]* value="weath"/);
    expect(text).toMatch(/<option[^>]*selected[^>]*>Up to \$0\.01 per call/);
    expect(text).toMatch(/<input[^>]* name="free"[^>]*checked/);
    expect(await html('/?q=nothing+has+this')).toContain('No service matches');
  });

  it('has links to every service, page after page', async () => {
    const seen = new Set<string>();
    let next: string | undefined = '/?sort=name';
    for (let pages = 0; next !== undefined && pages < 5; pages++) {
      const text: string = await html(next);
      for (const name of namesIn(text)) seen.add(name);
      next = /href="(\/\?[^"]*cursor=[^"]*)"/.exec(text)?.[1]?.replaceAll('&amp;', '&');
    }
    expect(seen.size).toBe(32);
  });

  it.each(LANGUAGES)('uses %s as the address or Accept-Language asks, labels included', async (language) => {
    const [chosen, asked] = await Promise.all([
      get(`/?q=weather&lang=${language}`, { 'Accept-Language': 'xx' }),
      get('/?q=weather', { 'Accept-Language': `${language};q=0.9, xx` }),
    ]);
    for (const response of [chosen, asked]) expect(response.headers.get('content-language')).toBe(language);
    const text = await chosen.text();
    expect(text).toContain(`<html lang="${language}">`);
    const { services } = await market.json<{ services: { price_label: string; free_calls_label: string }[] }>(
      `/api/v1/discover?q=weather&lang=${language}`,
    );
    expect(text).toContain(services[0]?.price_label);
    expect(text).toContain(services[0]?.free_calls_label);
    for (const other of LANGUAGES) expect(text).toContain(`lang=${other}"`);
  });

  it('is JSON for clients that prefer JSON', async () => {
    const response = await market.request('/', { headers: { Accept: 'application/json' } });
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    expect(response.headers.get('vary')).toContain('Accept');
    expect(await response.json()).toMatchObject({ name: 'tollgate' });
  });
});

describe('text that others wrote', () => {
  it('stays text on every page: in the body, in the head and in the data for scripts', async () => {
    for (const path of ['/?category=testing', page[HOSTILE] as string]) {
      const text = await html(path);
      expect(text).toContain('&lt;/script>&lt;img');
      expect(text).not.toMatch(/<(img|svg) (src=x|onload)/);
      const data = /<script type="application\/json" id="first-data">(.*?)<\/script>/s.exec(text)?.[1] ?? '';
      expect(JSON.stringify(JSON.parse(data))).toContain(HOSTILE);
      expect(text.match(/<script/g)).toHaveLength(3);
    }
  });

  it('could not run even if it were markup: the policy allows no script except files of this gateway', async () => {
    for (const path of ['/', '/console', '/nothing', page.Weather as string]) {
      const policy = (await get(path)).headers.get('content-security-policy') ?? '';
      expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
      expect(policy).not.toMatch(/unsafe|https?:|\*/);
      expect(await html(path)).not.toMatch(/ style=|<script>|<style| on\w+="/);
    }
  });
});

describe('a request that cannot be answered', () => {
  it.each([
    ['/?min_quality=abc', 'min_quality: must be number.'],
    ['/?min_quality=200', 'min_quality'],
    ['/?max_price=0.0000001', 'max_price: must be a number of USD'],
    ['/?cursor=nonsense', 'cursor: not issued by this list.'],
    ['/?sort=best', 'sort'],
    ['/?category=A%20B', 'category'],
    ['/?lang=xx', 'lang: must be one of'],
  ])('%s gets a page that says what is wrong and keeps the search', async (path, reason) => {
    const response = await get(path);
    expect([response.status, response.headers.get('content-type')]).toEqual([400, 'text/html; charset=utf-8']);
    const text = await response.text();
    expect(text).toContain('This search cannot be understood.');
    expect(text).toContain(reason);
    expect(text).toContain('name="q"');
    // No link of the page leads to the same refusal.
    expect(text).not.toContain('href="/?lang=xx"');
  });

  it('gets a page if nothing is there (browsers only), and the page repeats nothing of the address', async () => {
    for (const path of ['/nothing', '/services/00000000-0000-7000-8000-000000000000', '/services/%3Cimg%20src=x%3E']) {
      const response = await get(path);
      expect([response.status, response.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
      const text = await response.text();
      expect(text).toContain('There is nothing here');
      expect(text).not.toMatch(/type="module"|src=x/);
    }
    const de = await get('/nothing', { 'Accept-Language': 'de' });
    expect(await de.text()).toContain('Hier ist nichts');
    expect((await market.request('/nothing')).headers.get('content-type')).toMatch(/^application\/json/);
    expect((await get('/api/v1/nothing')).headers.get('content-type')).toMatch(/^application\/json/);
  });

  it('gets a page after too many requests, with the time to wait', async () => {
    const strict = await Marketplace.start({ WEB: 'on', ANONYMOUS_RATE_LIMIT: '2' }, { writer: false });
    try {
      let response: Response;
      do response = await strict.request('/', { headers: BROWSER });
      while (response.status === 200);
      expect([response.status, response.headers.get('content-type')]).toEqual([429, 'text/html; charset=utf-8']);
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(await response.text()).toContain('Too many requests from your network. Try again in a minute.');
    } finally {
      await strict.stop();
    }
  });
});

describe('a page that the client has seen before', () => {
  it('has the same bytes while nothing changes, is 304 if the client still has it, and is new after a change', async () => {
    const first = await get('/?q=weather');
    const etag = first.headers.get('etag') as string;
    const bytes = await first.text();
    expect(await html('/?q=weather')).toBe(bytes);
    for (const known of [etag, etag.replace('W/', ''), `"other", ${etag}`]) {
      const again = await get('/?q=weather', { 'If-None-Match': known });
      expect([again.status, again.headers.get('etag'), await again.text()]).toEqual([304, etag, '']);
      expect(again.headers.get('vary')).toBe('Accept, Accept-Encoding, Accept-Language');
    }
    const id = (page.Weather as string).split('/')[2];
    const body = { description: 'Forecasts and warnings' };
    await market.json(`/api/v1/services/${id}`, { key: market.provider, method: 'PATCH', body });
    const changed = await get('/?q=weather', { 'If-None-Match': etag });
    expect(changed.status).toBe(200);
    expect(await changed.text()).toContain('Forecasts and warnings');
    expect(await html(page.Weather as string)).toContain('Forecasts and warnings');
  });

  it('is the same page in every content encoding, and HEAD has its headers', async () => {
    const plain = await html('/?q=many');
    const unpack = { br: brotliDecompressSync, gzip: gunzipSync };
    for (const coding of ['br', 'gzip'] as const) {
      const { headers, body } = await rawGet('/?q=many', { ...BROWSER, 'Accept-Encoding': coding });
      expect([headers['content-encoding'], headers.vary]).toEqual([coding, 'Accept, Accept-Encoding, Accept-Language']);
      expect(unpack[coding](body).toString()).toBe(plain);
      expect(body.length).toBeLessThan(plain.length / 4);
    }
    const head = await get('/?q=many', {}, 'HEAD');
    expect(head.status).toBe(200);
    expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(plain)));
    expect(await head.text()).toBe('');
  });
});

/** As `fetch`, which would unpack the body. */
function rawGet(path: string, headers: Record<string, string>) {
  return new Promise<{ headers: Record<string, string | string[] | undefined>; body: Buffer }>((resolve, reject) => {
    const sent = sendRaw(market.baseUrl + path, { headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => resolve({ headers: response.headers, body: Buffer.concat(chunks) }));
    });
    sent.on('error', reject);
    sent.end();
  });
}
