import { describe, expect, it } from 'vitest';
import { readyCall } from '../../../src/catalog/ready-call.ts';
import { makeListing } from '../../support/listings.ts';
import { answering, documentOf, ENDPOINT, importHere } from './support.ts';

const GOOD = { responses: { 200: { description: 'Good' } } };
const pathsOf = async (document: object, endpoint = ENDPOINT): Promise<string[]> =>
  (await importHere(document, { endpoint })).operations.map(({ method, path }) => `${method} ${path}`);
/** The one operation of a document with one path. */
const only = async (operation: object, fields: object = {}) =>
  (await importHere(documentOf({ '/a': { post: operation } }, fields))).operations[0];

describe('a path becomes a template', () => {
  it.each([
    ['/pets', '/pets'],
    ['/pets/', '/pets/'],
    ['/', '/'],
    ['/pets/{id}/toys/{toy}', '/pets/{id}/toys/{toy}'],
    ['/pets/{pet-id}', '/pets/{pet_id}'],
    ['/pets/{pet-id}/{pet.id}', '/pets/{pet_id}/{pet_id_2}'],
    ['/{2nd}', '/{_2nd}'],
    ['/größe', '/gr%C3%B6%C3%9Fe'],
  ])('%s → %s', async (path, template) => {
    expect(await pathsOf(documentOf({ [path]: { get: GOOD } }))).toEqual([`GET ${template}`]);
  });

  it.each([
    ['/pets/{id}.json', 'only as a whole segment'],
    ['/{a}-{b}', 'only as a whole segment'],
    ['/files/{path*}', 'only as a whole segment'],
    ['/files/*', 'stands for the rest of a path'],
    ['/{id}/{id}', 'twice'],
    ['/pets?kind=dog', 'must be percent-encoded'],
    ['/a//b', 'two slashes'],
    ['/a/../b', 'dot segments'],
  ])('%s is reported and left out', async (path, reason) => {
    const imported = await importHere(documentOf({ [path]: { get: GOOD }, '/good': { get: GOOD } }));
    expect(imported.operations).toMatchObject([{ path: '/good' }]);
    expect(imported.skipped).toEqual([{ method: 'GET', path, reason: expect.stringContaining(reason) }]);
  });

  it('is relative to the endpoint', async () => {
    const from = (endpoint: string, url: string | null, path = '/pets') =>
      pathsOf(documentOf({ [path]: { get: GOOD } }, url === null ? {} : { servers: [{ url }] }), endpoint);
    expect(await from('http://h.example', 'https://other.example/v1')).toEqual(['GET /v1/pets']);
    expect(await from('http://h.example/v1/', '/v1')).toEqual(['GET /pets']);
    expect(await from('http://h.example/api', 'http://h.example/api/v2/')).toEqual(['GET /v2/pets']);
    expect(await from('http://h.example/v1', 'http://h.example', '/v1/pets')).toEqual(['GET /pets']);
    expect(await from('http://h.example/v1', 'http://h.example', '/v1')).toEqual(['GET /']);
    // The document does not know where it is served.
    expect(await from('http://h.example/v1', null)).toEqual(['GET /pets']);
    expect(await from('http://h.example/v1', '/')).toEqual(['GET /pets']);
    expect(await from('http://h.example/v1', 'https://other.example')).toEqual(['GET /pets']);
    // It knows, and the endpoint is elsewhere.
    expect(await from('http://h.example/v1', 'http://h.example')).toEqual([]);
    expect(await from('http://h.example/v1', '/v2')).toEqual([]);
    expect(await from('http://h.example/v1', '/v10')).toEqual([]);
    // The server at the endpoint's origin counts, not the first; and the innermost list of servers.
    const servers = [{ url: 'https://sandbox.example/s' }, { url: 'http://h.example/v1' }];
    expect(await pathsOf(documentOf({ '/pets': { get: GOOD } }, { servers }), 'http://h.example')).toEqual([
      'GET /v1/pets',
    ]);
    const inner = { servers: [{ url: '/{at}', variables: { at: { default: 'inner' } } }], get: GOOD };
    expect(await pathsOf(documentOf({ '/pets': inner }, { servers }), 'http://h.example')).toEqual(['GET /inner/pets']);
  });

  it('that is another spelling of an earlier path is left out', async () => {
    const paths = { '/pets/{id}': { get: GOOD }, '/PETS/{name}': { get: GOOD, delete: GOOD } };
    const { operations, skipped } = await importHere(documentOf(paths));
    expect(operations.map(({ method }) => method)).toEqual(['GET', 'DELETE']);
    expect(skipped).toMatchObject([{ path: '/PETS/{name}', reason: expect.stringContaining('/pets/{id}') }]);
  });
});

describe('an operation', () => {
  it('is created for each method that a listing may have; other methods are reported', async () => {
    const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];
    const item = Object.fromEntries(methods.map((method) => [method, GOOD]));
    const { operations, skipped } = await importHere(documentOf({ '/a': item }));
    expect(operations.map(({ method }) => method)).toEqual(['GET', 'PUT', 'POST', 'DELETE', 'PATCH']);
    expect(skipped.map(({ method }) => method)).toEqual(['OPTIONS', 'HEAD', 'TRACE']);
  });

  it.each([
    [{ summary: 'Short', description: 'Long.' }, 'Short'],
    [{ description: 'One.  Two.' }, 'One.'],
    [{ description: 'Version 2.5 of it\n\nMore' }, 'Version 2.5 of it'],
    [{ description: '日本語。次', operationId: 'x' }, '日本語。'],
    [{ operationId: 'addPet' }, 'addPet'],
    [{ summary: ' \u0000\n' }, 'POST /a'],
    [{ summary: 'Old', deprecated: true }, 'Deprecated. Old'],
    [{ summary: '🐈'.repeat(300) }, `${'🐈'.repeat(199)}…`],
  ])('has a summary: %j', async (fields, summary) => {
    expect(await only({ ...GOOD, ...fields })).toMatchObject({ summary });
  });

  it('beyond the 200th is reported, in the order of the document', async () => {
    const paths = Object.fromEntries(Array.from({ length: 701 }, (_, i) => [`/p${i}`, { get: GOOD }]));
    const { operations, skipped, skippedTotal } = await importHere(documentOf(paths));
    expect([operations.length, operations.at(-1)?.path, skipped.length, skippedTotal]).toEqual([
      200,
      '/p199',
      500,
      501,
    ]);
  });

  it('reports that callbacks were dropped, and the document reports that webhooks were dropped', async () => {
    const callbacks = { done: { '{$request.body#/url}': { post: GOOD } } };
    const document = documentOf({ '/a': { get: { ...GOOD, callbacks } } }, { webhooks: { newPet: { post: GOOD } } });
    const { operations, skipped, changed } = await importHere(document);
    expect(operations).toHaveLength(1);
    expect(changed).toEqual([{ method: 'GET', path: '/a', note: 'its callbacks are left out' }]);
    expect(skipped).toMatchObject([{ path: 'newPet', reason: expect.stringContaining('webhook') }]);
  });
});

describe('the price of an operation', () => {
  const prices = [{ method: 'GET', path: '/pets/{name}', price: 0.5 }];
  const importing = (operation: object, path = '/pets/{id}') =>
    importHere(documentOf({ [path]: { get: operation } }), { prices });

  it('is its x-price, and 0 is a valid price', async () => {
    expect((await importing({ ...GOOD, 'x-price': 0 })).operations).toMatchObject([{ price: 0 }]);
    const byUse = await importing({ ...GOOD, 'x-price': 0.5, 'x-max-price': 2 });
    expect(byUse.operations).toMatchObject([{ price: 0.5, max_price: 2 }]);
    const refused = importing({ ...GOOD, 'x-price': 0.5, 'x-max-price': 0.4 });
    await expect(refused).rejects.toThrow('x-max-price: must be at least x-price.');
  });

  it('keeps its old value if the document has none, whatever the name in braces is', async () => {
    const { operations, changed } = await importing(GOOD);
    expect(operations).toMatchObject([{ price: 0.5 }]);
    expect(changed).toMatchObject([{ note: 'keeps its price of 0.5 USD, as the document has none' }]);
  });

  it('is not lost silently', async () => {
    const { operations, changed } = await importing(GOOD, '/cats/{id}');
    expect(operations[0]).not.toHaveProperty('price');
    expect(changed).toEqual([
      { method: 'GET', path: '/pets/{name}', note: 'is no longer an operation; its price of 0.5 USD is gone' },
    ]);
  });

  it.each(['0.5', -1, 0.0000001, 1e9, null])('that is %j makes the whole document refused', async (price) => {
    await expect(importing({ ...GOOD, 'x-price': price })).rejects.toThrow(/^GET \/pets\/\{id\}: x-price: /);
  });
});

describe('the input of an operation', () => {
  it('has path, query, headers and body, and says which are required', async () => {
    const parameters = [
      { name: 'user-id', in: 'path', required: true, schema: { type: 'integer' } },
      { name: 'limit', in: 'query', description: 'How many', schema: { type: 'integer', default: 10 } },
      { name: 'tags', in: 'query', required: true, schema: { type: 'array', items: { type: 'string' } } },
      { name: 'X-Trace', in: 'header', schema: { type: 'string' } },
      { name: 'X-Api-Key', in: 'header', schema: { type: 'string' } },
      { name: 'Accept', in: 'header', schema: { type: 'string' } },
      { name: 'session', in: 'cookie', schema: { type: 'string' } },
    ];
    const content = { 'text/plain': {}, 'application/vnd.x+json; charset=utf-8': { schema: { type: 'object' } } };
    const item = {
      parameters: parameters.slice(0, 2),
      post: { ...GOOD, parameters: parameters.slice(2), requestBody: { required: true, content } },
    };
    const { operations, changed } = await importHere(documentOf({ '/u/{user-id}/{other}': item }));
    expect(operations[0]?.input).toEqual({
      type: 'object',
      required: ['path', 'query', 'body'],
      properties: {
        path: {
          type: 'object',
          required: ['other', 'user_id'],
          properties: { other: { type: 'string' }, user_id: { type: 'integer' } },
        },
        query: {
          type: 'object',
          required: ['tags'],
          properties: {
            limit: { type: 'integer', default: 10, description: 'How many' },
            tags: { type: 'array', items: { type: 'string' }, description: 'Repeated for each value.' },
          },
        },
        headers: { type: 'object', properties: { 'X-Trace': { type: 'string' } } },
        body: { type: 'object', contentMediaType: 'application/vnd.x+json; charset=utf-8' },
      },
    });
    expect(changed.map(({ note }) => note)).toEqual([
      'the path parameter user-id is renamed to user_id',
      'the header X-Api-Key is left out: the gateway does not forward it',
      'the cookie session is left out: the gateway does not forward it',
      'the body is application/vnd.x+json; charset=utf-8, as its schema says',
      'the body is described as application/vnd.x+json; charset=utf-8 only; left out: text/plain',
    ]);
  });

  it('is absent if there is nothing to send', async () => {
    expect(await only(GOOD)).not.toHaveProperty('input');
  });

  it('says what kind of body it is if the body is not JSON', async () => {
    const content = { 'application/x-www-form-urlencoded': { schema: { type: 'object', properties: { a: {} } } } };
    const body = { type: 'object', properties: { a: {} }, contentMediaType: 'application/x-www-form-urlencoded' };
    expect(await only({ ...GOOD, requestBody: { content } })).toMatchObject({ input: { properties: { body } } });
  });
});

describe('a schema', () => {
  it.each([
    [{ type: 'string', nullable: true }, { type: ['string', 'null'] }],
    [
      { type: 'string', nullable: true, enum: ['a'] },
      { type: ['string', 'null'], enum: ['a', null] },
    ],
    [{ nullable: true, allOf: [{ type: 'object' }] }, { anyOf: [{ allOf: [{ type: 'object' }] }, { type: 'null' }] }],
    [
      { type: 'integer', minimum: 1, exclusiveMinimum: true },
      { type: 'integer', exclusiveMinimum: 1 },
    ],
    [
      { type: 'integer', maximum: 9, exclusiveMaximum: false },
      { type: 'integer', maximum: 9 },
    ],
    [
      { type: 'string', example: 'x', 'x-internal': 1, xml: { name: 'x' } },
      { type: 'string', examples: ['x'] },
    ],
    [
      { $ref: '#/components/schemas/Pet', description: 'ignored' },
      { type: 'object', title: 'Pet' },
    ],
  ])('of OpenAPI 3.0 becomes JSON Schema: %j', async (schema, output) => {
    const fields = { openapi: '3.0.3', components: { schemas: { Pet: { type: 'object', title: 'Pet' } } } };
    expect((await only(answering(schema), fields))?.output).toEqual(output);
  });

  it.each([
    [true, true],
    [
      { type: ['string', 'null'], const: 'a' },
      { type: ['string', 'null'], const: 'a' },
    ],
    [
      { $ref: '#/components/schemas/%50et', description: 'Mine' },
      { type: 'object', description: 'Mine' },
    ],
    [{ $ref: '#/components/schemas/%50et', type: 'string' }, { allOf: [{ type: 'object' }, { type: 'string' }] }],
    [{ properties: { constructor: { type: 'string' } } }, { properties: { constructor: { type: 'string' } } }],
    [{ enum: [{ $ref: 'just data' }] }, { enum: [{ $ref: 'just data' }] }],
  ])('of OpenAPI 3.1 stays unchanged, with its references resolved: %j', async (schema, output) => {
    const fields = { components: { schemas: { Pet: { type: 'object' } } } };
    expect((await only(answering(schema), fields))?.output).toEqual(output);
  });

  it('that contains itself is cut where it repeats, and says so', async () => {
    const Node = { type: 'object', properties: { next: { $ref: '#/components/schemas/Node' } } };
    const document = documentOf(
      { '/a': { get: answering({ $ref: '#/components/schemas/Node' }) } },
      { components: { schemas: { Node } } },
    );
    const { operations, changed } = await importHere(document);
    const next = { type: 'object', description: 'Node again: it contains itself.' };
    expect(operations).toMatchObject([{ output: { type: 'object', properties: { next } } }]);
    expect(changed).toMatchObject([{ note: 'output: Node contains itself and is shown once' }]);
  });

  it.each([
    ['#/components/schemas/Nobody', 'leads nowhere'],
    ['#/constructor', 'leads nowhere'],
    ['#/components/__proto__/toString', 'leads nowhere'],
    ['#anchor', 'is not a JSON pointer'],
    ['other.json#/Pet', 'leads out of the document and is not followed'],
  ])('whose reference is %s gets a note that says so', async (reference, fault) => {
    const { operations, changed } = await importHere(documentOf({ '/a': { get: answering({ $ref: reference }) } }));
    expect(operations).toMatchObject([{ output: { description: expect.stringContaining(fault) } }]);
    expect(changed).toMatchObject([{ note: expect.stringContaining(fault) }]);
  });

  it('that is too large loses first its references, then everything, and outputs before inputs', async () => {
    const wide = (length: number) => ({ type: 'object', description: 'x'.repeat(length) });
    const schemas = {
      Deep: { type: 'object', properties: { big: { $ref: '#/components/schemas/Big' } } },
      Big: wide(20_000),
    };
    const requestBody = { content: { 'application/json': { schema: wide(1_000) } } };
    const paths = Object.fromEntries(
      Array.from({ length: 200 }, (_, i) => [`/p${i}`, { post: { ...answering(wide(900)), requestBody } }]),
    );
    const deep = answering({ $ref: '#/components/schemas/Deep' });
    const document = documentOf({ '/deep': { get: deep }, ...paths }, { components: { schemas } });
    const { operations, changed } = await importHere(document);
    expect(operations[0]?.output).toMatchObject({
      properties: { big: { type: 'object', description: expect.stringContaining('Big') } },
    });
    const [inputs, outputs] = [operations.filter(({ input }) => input), operations.filter(({ output }) => output)];
    expect(inputs).toHaveLength(199);
    expect(outputs.length).toBeLessThan(60);
    expect(changed.filter(({ note }) => note.startsWith('output: is left out'))).toHaveLength(200 - outputs.length);
  });
});

it('an example has the query, body and response that the document shows', async () => {
  const media = { examples: { first: { $ref: '#/components/examples/Pet' } } };
  const operation = {
    parameters: [
      { name: 'q', in: 'query', example: 'cats', schema: {} },
      { name: 'n', in: 'query', schema: { examples: [5] } },
    ],
    requestBody: { content: { 'application/json': media } },
    responses: {
      default: { description: 'Fault', content: { 'application/json': { example: 'wrong' } } },
      201: { description: 'Made', content: { 'application/json': { schema: { example: { id: 1 } } } } },
    },
  };
  const fields = { components: { examples: { Pet: { value: { name: 'Tom\u0000' } } } } };
  const example = { query: { q: 'cats', n: 5 }, body: { name: 'Tom' }, response: { id: 1 } };
  expect((await only(operation, fields))?.example).toEqual(example);
});

it('examples for path and headers are in their schemas, where a ready request finds them', async () => {
  const operation = answering(
    {},
    {
      parameters: [
        { name: 'id', in: 'path', required: true, example: 'cat-7', schema: { $ref: '#/components/schemas/Id' } },
        { name: 'X-Plan', in: 'header', required: true, examples: { a: { value: 'free' } }, schema: {} },
        { name: 'X-Own', in: 'header', schema: { type: 'string', examples: ['own'] } },
        { name: 'q', in: 'query', example: 'cats', schema: { type: 'string' } },
      ],
    },
  );
  const document = documentOf(
    { '/pets/{id}/{part}': { get: operation } },
    { components: { schemas: { Id: { type: 'string', examples: ['any'] } } } },
  );
  const [imported] = (await importHere(document)).operations;
  expect(imported?.input).toMatchObject({
    properties: {
      path: { properties: { part: { type: 'string' }, id: { type: 'string', examples: ['cat-7'] } } },
      headers: { properties: { 'X-Plan': { examples: ['free'] }, 'X-Own': { type: 'string', examples: ['own'] } } },
      query: { properties: { q: { type: 'string' } } },
    },
  });
  expect(imported?.example).toEqual({ query: { q: 'cats' } });
  const { url, headers } = readyCall(makeListing(), imported === undefined ? [] : [imported], '');
  expect(url).toMatch(/\/pets\/cat-7\/\{part\}\?q=cats$/);
  expect(headers).toHaveProperty('X-Plan', 'free');
});
