import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Catalog } from '../../src/catalog/catalog.ts';
import { Discovery } from '../../src/catalog/discovery/discovery.ts';
import type { ListingFields } from '../../src/catalog/listing.ts';
import { OperationsReader } from '../../src/catalog/operations/operations-reader.ts';
import { UNKNOWN_QUALITY } from '../../src/catalog/quality.ts';
import { insertListing, updateListing } from '../../src/catalog/sql.ts';
import type { Route } from '../../src/http/route.ts';
import { StatsReader } from '../../src/quality/stats-reader.ts';
import { discoverRoutes } from '../../src/routes/discover.ts';
import { addAccount, addCall } from '../support/accounts.ts';
import { ask, bodyOf, LISTING_FIELDS, rated, refusalOf } from '../support/listings.ts';
import { sql, useDatabase } from '../support/use-database.ts';
import { until } from '../support/wait.ts';

const log = { warn: () => {}, error: () => {} };

let catalog: Catalog;
let routes: Route[];
let providerId: string;

/** test/integration/billing.test.ts has callers with keys. */
const nobody = async () => null;
const parts = { readFreeLeft: nobody, trustedProxyHops: 0 };
const SERVICES: Partial<ListingFields>[] = [
  { name: 'Weather', description: 'Forecasts for every place', priceMicros: 2_000, freeCalls: 100 },
  { name: 'Archive', description: 'Old weather records', priceMicros: 500_000, maxPriceMicros: 900_000 },
  { name: 'Echo', description: 'é'.repeat(201), priceMicros: 0, category: 'tools' },
];

useDatabase();
beforeAll(async () => {
  providerId = (await addAccount(sql, 'provider')).accountId;
  for (const [age, fields] of SERVICES.entries()) {
    const { id } = await insertListing(sql, { ...LISTING_FIELDS, ...fields, providerId });
    await sql`UPDATE services SET created_at = now() - interval '1 day' * ${SERVICES.length - age} WHERE id = ${id}`;
  }
  const paused = await insertListing(sql, { ...LISTING_FIELDS, name: 'Paused', providerId });
  await updateListing(sql, paused.id, { status: 'paused' }, 'any');
  catalog = new Catalog({ sql, log });
  const discovery = new Discovery(catalog, log);
  await catalog.start();
  routes = discoverRoutes({
    catalog,
    discovery,
    operations: new OperationsReader(sql),
    stats: new StatsReader(sql),
    ...parts,
  });
});
afterAll(async () => {
  await catalog.stop();
});

const discover = (query = '', headers: Record<string, string> = {}) =>
  ask(routes, `GET /discover${query}`, { headers });
const namesIn = async (query: string): Promise<string[]> =>
  bodyOf(await discover(query)).services.map(({ name }: { name: string }) => name);

describe('GET /discover', () => {
  it('needs no key, and shows all active services with the fields that docs/api.md lists', async () => {
    const response = await discover('?sort=name');
    expect(response.status).toBe(200);
    expect(response.headers).toMatchObject({
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Language': 'en',
      Vary: 'Accept-Language',
    });
    const body = bodyOf(response);
    expect(body.total).toBe(3);
    expect(body).not.toHaveProperty('next_cursor');
    expect(body.categories).toEqual([
      { category: 'data', services: 2 },
      { category: 'tools', services: 1 },
    ]);
    const [archive, echo, weather] = body.services;
    expect(weather).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'Weather',
      description: 'Forecasts for every place',
      price: 0.002,
      price_label: '$0.002 per call',
      free_calls: 100,
      free_calls_label: '100 free calls',
      category: 'data',
      quality: 50,
      rated: false,
      proxy_path: `/api/v1/proxy/${weather.id}/`,
    });
    expect(archive).not.toHaveProperty('free_calls');
    expect(archive).toMatchObject({ price: 0.5, max_price: 0.9, price_label: '$0.50 up to $0.90 per call' });
    expect(echo).toMatchObject({ price: 0, price_label: 'Free', description: `${'é'.repeat(200)}…` });
  });

  it.each([
    ['?category=tools', ['Echo']],
    ['?q=weather&sort=name', ['Archive', 'Weather']],
    ['?q=WEATHER%20records', ['Archive']],
    ['?q=', ['Archive', 'Echo', 'Weather']],
    ['?free=true', ['Echo', 'Weather']],
    ['?free=false', ['Archive']],
    ['?max_price=0.002', ['Echo', 'Weather']],
    ['?max_price=0.001999', ['Echo']],
    ['?min_quality=50', ['Archive', 'Echo', 'Weather']],
    ['?min_quality=50.5', []],
    ['?sort=price', ['Echo', 'Weather', 'Archive']],
    ['?sort=newest', ['Echo', 'Archive', 'Weather']],
  ])('%s finds %j', async (query, names) => {
    const found = await namesIn(query);
    expect(query.includes('sort=') ? found : found.sort()).toEqual(names);
  });

  it.each([
    ['?min_quality=101', 'min_quality'],
    ['?min_quality=-1', 'min_quality'],
    ['?min_quality=high', 'min_quality'],
    ['?min_success=99', 'min_success'],
    ['?max_latency_ms=-1', 'max_latency_ms'],
    ['?max_price=-1', 'max_price'],
    ['?max_price=0.0000001', 'max_price'],
    ['?max_price=', 'max_price'],
    ['?free=maybe', 'free'],
    ['?sort=random', 'sort'],
    ['?limit=0', 'limit'],
    ['?limit=1001', 'limit'],
    ['?limit=1.5', 'limit'],
    ['?limit=many', 'limit'],
    ['?category=Not%20a%20slug', 'category'],
    ['?cursor=nonsense', 'cursor'],
    ['?lang=pt', 'lang'],
    [`?q=${'x'.repeat(201)}`, 'q'],
    ['?colour=red', 'colour'],
    ['?fields=id,colour', 'fields'],
    ['?fields=operations', 'fields'],
    ['?fields=', 'fields'],
    ['?fields=id,,name', 'fields'],
  ])('%s is 400, and the answer names the parameter', async (query, name) => {
    const error = await refusalOf(discover(query));
    expect(error.code).toBe('invalid_request');
    expect(error.message).toMatch(new RegExp(`^${name}: `));
  });

  it('returns only the fields that are asked for, in their usual order, with an entity tag of their own', async () => {
    const whole = await discover('?sort=name');
    const thin = await discover('?sort=name&fields=price,%20id,free_calls,id');
    const [archive, echo, weather] = bodyOf(whole).services;
    expect(bodyOf(thin)).toEqual({
      ...bodyOf(whole),
      services: [
        { id: archive.id, price: 0.5 },
        { id: echo.id, price: 0 },
        { id: weather.id, price: 0.002, free_calls: 100 },
      ],
    });
    expect(JSON.stringify(bodyOf(thin).services[2])).toBe(`{"id":"${weather.id}","price":0.002,"free_calls":100}`);
    const etag = thin.headers?.ETag as string;
    expect(etag).not.toBe(whole.headers?.ETag);
    const again = await discover('?sort=name&fields=id,price,free_calls', { 'if-none-match': etag });
    expect(again.status).toBe(304);
    expect((await discover('?sort=name&fields=id', { 'if-none-match': etag })).status).toBe(200);
    const all = Object.keys({ ...archive, ...weather }).join(',');
    expect(bodyOf(await discover(`?sort=name&fields=${all}`))).toEqual(bodyOf(whole));
    const { next_cursor } = bodyOf(await discover('?sort=name&limit=1&fields=name'));
    expect(bodyOf(await discover(`?sort=name&limit=1&fields=name&cursor=${next_cursor}`)).services).toEqual([
      { name: 'Echo' },
    ]);
  });

  it('pages through all services, and counts them all on every page', async () => {
    const seen: string[] = [];
    let query = '?sort=name&limit=1';
    for (let page = 1; ; page++) {
      const body = bodyOf(await discover(query));
      expect(body.total).toBe(3);
      expect(body.categories).toHaveLength(2);
      seen.push(...body.services.map(({ name }: { name: string }) => name));
      if (body.next_cursor === undefined) break;
      expect(page).toBeLessThan(3);
      query = `?sort=name&limit=1&cursor=${body.next_cursor}`;
    }
    expect(seen).toEqual(['Archive', 'Echo', 'Weather']);
  });

  it('sorts by relevance if there are words and no sort, and accepts its cursor for that order only', async () => {
    expect(await namesIn('?q=weather')).toEqual(['Weather', 'Archive']);
    const { next_cursor } = bodyOf(await discover('?q=weather&limit=1'));
    expect(await namesIn(`?q=weather&limit=1&cursor=${next_cursor}`)).toEqual(['Archive']);
    expect((await refusalOf(discover(`?q=weather&sort=quality&cursor=${next_cursor}`))).message).toMatch(/^cursor: /);
    expect((await refusalOf(discover(`?cursor=${next_cursor}`))).message).toMatch(/^cursor: /);
  });

  it('shows a changed quality in lists and on the page of the service', async () => {
    const [{ id }] = bodyOf(await discover('?q=archive')).services;
    await catalog.setQualities(new Map([[id, rated(97.4, -1.2)]]));
    expect((await namesIn(''))[0]).toBe('Archive');
    expect(await namesIn('?min_quality=97.4')).toEqual(['Archive']);
    const record = { calls: 201, success_rate: 0.995, buyers: 12, latency_ms: 3 };
    const shown = { quality: 97.4, quality_trend: -1.2, rated: true, track_record: record };
    for (const asked of ['min_success=0.995', 'max_latency_ms=3'])
      expect(await namesIn(`?${asked}`)).toEqual(['Archive']);
    for (const asked of ['min_success=0.9951', 'max_latency_ms=2.9']) expect(await namesIn(`?${asked}`)).toEqual([]);
    expect(bodyOf(await discover('?q=archive')).services[0]).toMatchObject(shown);
    expect(bodyOf(await ask(routes, `GET /discover/${id}`))).toMatchObject(shown);
    const etag = async () => (await discover('?limit=all')).headers?.ETag;
    const before = await etag();
    await catalog.setQualities(new Map([[id, rated(97.4, 0.1)]]));
    expect(await etag()).not.toBe(before);
    // The same number says something else once calls went into it.
    await catalog.setQualities(new Map([[id, rated(50)]]));
    expect(bodyOf(await discover('?q=archive')).services[0]).toMatchObject({ quality: 50, rated: true });
    await catalog.setQualities(new Map([[id, UNKNOWN_QUALITY]]));
    expect(bodyOf(await discover('?q=archive')).services[0]).toMatchObject({ quality: 50, rated: false });
  });

  it('has a ready-made request for each service, with the address that the caller used', async () => {
    const [{ id }] = bodyOf(await discover('?sort=price&limit=1')).services;
    const urlFor = async (headers: Record<string, string>) =>
      bodyOf(await ask(routes, `GET /discover/${id}`, { headers })).call.url;
    expect(await urlFor({ host: 'gateway.test:8080' })).toBe(`http://gateway.test:8080/api/v1/proxy/${id}/`);
    // Nobody in front is trusted here, and a shell could take some hosts for commands.
    for (const host of ["a';reboot;'", '']) {
      expect(await urlFor({ host, 'x-forwarded-proto': 'https' })).toBe(`/api/v1/proxy/${id}/`);
    }
  });

  it('shows the statistics of one service, or the service without them while they cannot be read', async () => {
    const [{ id }] = bodyOf(await discover('?q=forecasts')).services;
    await addCall(sql, { buyer: await addAccount(sql), serviceId: id, providerId, amount: 500_000, latencyUs: 2_000 });
    const shown = bodyOf(await ask(routes, `GET /discover/${id}`));
    expect(shown.stats).toMatchObject({
      calls: 1,
      success_rate: 1,
      price_charged: { median: 0.5, p95: 0.5 },
    });
    expect(shown.stats.latency_ms.p50).toBeGreaterThan(1);
    const { stats: _, ...rest } = shown;
    const away = Object.assign(new Error('away'), { code: 'ECONNREFUSED' });
    for (const begin of [() => Promise.reject(away), () => new Promise<never>(() => {})]) {
      const [discovery, operations] = [new Discovery(catalog, log), new OperationsReader(sql)];
      const stats = new StatsReader({ begin } as unknown as typeof sql);
      const without = discoverRoutes({ ...parts, catalog, discovery, operations, stats });
      expect(bodyOf(await ask(without, `GET /discover/${id}`))).toEqual(rest);
    }
  });

  it('refuses a cursor of another sort', async () => {
    const { next_cursor } = bodyOf(await discover('?sort=name&limit=1'));
    expect((await refusalOf(discover(`?sort=price&limit=1&cursor=${next_cursor}`))).code).toBe('invalid_request');
  });

  it('gives labels in the language of lang, or else of Accept-Language, and changes nothing else', async () => {
    const english = bodyOf(await discover('?sort=price'));
    for (const [query, header, language, label] of [
      ['?sort=price&lang=zh-Hant', 'de', 'zh-TW', '每次呼叫 $0.002'],
      ['?sort=price', 'pt, ja;q=0.5', 'ja', '1回の呼び出しにつき $0.002'],
    ] as const) {
      const response = await discover(query, { 'accept-language': header });
      expect(response.headers?.['Content-Language']).toBe(language);
      const body = bodyOf(response);
      expect(body.services[1].price_label).toBe(label);
      const data = (of: typeof body) =>
        of.services.map(({ price_label, free_calls_label, ...rest }: Record<string, unknown>) => rest);
      expect(data(body)).toEqual(data(english));
    }
  });

  it('answers 304 to a caller that has the current answer, and to no other', async () => {
    const { headers } = await discover('?limit=2');
    const etag = headers?.ETag as string;
    expect(etag).toMatch(/^"[^"]+"$/);
    for (const known of [etag, `W/${etag}`, `"a", W/"b,c" , ${etag}`, '*', ' * ']) {
      const response = await discover('?limit=2', { 'if-none-match': known });
      expect(response.status).toBe(304);
      expect(response.body).toBeUndefined();
      expect(response.headers).toMatchObject({ ETag: etag, Vary: 'Accept-Language' });
    }
    for (const other of ['"x"', '', etag.slice(1, -1), `${etag.slice(0, -1)}x"`]) {
      expect((await discover('?limit=2', { 'if-none-match': other })).status).toBe(200);
    }
    const german = await discover('?limit=2&lang=de', { 'if-none-match': etag });
    expect(german.status).toBe(200);
  });

  it('shows a change as soon as the catalog has it, under another entity tag', async () => {
    const before = await discover('?q=passing');
    const { id } = await insertListing(sql, { ...LISTING_FIELDS, name: 'Passing', providerId });
    await until(() => catalog.get(id));
    const during = await discover('?q=passing', { 'if-none-match': before.headers?.ETag as string });
    expect(during.status).toBe(200);
    expect(bodyOf(during).total).toBe(1);
    await updateListing(sql, id, { status: 'paused' }, 'any');
    await until(() => catalog.get(id)?.status === 'paused');
    const after = await discover('?q=passing');
    expect(after.headers?.ETag).toBe(before.headers?.ETag);
    expect(bodyOf(after).total).toBe(0);
  });

  it('is unavailable, rather than empty, before the catalog is loaded', async () => {
    const empty = new Catalog({ sql, log });
    const [operations, stats] = [new OperationsReader(sql), new StatsReader(sql)];
    const discovery = new Discovery(empty, log);
    const unloaded = discoverRoutes({ ...parts, catalog: empty, discovery, operations, stats });
    const error = await refusalOf(ask(unloaded, 'GET /discover'));
    expect(error.code).toBe('unavailable');
    expect(error.headers).toHaveProperty('Retry-After');
  });
});
