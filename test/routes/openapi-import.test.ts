import { beforeAll, expect, it } from 'vitest';
import { OpenApiImporter } from '../../src/catalog/openapi-import/importer.ts';
import { OperationsReader } from '../../src/catalog/operations/operations-reader.ts';
import type { Route } from '../../src/http/route.ts';
import { openApiImportRoutes } from '../../src/routes/openapi-import.ts';
import { answering, documentOf, importHere } from '../catalog/openapi-import/support.ts';
import { type Asked, ask, bodyOf, NO_NOTICE, NO_WATCH, refusalOf } from '../support/listings.ts';
import { admin, buyer, catalog, create, provider, request, sql, stranger, useServices } from './use-services.ts';

useServices();

let routes: Route[];
/** Called when a document has been read, and before its operations are stored. */
let meanwhile: () => Promise<unknown> = async () => {};

beforeAll(() => {
  const importer = new OpenApiImporter();
  // Its thread takes most of a second to start: test/catalog/openapi-import/importer.test.ts and test/integration/openapi-import.test.ts.
  importer.import = async (bytes, listing) => {
    const imported = await importHere(Buffer.from(bytes).toString(), listing);
    await meanwhile();
    return imported;
  };
  routes = openApiImportRoutes({
    catalog,
    sql,
    operations: new OperationsReader(sql),
    importer,
    notice: NO_NOTICE,
    watch: NO_WATCH,
  });
});

const DOCUMENT = documentOf({ '/pets/{id}': { get: answering({ type: 'object' }) } });
const put = (id: string, asked: Asked) => ask(routes, `PUT /services/${id}/openapi`, { body: DOCUMENT, ...asked });
const refused = (id: string, asked: Asked) => refusalOf(put(id, asked));
const operationsOf = async (id: string) => bodyOf(await request(`GET /services/${id}`)).operations;

it('an import replaces the operations of a listing, and answers with the listing', async () => {
  const id = await create({ operations: [{ method: 'GET', path: '/old', summary: 'Old' }] });
  const { operations, skipped, skipped_total, changed, service } = bodyOf(await put(id, { by: provider }));
  const stored = [{ method: 'GET', path: '/pets/{id}', summary: 'GET /pets/{id}' }];
  expect([operations, skipped, skipped_total, changed]).toEqual([1, [], 0, []]);
  expect(service).toMatchObject({ id, operations: stored, endpoint: 'http://service.example/api' });
  expect(await operationsOf(id)).toEqual(service.operations);
  expect(catalog.get(id)?.operationTerms).toBe('[["GET","/pets/{id}",null,null]]');
});

it('a dry run answers as an import would, and changes nothing', async () => {
  const operations = [{ method: 'GET', path: '/old', summary: 'Old' }];
  const id = await create({ operations });
  const before = await request(`GET /services/${id}`, { by: provider });
  const trial = (asked: Asked) => ask(routes, `PUT /services/${id}/openapi?dry_run=true`, { body: DOCUMENT, ...asked });
  for (const by of [provider, admin]) {
    const { operations, skipped, service } = bodyOf(await trial({ by }));
    expect([operations, skipped]).toEqual([1, []]);
    expect(service).toMatchObject({ id, operations: [{ method: 'GET', path: '/pets/{id}' }] });
  }
  const byUse = documentOf({ '/a': { get: answering({}, { 'x-price': 0.001, 'x-max-price': 0.002 }) } });
  const { service } = bodyOf(await trial({ by: provider, body: byUse }));
  expect(service.operations).toMatchObject([{ path: '/a', price: 0.001, max_price: 0.002 }]);
  const dear = documentOf({ '/a': { get: answering({}, { 'x-price': 5 }) } });
  expect(await refusalOf(trial({ by: provider, body: dear }))).toMatchObject({
    message: expect.stringContaining('only_operations'),
  });
  expect(await refusalOf(trial({ by: stranger }))).toMatchObject({ code: 'forbidden' });
  expect(await request(`GET /services/${id}`, { by: provider })).toEqual(before);
  expect(await sql`SELECT FROM audit WHERE subject_id = ${id}`).toHaveLength(0);
});

it('only the owner of a listing and admins may import', async () => {
  const id = await create();
  expect(await refused(id, { by: stranger })).toMatchObject({ code: 'forbidden' });
  expect(await refused(id, { by: buyer })).toMatchObject({ code: 'forbidden' });
  expect(await refused(id, {})).toMatchObject({ code: 'unauthorized' });
  expect(await refused('not-an-id', { by: provider })).toMatchObject({ code: 'service_not_found' });
  expect(await operationsOf(id)).toEqual([]);
  expect(bodyOf(await put(id, { by: admin }))).toMatchObject({ operations: 1 });
  await request(`DELETE /services/${id}`, { by: provider });
  expect(await refused(id, { by: provider })).toMatchObject({ code: 'service_not_found' });
});

it('a document that cannot be imported leaves the listing as it is', async () => {
  const operations = [{ method: 'GET', path: '/old', summary: 'Old', price: 0 }];
  const id = await create({ operations });
  const mcp = await create({ protocol: 'mcp' });
  const dear = documentOf({ '/a': { get: answering({}, { 'x-price': 5 }) } });
  expect(await refused(id, { by: provider, body: dear })).toMatchObject({
    message: expect.stringContaining('only_operations'),
  });
  const nothing = await refused(id, { by: provider, body: documentOf({ '/{a}.{b}': { get: answering({}) } }) });
  expect(nothing).toMatchObject({
    code: 'invalid_request',
    message: expect.stringMatching(/None of .* GET \/\{a\}\.\{b\}: .* unchanged\.$/),
  });
  const empty = await refused(id, { by: provider, body: documentOf({}) });
  expect(empty).toMatchObject({ code: 'invalid_request', message: expect.stringContaining('has no operations') });
  expect(await refused(mcp, { by: provider })).toMatchObject({
    code: 'invalid_request',
    message: expect.stringMatching(/^protocol: /),
  });
  expect(await operationsOf(id)).toEqual(operations);
});

it('a first import with an expensive operation says which request to send, and that request is accepted', async () => {
  const id = await create();
  const dear = documentOf({
    '/a': { get: answering({}, { 'x-price': 5, tags: ['dear'] }) },
    '/b': { get: answering({}) },
  });
  const refusal = await refused(id, { by: provider, body: dear });
  expect(refusal.message).toContain('with an OpenAPI document, as ?only_operations=true');
  const patched = await refusalOf(request(`PATCH /services/${id}`, { by: provider, body: { only_operations: true } }));
  expect(patched.message).toContain('?only_operations=true');
  const line = `PUT /services/${id}/openapi?only_operations=true&tag=dear`;
  const { operations, tags, service } = bodyOf(await ask(routes, line, { by: provider, body: dear }));
  expect([operations, tags]).toEqual([1, [{ tag: 'dear', operations: 1 }]]);
  expect(service).toMatchObject({ only_operations: true, operations: [{ path: '/a', price: 5 }] });
  const unknown = ask(routes, `PUT /services/${id}/openapi?tag=cheap`, { by: provider, body: dear });
  expect(await refusalOf(unknown)).toMatchObject({ code: 'invalid_request', message: expect.stringMatching(/^tag: /) });
});

it('prices that a provider has set survive an import', async () => {
  const id = await create({ operations: [{ method: 'GET', path: '/pets/{name}', summary: 'A pet', price: 0.001 }] });
  const { changed, service } = bodyOf(await put(id, { by: provider }));
  expect(service.operations).toMatchObject([{ path: '/pets/{id}', price: 0.001 }]);
  expect(changed).toMatchObject([{ note: expect.stringContaining('keeps its price') }]);
});

it('an import does not overwrite a change of the listing that was made while its document was read', async () => {
  const id = await create({ operations: [{ method: 'GET', path: '/pets/{id}', summary: 'A pet', price: 0.001 }] });
  const operations = [{ method: 'GET', path: '/pets/{id}', summary: 'A pet', price: 0.002 }];
  meanwhile = () => request(`PATCH /services/${id}`, { by: provider, body: { operations } });
  const refusal = await refused(id, { by: provider });
  meanwhile = () => request(`DELETE /services/${id}`, { by: provider });
  expect(refusal).toMatchObject({ code: 'conflict' });
  expect(await operationsOf(id)).toEqual(operations);
  expect(await refused(id, { by: provider })).toMatchObject({ code: 'service_not_found' });
  meanwhile = async () => {};
});
