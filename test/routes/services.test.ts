import { describe, expect, it } from 'vitest';
import { Catalog } from '../../src/catalog/catalog.ts';
import { OperationsReader } from '../../src/catalog/operations/operations-reader.ts';
import { PROXY_PREFIX } from '../../src/gate/caller-io.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { parseTarget } from '../../src/proxy/target.ts';
import { servicesRoutes } from '../../src/routes/services.ts';
import { AddressPolicy } from '../../src/upstream/index.ts';
import { addKeyTo } from '../support/accounts.ts';
import { ask, bodyOf, NO_NOTICE, NO_WATCH, refusalOf } from '../support/listings.ts';
import { until } from '../support/wait.ts';
import {
  addresses,
  admin,
  BODY,
  buyer,
  catalog,
  create,
  log,
  post,
  provider,
  refused,
  request,
  secrets,
  sql,
  stranger,
  useServices,
} from './use-services.ts';

useServices();

describe('GET /services/{id}', () => {
  it('shows the whole description to everyone, and the endpoint only to its provider and to admins', async () => {
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
      const body = bodyOf(await request(`GET /services/${id}`, by === undefined ? {} : { by }));
      expect(body.description).toBe(description);
      expect(body.endpoint).toBe(sees ? BODY.endpoint : undefined);
    }
  });

  it('writes labels in the language of lang, or else of Accept-Language', async () => {
    const id = await create();
    const response = await request(`GET /services/${id}?lang=ko`, { headers: { 'accept-language': 'fr' } });
    expect(response.headers).toEqual({ 'Content-Language': 'ko', Vary: 'Accept-Language' });
    expect(bodyOf(response).price_label).toBe('호출당 $0.002');
    const french = await request(`GET /services/${id}`, { headers: { 'accept-language': 'fr' } });
    expect(french.headers?.['Content-Language']).toBe('fr');
    expect((await refused(`GET /services/${id}?lang=pt`)).code).toBe('invalid_request');
  });

  it('shows a draft, which no search finds until it is made active', async () => {
    const { id, status } = bodyOf(
      await request('POST /services', { by: provider, body: { ...BODY, status: 'paused' } }),
    );
    expect([status, catalog.get(id)?.status]).toEqual(['paused', 'paused']);
    await request(`PATCH /services/${id}`, { by: provider, body: { status: 'active' } });
    expect(catalog.get(id)?.status).toBe('active');
    const removed = request('POST /services', { by: provider, body: { ...BODY, status: 'removed' } });
    expect((await refusalOf(removed)).message).toMatch(/^status: /);
  });

  it('shows a paused service with its status', async () => {
    const id = await create();
    await request(`PATCH /services/${id}`, { by: provider, body: { status: 'paused' } });
    expect(bodyOf(await request(`GET /services/${id}`)).status).toBe('paused');
  });

  it('shows a removed service only to its provider and to admins', async () => {
    const id = await create();
    await request(`DELETE /services/${id}`, { by: provider });
    for (const by of [provider, admin]) {
      expect(bodyOf(await request(`GET /services/${id}`, { by })).status).toBe('removed');
    }
    for (const asked of [{}, { by: buyer }, { by: stranger }]) {
      expect((await refused(`GET /services/${id}`, asked)).code).toBe('service_not_found');
    }
  });

  it.each([uuidv7(), 'no-id', "'; DROP TABLE services; --".replaceAll(' ', '%20')])(
    'answers 404 for %s',
    async (id) => {
      for (const asked of [{}, { by: provider }]) {
        expect((await refused(`GET /services/${id}`, asked)).code).toBe('service_not_found');
      }
    },
  );

  it('answers 404 for an id in capitals, as a proxy path does', async () => {
    const id = (await create()).toUpperCase();
    for (const asked of [{}, { by: provider }]) {
      expect((await refused(`GET /services/${id}`, asked)).code).toBe('service_not_found');
    }
    expect(catalog.get(parseTarget(`${PROXY_PREFIX}${id}/`).serviceId)).toBeUndefined();
  });

  it('is unavailable, rather than not found, before the catalog is loaded', async () => {
    const id = await create();
    const unloaded = servicesRoutes({
      catalog: new Catalog({ sql, log }),
      sql,
      operations: new OperationsReader(sql),
      maxListings: 20,
      addresses,
      notice: NO_NOTICE,
      watch: NO_WATCH,
      secrets,
    });
    expect((await refusalOf(ask(unloaded, `GET /services/${id}`))).code).toBe('unavailable');
  });
});

describe('GET /services?mine=true', () => {
  const list = async (query: string, by = provider) => bodyOf(await request(`GET /services${query}`, { by }));
  // Ids that are made in the same millisecond are in no order.
  const createLater = async () => {
    const nowMs = Date.now();
    await until(() => Date.now() > nowMs);
    return create();
  };
  const idsOf = (page: { services: { id: string }[] }) => page.services.map(({ id }) => id);

  it("shows the account's own listings, newest first: active and paused ones, but no removed ones", async () => {
    const [first, second, third] = [await createLater(), await createLater(), await createLater()];
    await create({}, stranger);
    await request(`PATCH /services/${first}`, { by: provider, body: { status: 'paused' } });
    await request(`DELETE /services/${second}`, { by: provider });
    const page = await list('?mine=true');
    expect(idsOf(page)).toEqual([third, first]);
    expect(page.services[1]).toMatchObject({ status: 'paused', endpoint: BODY.endpoint });
    expect(page).not.toHaveProperty('next_cursor');
  });

  it('shows each listing on exactly one page', async () => {
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

  it.each(['', '?mine=false'])('refers to /discover if mine=true is missing: %j', async (query) => {
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

describe('an account with its maximum number of listings', () => {
  it('gets 409 for one more, even in concurrent requests and after removing recent ones; other accounts do not', async () => {
    const answers = await Promise.allSettled(Array.from({ length: 25 }, () => post(BODY)));
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(20);
    const refusal = await refused('POST /services', { by: provider, body: BODY });
    expect(refusal).toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('may have at most 20 listings'),
    });
    const [one] = await sql<{ id: string }[]>`
      SELECT id FROM services WHERE provider_id = ${provider.accountId} LIMIT 1`;
    const { id } = one as { id: string };
    expect((await request(`DELETE /services/${id}`, { by: provider })).status).toBe(200);
    expect((await refused('POST /services', { by: provider, body: BODY })).code).toBe('conflict');
    await sql`UPDATE services SET created_at = now() - interval '25 hours' WHERE id = ${id}`;
    expect((await post(BODY)).status).toBe(201);
    expect((await post(BODY, stranger)).status).toBe(201);
  });
});

describe('a web page of another site', () => {
  const page = { headers: { origin: 'http://evil.example', host: '127.0.0.1:8080' } };

  it('cannot choose an endpoint if the operator allows private addresses, because it could read services there', async () => {
    const id = await create();
    const by = provider;
    for (const [line, body] of [
      ['POST /services', BODY],
      [`PATCH /services/${id}`, { endpoint: 'http://name.example/' }],
    ] as const) {
      expect(await refused(line, { ...page, by, body })).toMatchObject({
        code: 'forbidden',
        message: expect.stringContaining('endpoint: a web page of another origin'),
      });
    }
    expect(bodyOf(await request(`GET /services/${id}`, { by })).endpoint).toBe(BODY.endpoint);
    expect((await request(`PATCH /services/${id}`, { ...page, by, body: { price: 1 } })).status).toBe(200);
  });

  it('can choose an endpoint on a gateway that calls the public internet only', async () => {
    const routes = servicesRoutes({
      catalog,
      sql,
      operations: new OperationsReader(sql),
      maxListings: 20,
      addresses: new AddressPolicy([]),
      notice: NO_NOTICE,
      watch: NO_WATCH,
      secrets,
    });
    expect((await ask(routes, 'POST /services', { ...page, by: provider, body: BODY })).status).toBe(201);
  });
});
