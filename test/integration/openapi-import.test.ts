import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { importWorker } from '../support/build.ts';
import { until } from '../support/wait.ts';
import { authorization, echo, type Key, Marketplace, startService, type TestService } from './marketplace.ts';

let market: Marketplace;
let service: TestService;
let buyer: Key;
beforeAll(async () => {
  // Compiled here, because a page has 5 s for its answer.
  importWorker();
  [market, service] = await Promise.all([Marketplace.start(), startService(echo)]);
  buyer = await market.buyer(1);
});
afterAll(async () => {
  await market.stop();
  await service.close();
});

const Pet = {
  type: 'object',
  required: ['id', 'name'],
  properties: {
    id: { type: 'integer', format: 'int64' },
    name: { type: 'string' },
    tag: { type: 'string', nullable: true },
    parent: { $ref: '#/components/schemas/Pet' },
  },
};
const ANSWER = (schema: object) => ({ description: 'Good', content: { 'application/json': { schema } } });

/** As generators write it: OpenAPI 3.0, a server with a path, parameters and answers in components. */
const PETSTORE_30 = {
  openapi: '3.0.3',
  info: { title: 'Pets', version: '1.0.0' },
  servers: [{ url: 'https://pets.example/v1' }],
  tags: [{ name: 'pets' }],
  security: [{ key: [] }],
  paths: {
    '/pets': {
      get: {
        operationId: 'listPets',
        summary: 'All pets',
        tags: ['pets'],
        parameters: [{ $ref: '#/components/parameters/Limit' }],
        responses: {
          200: ANSWER({ type: 'array', items: { $ref: '#/components/schemas/Pet' } }),
          default: { $ref: '#/components/responses/Fault' },
        },
      },
      post: {
        operationId: 'addPet',
        description: 'Adds a pet. It is told to nobody.',
        'x-price': 0.05,
        requestBody: {
          required: true,
          content: {
            'application/json': { schema: { $ref: '#/components/schemas/Pet' }, example: { id: 1, name: 'Tom' } },
          },
        },
        responses: { 201: ANSWER({ $ref: '#/components/schemas/Pet' }) },
      },
    },
    '/pets/{petId}': {
      parameters: [{ name: 'petId', in: 'path', required: true, schema: { type: 'integer' } }],
      get: { summary: 'One pet', 'x-price': 0, responses: { 200: ANSWER({ $ref: '#/components/schemas/Pet' }) } },
      options: { responses: { 204: { description: 'Nothing' } } },
    },
    '/pets/{petId}.{format}': { get: { responses: { 200: { description: 'Good' } } } },
  },
  components: {
    schemas: { Pet, Fault: { type: 'object', properties: { message: { type: 'string' } } } },
    parameters: {
      Limit: { name: 'limit', in: 'query', schema: { type: 'integer', maximum: 100, exclusiveMaximum: true } },
    },
    responses: { Fault: ANSWER({ $ref: '#/components/schemas/Fault' }) },
    securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'X-Api-Key' } },
  },
};

const PETSTORE_31 = {
  openapi: '3.1.0',
  info: { title: 'Pets', version: '2.0.0', summary: 'Pets again' },
  paths: {
    '/owners/{owner-id}': {
      $ref: '#/components/pathItems/Owner',
    },
  },
  webhooks: { newPet: { post: { responses: { 200: { description: 'Good' } } } } },
  components: {
    pathItems: {
      Owner: {
        get: {
          summary: 'An owner',
          responses: { 200: ANSWER({ type: ['object', 'null'], properties: { kind: { const: 'owner' } } }) },
        },
      },
    },
  },
};

const list = async (fields: object): Promise<string> => {
  const body = { name: 'Pets', description: '', category: 'test', price: 0.01, endpoint: service.url, ...fields };
  return (await market.json<{ id: string }>('/api/v1/services', { key: market.provider, method: 'POST', body })).id;
};
const put = (id: string, document: string, key = market.provider): Promise<Response> =>
  fetch(`${market.baseUrl}/api/v1/services/${id}/openapi`, {
    method: 'PUT',
    headers: { Authorization: authorization(key) },
    body: document,
  });
const discovered = (id: string) => market.json<{ operations: object[] }>(`/api/v1/discover/${id}`);

describe('after an OpenAPI document was sent', () => {
  it('an agent is told how to call the service, and a call costs the price in the document', async () => {
    const operations = [{ method: 'GET', path: '/old', summary: 'Old' }];
    const id = await list({ only_operations: true, operations });
    const answer = await until(async () => {
      const response = await put(id, JSON.stringify(PETSTORE_30));
      // On a busy machine its time may be up.
      return response.status === 200 && response;
    });
    expect(await answer.json()).toMatchObject({
      operations: 3,
      skipped: [
        { method: 'OPTIONS', path: '/pets/{petId}' },
        { method: 'GET', path: '/pets/{petId}.{format}' },
      ],
      skipped_total: 2,
    });
    const pet = {
      type: 'object',
      required: ['id', 'name'],
      properties: { tag: { type: ['string', 'null'] }, parent: { type: 'object' } },
    };
    const body = {
      input: { required: ['body'], properties: { body: pet } },
      example: { body: { id: 1, name: 'Tom' } },
    };
    expect((await discovered(id)).operations).toMatchObject([
      {
        method: 'GET',
        path: '/v1/pets',
        summary: 'All pets',
        price: 0.01,
        input: { properties: { query: { properties: { limit: { exclusiveMaximum: 100 } } } } },
        output: { type: 'array', items: pet },
      },
      { method: 'POST', path: '/v1/pets', summary: 'Adds a pet.', price: 0.05, price_label: '$0.05 per call', ...body },
      { method: 'GET', path: '/v1/pets/{petId}', price: 0, price_label: 'Free' },
    ]);
    const cost = async (method: string, path: string): Promise<[number, string | null]> => {
      const response = await market.request(`/api/v1/proxy/${id}${path}`, { key: buyer, method });
      return [response.status, response.headers.get('x-acf-amount')];
    };
    expect(await cost('POST', '/v1/pets')).toEqual([200, '0.05']);
    expect(await cost('GET', '/v1/pets/7')).toEqual([200, '0']);
    expect(await cost('GET', '/v1/pets')).toEqual([200, '0.01']);
    expect(await cost('GET', '/old')).toEqual([404, null]);
  });

  it('of version 3.1, its references to paths and its names that a template cannot contain are imported', async () => {
    const id = await list({});
    const answer = await put(id, JSON.stringify(PETSTORE_31));
    expect(await answer.json()).toMatchObject({
      operations: 1,
      skipped: [{ path: 'newPet' }],
      changed: [{ path: '/owners/{owner_id}', note: 'the path parameter owner-id is renamed to owner_id' }],
    });
    const output = { type: ['object', 'null'], properties: { kind: { const: 'owner' } } };
    expect((await discovered(id)).operations).toMatchObject([{ summary: 'An owner', output }]);
  });
});

it("the gateway's own document is imported, including regular expressions with \\u0000", async () => {
  const id = await list({});
  const own = await (await fetch(`${market.baseUrl}/api/v1/openapi.json`)).text();
  expect(own).toContain('\\\\u0000');
  // On a busy machine an import may run out of its time.
  const taken = await until(async () => {
    const answer = await put(id, own);
    return answer.ok && ((await answer.json()) as { operations: number });
  });
  expect(taken.operations).toBeGreaterThan(50);
});

describe('a document is refused', () => {
  it('if it is broken JSON or YAML or is beyond 2 MiB, or while another document is read', async () => {
    const id = await list({});
    const refusal = async (document: string) => ((await (await put(id, document)).json()) as { error: string }).error;
    expect(await refusal('{"openapi": "3.1.0", }')).toBe('invalid_json');
    expect(await refusal('openapi: 3.1.0\nopenapi: 3.1.0\n')).toBe('invalid_request');
    expect(await refusal(' '.repeat(2_097_153))).toBe('payload_too_large');
    const document = JSON.stringify(PETSTORE_31);
    // From two accounts, because requests of one may wait for each other. On a busy machine the first document may be read before the
    // second arrives.
    const busy = await until(async () => {
      const answers = await Promise.all([put(id, document), put(id, document, market.admin)]);
      expect(answers.map(({ status }) => status)).toContain(200);
      return answers.find(({ status }) => status === 503);
    });
    expect(busy.headers.get('retry-after')).toBe('1');
  });
});
