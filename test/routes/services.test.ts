import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Catalog } from '../../src/catalog/catalog.ts';
import type { Route } from '../../src/http/route.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import type { Sql } from '../../src/platform/postgres.ts';
import { PROXY_PREFIX, parseTarget } from '../../src/proxy/target.ts';
import { servicesRoutes } from '../../src/routes/services.ts';
import { AddressPolicy } from '../../src/upstream/index.ts';
import { addAccount, addKeyTo, openTestDatabase } from '../accounts/support.ts';
import { type Asked, ask, bodyOf, refusalOf } from '../catalog/support.ts';
import { until } from '../support/wait.ts';

/** One address of the operator's own is allowed. */
const addresses = new AddressPolicy(['10.1.2.3/32']);
const log = { warn: () => {}, error: () => {} };

const BODY = {
  name: 'Weather',
  description: 'Forecasts',
  endpoint: 'http://service.example/api',
  price: 0.002,
  category: 'data',
};

let sql: Sql;
let close: () => Promise<void>;
/** Two gateways on one database. */
let catalog: Catalog;
let elsewhere: Catalog;
let routes: Route[];
let routesElsewhere: Route[];
let provider: KeyRecord;
let stranger: KeyRecord;
let admin: KeyRecord;
let buyer: KeyRecord;

beforeAll(async () => {
  ({ sql, close } = await openTestDatabase());
  catalog = new Catalog({ sql, log });
  elsewhere = new Catalog({ sql, log });
  await Promise.all([catalog.start(), elsewhere.start()]);
  routes = servicesRoutes({ catalog, sql, addresses });
  routesElsewhere = servicesRoutes({ catalog: elsewhere, sql, addresses });
});
afterAll(async () => {
  await Promise.all([catalog.stop(), elsewhere.stop()]);
  await close();
});
beforeEach(async () => {
  provider = await addAccount(sql, 'provider');
  stranger = await addAccount(sql, 'provider');
  admin = await addAccount(sql, 'admin');
  buyer = await addAccount(sql, 'buyer');
});

const call = (line: string, asked: Asked = {}) => ask(routes, line, asked);
const post = (body: object, by: KeyRecord = provider) => call('POST /services', { by, body });
const refused = (line: string, asked: Asked = {}) => refusalOf(call(line, asked));
const create = async (fields: object = {}, by = provider): Promise<string> =>
  bodyOf(await post({ ...BODY, ...fields }, by)).id;

describe('POST /services', () => {
  it('lists a service: active, of the account of the key, found at once where it was made', async () => {
    const response = await post({ ...BODY, name: '  Weather ', free_calls: 100, timeout_seconds: 5 });
    const body = bodyOf(response);
    expect(response.status).toBe(201);
    expect(response.headers?.Location).toBe(`/api/v1/services/${body.id}`);
    expect(body).toEqual({
      id: expect.any(String),
      name: 'Weather',
      description: 'Forecasts',
      price: 0.002,
      price_label: '$0.002 per call',
      free_calls: 100,
      free_calls_label: '100 free calls',
      category: 'data',
      quality: 50,
      proxy_path: `/api/v1/proxy/${body.id}/`,
      status: 'active',
      timeout_seconds: 5,
      provider_id: provider.accountId,
      endpoint: 'http://service.example/api',
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      updated_at: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    expect(catalog.get(body.id)).toMatchObject({ priceMicros: 2_000, freeCalls: 100, timeoutSeconds: 5 });
  });

  it('waits 60 seconds for a response head unless told otherwise, and gives no free calls', async () => {
    expect(catalog.get(await create())).toMatchObject({ timeoutSeconds: 60, freeCalls: 0 });
  });

  it('takes every legal price exactly', async () => {
    const prices = fc.integer({ min: 0, max: 10_000_000_000 });
    const check = async (micros: number) => {
      const body = bodyOf(await post({ ...BODY, price: micros / 1_000_000 }));
      expect(body.price).toBe(micros / 1_000_000);
      expect(catalog.get(body.id)?.priceMicros).toBe(micros);
    };
    await fc.assert(fc.asyncProperty(prices, check), { numRuns: 20, examples: [[0], [1], [10_000_000_000]] });
  });

  it('takes a free service with free calls, which count for nothing while it is free', async () => {
    const body = bodyOf(await post({ ...BODY, price: 0, free_calls: 3 }));
    expect(body).toMatchObject({ price: 0, price_label: 'Free', free_calls: 3 });
  });

  it('is for providers and admins', async () => {
    expect((await refused('POST /services', { body: BODY })).code).toBe('unauthorized');
    expect((await refused('POST /services', { body: BODY, by: buyer })).code).toBe('forbidden');
    expect((await post(BODY, admin)).status).toBe(201);
  });

  it.each<[string, object]>([
    ['name', { name: '' }],
    ['name', { name: '   ' }],
    ['name', { name: 'x'.repeat(101) }],
    ['name', { name: 'a\u0000b' }],
    ['name', { name: 7 }],
    ['description', { description: 'x'.repeat(2_001) }],
    ['description', { description: 'a\u0000b' }],
    ['endpoint', { endpoint: '' }],
    ['endpoint', { endpoint: 'ftp://service.example' }],
    ['endpoint', { endpoint: 'http://user:pw@service.example' }],
    ['endpoint', { endpoint: 'http://service.example/?q=1' }],
    ['endpoint', { endpoint: 'http://service.example/#f' }],
    ['endpoint', { endpoint: `http://service.example/${'x'.repeat(2_048)}` }],
    ['price', { price: -0.01 }],
    ['price', { price: 0.0000001 }],
    ['price', { price: 1.2345678 }],
    ['price', { price: 10_000.01 }],
    ['price', { price: '0.002' }],
    ['price', { price: null }],
    ['free_calls', { free_calls: 0 }],
    ['free_calls', { free_calls: 1.5 }],
    ['free_calls', { free_calls: 1_000_000_001 }],
    ['category', { category: 'Data Sets' }],
    ['category', { category: '-data' }],
    ['category', { category: 'x'.repeat(51) }],
    ['timeout_seconds', { timeout_seconds: 0 }],
    ['timeout_seconds', { timeout_seconds: 301 }],
    ['status', { status: 'active' }],
    ['provider_id', { provider_id: uuidv7() }],
  ])('refuses a bad %s, and names it: %j', async (field, fields) => {
    const error = await refused('POST /services', { by: provider, body: { ...BODY, ...fields } });
    expect(error.code).toBe('invalid_request');
    expect(error.message).toMatch(new RegExp(`^${field}: `));
  });

  it.each([
    'http://127.0.0.1/',
    'http://127.1/',
    'http://2130706433/',
    'http://0x7f000001/',
    'http://0x7f.0.0.1/',
    'http://0177.0.0.1/',
    'http://017700000001/',
    'http://\uff11\uff12\uff17.0.0.1/',
    'http://127\u30020\u30020\u30021/',
    'http://127.0.0.1./',
    'http://0/',
    'http://10.1.2.4:8080/x',
    'http://169.254.169.254/latest/meta-data',
    'http://2852039166/',
    'http://100.100.100.200/',
    'http://224.0.0.1/',
    'http://255.255.255.255/',
    'http://[::]/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:7f00:1]/',
    'http://[0:0:0:0:0:ffff:0a01:0204]/',
    'http://[64:ff9b::7f00:1]/',
    'http://[64:ff9b::169.254.169.254]/',
    'http://[2002:7f00:1::]/',
    'http://[fe80::1]/',
    'http://[fd00:ec2::254]/',
    'http://[ff02::1]/',
    'http://localhost/',
    'http://LOCALHOST./',
    'http://a.localhost:8080/',
  ])('refuses an endpoint that is no address of the public internet: %s', async (endpoint) => {
    const error = await refused('POST /services', { by: provider, body: { ...BODY, endpoint } });
    expect([error.code, error.message]).toEqual(['invalid_request', expect.stringMatching(/^endpoint: .*public/)]);
    const id = await create();
    const change = await refused(`PATCH /services/${id}`, { by: provider, body: { endpoint } });
    expect(change.code).toBe('invalid_request');
  });

  it.each([
    'http://10.1.2.3:8080/',
    'http://0xa010203/',
    'http://8.8.8.8/',
    'https://[2606:4700::1111]/',
    'http://not-localhost/',
  ])('takes an endpoint that is public, or that the operator allows: %s', async (endpoint) => {
    expect((await post({ ...BODY, endpoint })).status).toBe(201);
  });

  it.each(Object.keys(BODY))('needs %s', async (field) => {
    const { [field]: _, ...rest } = BODY as Record<string, unknown>;
    const error = await refused('POST /services', { by: provider, body: rest });
    expect(error.message).toMatch(new RegExp(`^${field}: `));
  });

  it('counts characters as people do, and keeps every text unchanged', async () => {
    const texts = { name: '😀'.repeat(100), description: `${'字'.repeat(1_998)}\n😀` };
    const { body: whole } = await call(`GET /services/${await create(texts)}`);
    expect(whole).toMatchObject(texts);
  });
});

describe('GET /services/{id}', () => {
  it('shows the whole description to anybody, and the endpoint to its provider and admins only', async () => {
    const description = 'x'.repeat(2_000);
    const id = await create({ description });
    const otherKey = await addKeyTo(sql, provider.accountId, 'buyer');
    for (const [by, sees] of [
      [undefined, false],
      [buyer, false],
      [stranger, false],
      [provider, true],
      [otherKey, true],
      [admin, true],
    ] as const) {
      const body = bodyOf(await call(`GET /services/${id}`, by === undefined ? {} : { by }));
      expect(body.description).toBe(description);
      expect(body.endpoint).toBe(sees ? BODY.endpoint : undefined);
    }
  });

  it('labels in the language of lang, or else of Accept-Language', async () => {
    const id = await create();
    const response = await call(`GET /services/${id}?lang=ko`, { headers: { 'accept-language': 'fr' } });
    expect(response.headers).toEqual({ 'Content-Language': 'ko', Vary: 'Accept-Language' });
    expect(bodyOf(response).price_label).toBe('호출당 $0.002');
    const french = await call(`GET /services/${id}`, { headers: { 'accept-language': 'fr' } });
    expect(french.headers?.['Content-Language']).toBe('fr');
    expect((await refused(`GET /services/${id}?lang=pt`)).code).toBe('invalid_request');
  });

  it('shows a paused service with its status', async () => {
    const id = await create();
    await call(`PATCH /services/${id}`, { by: provider, body: { status: 'paused' } });
    expect(bodyOf(await call(`GET /services/${id}`)).status).toBe('paused');
  });

  it('shows a removed service to its provider and admins only', async () => {
    const id = await create();
    await call(`DELETE /services/${id}`, { by: provider });
    for (const by of [provider, admin]) {
      expect(bodyOf(await call(`GET /services/${id}`, { by })).status).toBe('removed');
    }
    for (const asked of [{}, { by: buyer }, { by: stranger }]) {
      expect((await refused(`GET /services/${id}`, asked)).code).toBe('service_not_found');
    }
  });

  it.each([uuidv7(), 'no-id', "'; DROP TABLE services; --".replaceAll(' ', '%20')])('of %s is 404', async (id) => {
    for (const asked of [{}, { by: provider }]) {
      expect((await refused(`GET /services/${id}`, asked)).code).toBe('service_not_found');
    }
  });

  it('of an id in capitals is 404 in the catalog as it is in a proxy path', async () => {
    const id = (await create()).toUpperCase();
    for (const asked of [{}, { by: provider }]) {
      expect((await refused(`GET /services/${id}`, asked)).code).toBe('service_not_found');
    }
    expect(catalog.get(parseTarget(`${PROXY_PREFIX}${id}/`).serviceId)).toBeUndefined();
  });

  it('is unavailable, rather than not found, before the catalog is loaded', async () => {
    const id = await create();
    const unloaded = servicesRoutes({ catalog: new Catalog({ sql, log }), sql, addresses });
    expect((await refusalOf(ask(unloaded, `GET /services/${id}`))).code).toBe('unavailable');
  });
});

describe('GET /services?mine=true', () => {
  const list = async (query: string, by = provider) => bodyOf(await call(`GET /services${query}`, { by }));
  // Ids made in one millisecond are in no order.
  const createLater = async () => {
    const nowMs = Date.now();
    await until(() => Date.now() > nowMs);
    return create();
  };
  const idsOf = (page: { services: { id: string }[] }) => page.services.map(({ id }) => id);

  it('shows the own listings, newest first, paused ones too, removed ones and those of others not', async () => {
    const [first, second, third] = [await createLater(), await createLater(), await createLater()];
    await create({}, stranger);
    await call(`PATCH /services/${first}`, { by: provider, body: { status: 'paused' } });
    await call(`DELETE /services/${second}`, { by: provider });
    const page = await list('?mine=true');
    expect(idsOf(page)).toEqual([third, first]);
    expect(page.services[1]).toMatchObject({ status: 'paused', endpoint: BODY.endpoint });
    expect(page).not.toHaveProperty('next_cursor');
  });

  it('pages through all of them once', async () => {
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) ids.unshift(await createLater());
    const pages: string[][] = [];
    for (let cursor = ''; ; ) {
      const page = await list(`?mine=true&limit=2${cursor}`);
      pages.push(idsOf(page));
      if (page.next_cursor === undefined) break;
      cursor = `&cursor=${page.next_cursor}`;
      expect(pages.length).toBeLessThan(4);
    }
    expect(pages).toEqual([ids.slice(0, 2), ids.slice(2, 4), ids.slice(4)]);
  });

  it.each(['', '?mine=false'])('without mine=true points to /discover: %j', async (query) => {
    const error = await refused(`GET /services${query}`, { by: provider });
    expect(error.code).toBe('invalid_request');
    expect(error.message).toContain('/api/v1/discover');
  });

  it.each(['?mine=true&cursor=x', '?mine=true&limit=0', '?mine=true&limit=1001', '?mine=true&colour=red'])(
    '%s is 400',
    async (query) => {
      expect((await refused(`GET /services${query}`, { by: provider })).code).toBe('invalid_request');
    },
  );
});

describe('PATCH /services/{id}', () => {
  it('changes what it names and nothing else', async () => {
    const id = await create({ free_calls: 5 });
    const before = bodyOf(await call(`GET /services/${id}`, { by: provider }));
    const changes = fc.record(
      {
        name: fc.constantFrom('New', 'Other'),
        description: fc.constantFrom('', 'other'),
        endpoint: fc.constantFrom('https://other.example', 'http://third.example/x'),
        price: fc.constantFrom(0.5, 7),
        free_calls: fc.constantFrom(1, 9),
        category: fc.constantFrom('a', 'b-c'),
        timeout_seconds: fc.constantFrom(1, 300),
        status: fc.constantFrom('active', 'paused'),
      },
      { requiredKeys: [] },
    );
    let expected = before;
    await fc.assert(
      fc.asyncProperty(
        changes.filter((body) => Object.keys(body).length > 0),
        async (body) => {
          const { price_label, free_calls_label, updated_at, ...rest } = bodyOf(
            await call(`PATCH /services/${id}`, { by: provider, body }),
          );
          expected = { ...expected, ...body };
          expect(expected).toMatchObject(rest);
          expect(bodyOf(await call(`GET /services/${id}`, { by: provider }))).toMatchObject(rest);
        },
      ),
      { numRuns: 25 },
    );
  });

  it('takes effect at once here, and within a second on other gateways', async () => {
    const id = await create();
    await call(`PATCH /services/${id}`, { by: provider, body: { status: 'paused', price: 1 } });
    expect(catalog.get(id)).toMatchObject({ status: 'paused', priceMicros: 1_000_000 });
    await until(() => elsewhere.get(id)?.status === 'paused' && elsewhere.get(id)?.priceMicros === 1_000_000, 1_000);
    expect(bodyOf(await ask(routesElsewhere, `GET /services/${id}`)).status).toBe('paused');
  });

  it('with free_calls null ends the free calls', async () => {
    const id = await create({ free_calls: 5 });
    const body = bodyOf(await call(`PATCH /services/${id}`, { by: provider, body: { free_calls: null } }));
    expect(body).not.toHaveProperty('free_calls');
    expect(catalog.get(id)?.freeCalls).toBe(0);
  });

  it('is for the owner and admins', async () => {
    const id = await create();
    const body = { price: 0 };
    expect((await refused(`PATCH /services/${id}`, { by: stranger, body })).code).toBe('forbidden');
    expect((await refused(`PATCH /services/${id}`, { by: buyer, body })).code).toBe('forbidden');
    expect((await refused(`PATCH /services/${id}`, { body })).code).toBe('unauthorized');
    expect(catalog.get(id)?.priceMicros).toBe(2_000);
    const byAdmin = bodyOf(await call(`PATCH /services/${id}`, { by: admin, body }));
    expect(byAdmin).toMatchObject({ price: 0, provider_id: provider.accountId });
  });

  it.each<[object, RegExp]>([
    [{}, /^body: /],
    [{ status: 'removed' }, /^status: /],
    [{ price: 0.0000001 }, /^price: /],
    [{ name: ' ' }, /^name: /],
    [{ endpoint: 'nowhere' }, /^endpoint: /],
    [{ free_calls: 0 }, /^free_calls: /],
    [{ id: 'x' }, /^id: /],
  ])('%j is 400', async (body, message) => {
    const error = await refused(`PATCH /services/${await create()}`, { by: provider, body });
    expect(error.code).toBe('invalid_request');
    expect(error.message).toMatch(message);
  });

  it('of a removed or unknown service is 404, for everybody', async () => {
    const id = await create();
    await call(`DELETE /services/${id}`, { by: provider });
    for (const by of [provider, stranger, admin]) {
      for (const which of [id, uuidv7(), 'no-id']) {
        const error = await refused(`PATCH /services/${which}`, { by, body: { status: 'active' } });
        expect(error.code).toBe('service_not_found');
      }
    }
  });
});

describe('DELETE /services/{id}', () => {
  it('removes for good, keeps the row, and says the same when repeated', async () => {
    const id = await create();
    await until(() => elsewhere.get(id));
    const first = await call(`DELETE /services/${id}`, { by: provider });
    expect(first.status).toBe(200);
    expect(bodyOf(first)).toMatchObject({ id, status: 'removed' });
    expect(catalog.get(id)).toBeUndefined();
    await until(() => elsewhere.get(id) === undefined, 1_000);
    expect(bodyOf(await call(`DELETE /services/${id}`, { by: provider }))).toEqual(bodyOf(first));
    expect(await sql`SELECT status FROM services WHERE id = ${id}`).toEqual([{ status: 'removed' }]);
  });

  it('is for the owner and admins', async () => {
    const id = await create();
    expect((await refused(`DELETE /services/${id}`, { by: stranger })).code).toBe('forbidden');
    expect(catalog.get(id)?.status).toBe('active');
    expect((await call(`DELETE /services/${id}`, { by: admin })).status).toBe(200);
    // Gone, and to a stranger it never was.
    expect((await refused(`DELETE /services/${id}`, { by: stranger })).code).toBe('service_not_found');
    expect((await refused(`DELETE /services/${uuidv7()}`, { by: provider })).code).toBe('service_not_found');
  });
});
