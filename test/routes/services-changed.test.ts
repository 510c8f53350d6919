import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { uuidv7 } from '../../src/platform/ids.ts';
import { ask, bodyOf } from '../support/listings.ts';
import { until } from '../support/wait.ts';
import {
  admin,
  buyer,
  catalog,
  create,
  elsewhere,
  provider,
  refused,
  request,
  routesElsewhere,
  sql,
  stranger,
  useServices,
} from './use-services.ts';

useServices();

describe('PATCH /services/{id}', () => {
  it('changes the fields in its body and nothing else', async () => {
    const id = await create({ free_calls: 5 });
    const before = bodyOf(await request(`GET /services/${id}`, { by: provider }));
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
          const {
            price_label,
            free_calls_label,
            updated_at,
            provider: seller,
            ...rest
          } = bodyOf(await request(`PATCH /services/${id}`, { by: provider, body }));
          expected = { ...expected, ...body };
          expect(seller.services).toBe(rest.status === 'active' ? 1 : 0);
          expect(expected).toMatchObject(rest);
          expect(bodyOf(await request(`GET /services/${id}`, { by: provider }))).toMatchObject(rest);
        },
      ),
      { numRuns: 25 },
    );
  });

  it('takes effect at once on this gateway, and on other gateways through a message', async () => {
    const id = await create();
    await request(`PATCH /services/${id}`, { by: provider, body: { status: 'paused', price: 1 } });
    expect(catalog.get(id)).toMatchObject({ status: 'paused', priceMicros: 1_000_000 });
    await until(() => elsewhere.get(id)?.status === 'paused' && elsewhere.get(id)?.priceMicros === 1_000_000);
    expect(bodyOf(await ask(routesElsewhere, `GET /services/${id}`)).status).toBe('paused');
  });

  it('with free_calls null ends the free calls', async () => {
    const id = await create({ free_calls: 5 });
    const body = bodyOf(await request(`PATCH /services/${id}`, { by: provider, body: { free_calls: null } }));
    expect(body).not.toHaveProperty('free_calls');
    expect(catalog.get(id)?.freeCalls).toBe(0);
  });

  it('is for the owner and admins only', async () => {
    const id = await create();
    const body = { price: 0 };
    expect((await refused(`PATCH /services/${id}`, { by: stranger, body })).code).toBe('forbidden');
    expect((await refused(`PATCH /services/${id}`, { by: buyer, body })).code).toBe('forbidden');
    expect((await refused(`PATCH /services/${id}`, { body })).code).toBe('unauthorized');
    expect(catalog.get(id)?.priceMicros).toBe(2_000);
    const byAdmin = bodyOf(await request(`PATCH /services/${id}`, { by: admin, body }));
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

  it('answers 404 to everyone for a removed or unknown service', async () => {
    const id = await create();
    await request(`DELETE /services/${id}`, { by: provider });
    for (const by of [provider, stranger, admin]) {
      for (const which of [id, uuidv7(), 'no-id']) {
        const error = await refused(`PATCH /services/${which}`, { by, body: { status: 'active' } });
        expect(error.code).toBe('service_not_found');
      }
    }
  });
});

describe('DELETE /services/{id}', () => {
  it('removes the listing for good, keeps its row, and gives the same answer when repeated', async () => {
    const id = await create();
    await until(() => elsewhere.get(id));
    const first = await request(`DELETE /services/${id}`, { by: provider });
    expect(first.status).toBe(200);
    expect(bodyOf(first)).toMatchObject({ id, status: 'removed' });
    expect(catalog.get(id)).toBeUndefined();
    await until(() => elsewhere.get(id) === undefined);
    expect(bodyOf(await request(`DELETE /services/${id}`, { by: provider }))).toEqual(bodyOf(first));
    expect(await sql`SELECT status FROM services WHERE id = ${id}`).toEqual([{ status: 'removed' }]);
  });

  it('is for the owner and admins only', async () => {
    const id = await create();
    expect((await refused(`DELETE /services/${id}`, { by: stranger })).code).toBe('forbidden');
    expect(catalog.get(id)?.status).toBe('active');
    expect((await request(`DELETE /services/${id}`, { by: admin })).status).toBe(200);
    // To a stranger, a removed listing looks like one that never existed.
    expect((await refused(`DELETE /services/${id}`, { by: stranger })).code).toBe('service_not_found');
    expect((await refused(`DELETE /services/${uuidv7()}`, { by: provider })).code).toBe('service_not_found');
  });
});
