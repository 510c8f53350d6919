import { describe, expect, it } from 'vitest';
import { bodyOf } from '../support/listings.ts';
import { admin, create, provider, refused, request, sql, stranger, useServices } from './use-services.ts';

useServices();

const get = (path: string, more: object = {}) => ({ method: 'GET', path, summary: `Reads ${path}`, ...more });
const FULL = { price: 0.001, input: { type: 'object' }, output: { type: 'object' }, example: { query: { a: 1 } } };
const MANY = Array.from({ length: 28 }, (_, index) => get(`/o${index}`, FULL));
const patch = async (id: string, body: object, query = '') =>
  bodyOf(await request(`PATCH /services/${id}${query}`, { by: provider, body }));
const operationsOf = async (id: string) => bodyOf(await request(`GET /services/${id}`)).operations;

describe('PATCH operations', () => {
  it('with one price changes that price, and leaves all other operations as they are', async () => {
    const id = await create({ operations: MANY });
    const { operations } = await patch(id, { operations: [{ method: 'GET', path: '/o5', price: 0.0005 }] });
    const expected = MANY.map((operation) => (operation.path === '/o5' ? { ...operation, price: 0.0005 } : operation));
    expect(operations).toEqual(expected);
    expect(await operationsOf(id)).toEqual(expected);
  });

  it('clears fields, removes and adds operations, and removes all of them if it is null', async () => {
    const id = await create({ operations: [get('/a', FULL), get('/b', FULL)] });
    const changes = [
      { method: 'GET', path: '/a', price: null, input: null, output: null, example: null },
      { method: 'GET', path: '/b', remove: true },
      get('/c'),
    ];
    expect((await patch(id, { operations: changes })).operations).toEqual([get('/a'), get('/c')]);
    expect((await patch(id, { operations: null })).operations).toEqual([]);
  });

  it('checks all rules on the result, and names each fault', async () => {
    const id = await create({ price: 0.001, operations: MANY });
    const refusalOf = async (...operations: object[]) =>
      (await refused(`PATCH /services/${id}`, { by: provider, body: { operations } })).message;
    expect(await refusalOf({ method: 'GET', path: '/o1', price: 1 })).toMatch(
      /^operations: .* with only_operations: true/,
    );
    expect(await refusalOf({ method: 'GET', path: '/new', price: 0 })).toBe('operations.0.summary: is required.');
    expect(await refusalOf({ method: 'GET', path: '/o1', summary: null })).toBe('operations.0.summary: is required.');
    expect(await refusalOf({ method: 'GET', path: '/gone', remove: true })).toMatch(
      /^operations\.0: cannot be removed/,
    );
    expect(await refusalOf({ price: 1 })).toBe('operations.0.method: is required.');
    expect(await refusalOf({ tool: 'search' })).toBe('operations.0.method: is required.');
    expect(await refusalOf({ method: 'GET', path: '/o1', remove: false })).toMatch(/^operations\.0\.remove: /);
    expect(await refusalOf()).toBe('operations: an empty list changes nothing; null removes them all.');
    const all = MANY.map(({ method, path }) => ({ method, path, remove: true }));
    await patch(id, { only_operations: true });
    expect(await refusalOf(...all)).toMatch(/^only_operations: needs operations/);
    expect(await operationsOf(id)).toEqual(MANY);
  });

  it('changes tools of an MCP server by name', async () => {
    const id = await create({ protocol: 'mcp', operations: [{ tool: 'search', price: 0.001 }, { tool: 'read' }] });
    const { operations } = await patch(id, { operations: [{ tool: 'read', summary: 'Reads' }] });
    expect(operations).toEqual([
      { tool: 'search', price: 0.001 },
      { tool: 'read', summary: 'Reads' },
    ]);
    const body = { operations: [get('/a')] };
    const refusal = await refused(`PATCH /services/${id}`, { by: provider, body });
    expect(refusal.message).toBe('operations.0.tool: is required.');
  });

  it('loses no concurrent change: each change is made, or gets 409', async () => {
    const id = await create({ operations: MANY });
    const wanted = MANY.slice(0, 12).map(({ method, path }, index) => ({ method, path, price: index / 10_000 }));
    const answers = await Promise.all(
      wanted.map((change) =>
        request(`PATCH /services/${id}`, { by: provider, body: { operations: [change] } }).then(
          () => true,
          (error: { code?: string }) => {
            expect(error.code).toBe('conflict');
            return false;
          },
        ),
      ),
    );
    expect(answers).toContain(true);
    const stored = await operationsOf(id);
    for (const [index, { path, price }] of wanted.entries()) {
      const found = stored.find((operation: { path: string }) => operation.path === path);
      expect(found.price).toBe(answers[index] ? price : 0.001);
    }
    expect(stored).toHaveLength(28);
  });
});

describe('PUT /services/{id}/operations', () => {
  const put = (id: string, body: object, by = provider, query = '') =>
    request(`PUT /services/${id}/operations${query}`, { by, body });

  it('replaces all operations, together with only_operations', async () => {
    const id = await create({ operations: MANY });
    const operations = [get('/a', { price: 5 })];
    const dear = await refused(`PUT /services/${id}/operations`, { by: provider, body: { operations } });
    expect(dear.message).toContain('only_operations: true');
    expect(bodyOf(await put(id, { operations, only_operations: true }))).toMatchObject({
      operations,
      only_operations: true,
    });
    expect(bodyOf(await put(id, { operations: [], only_operations: false }, admin))).toMatchObject({ operations: [] });
    expect(await operationsOf(id)).toEqual([]);
  });

  it('is for the owner of the listing and admins only', async () => {
    const id = await create();
    const body = { operations: [] };
    const asked = (by: typeof provider) => refused(`PUT /services/${id}/operations`, { by, body });
    expect((await asked(stranger)).code).toBe('forbidden');
    await request(`DELETE /services/${id}`, { by: provider });
    expect((await asked(provider)).code).toBe('service_not_found');
  });
});

describe('dry_run=true', () => {
  it('gets the answer that the change would get, including errors, and changes nothing', async () => {
    const id = await create({ price: 0.001, operations: MANY });
    const before = await request(`GET /services/${id}`, { by: provider });
    const change = { price: 0.5, operations: [{ method: 'GET', path: '/o0', price: 0.4 }] };
    const tried = await patch(id, change, '?dry_run=true');
    expect(tried.price).toBe(0.5);
    expect(tried.operations).toEqual([{ ...MANY[0], price: 0.4 }, ...MANY.slice(1)]);
    const body = { operations: [get('/a')] };
    const put = await request(`PUT /services/${id}/operations?dry_run=true`, { by: admin, body });
    expect(bodyOf(put).operations).toEqual(body.operations);
    const dear = { operations: [{ method: 'GET', path: '/o0', price: 4 }] };
    const refusal = await refused(`PATCH /services/${id}?dry_run=true`, { by: provider, body: dear });
    expect(refusal.message).toContain('only_operations: true');
    expect(await request(`GET /services/${id}`, { by: provider })).toEqual(before);
    expect(await sql`SELECT FROM audit WHERE subject_id = ${id}`).toHaveLength(0);
    expect(bodyOf(await request(`PATCH /services/${id}`, { by: provider, body: change })).operations).toEqual(
      tried.operations,
    );
  });

  it('shows no secret, because the generated secret is not kept', async () => {
    const id = await create();
    expect(await patch(id, { signed: true }, '?dry_run=true')).not.toHaveProperty('signing_secret');
    expect(bodyOf(await request(`GET /services/${id}`, { by: provider })).signed).toBe(false);
    expect(await patch(id, { signed: true })).toHaveProperty('signing_secret');
  });
});
