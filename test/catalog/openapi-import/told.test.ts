import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { MAX_OPERATIONS } from '../../../src/catalog/operations/operation.ts';
import { answering, documentOf, importHere } from './support.ts';

// What an operation says, and what its author is told, where JSON Schema or the gateway cannot express a part of the document.

const notesOf = async (...of: Parameters<typeof importHere>) =>
  (await importHere(...of)).changed.map(({ note }) => note);

describe('a discriminator', () => {
  const pet = (more: object = {}) => ({
    type: 'object',
    required: ['kind'],
    properties: { kind: { type: 'string' }, name: { type: 'string' } },
    ...more,
  });
  const schemas = { Cat: pet(), Dog: pet(), Cow: { allOf: [pet()] } };
  const branches = (...names: string[]) => names.map((name) => ({ $ref: `#/components/schemas/${name}` }));
  const petOf = async (schema: object, openapi = '3.1.0') => {
    const document = documentOf({ '/pet': { get: answering(schema) } }, { openapi, components: { schemas } });
    const { operations, changed } = await importHere(document);
    const output = operations[0]?.output as object;
    return { isValid: new Ajv2020({ strict: false }).compile(output), output, notes: changed.map(({ note }) => note) };
  };

  it.each(['3.0.3', '3.1.0'])('becomes const, so that exactly one branch fits (OpenAPI %s)', async (openapi) => {
    const mapping = { meow: '#/components/schemas/Cat', woof: 'Dog', bark: '#/components/schemas/Dog' };
    const schema = { oneOf: branches('Cat', 'Dog', 'Cow'), discriminator: { propertyName: 'kind', mapping } };
    const { isValid, notes } = await petOf(schema, openapi);
    expect(['meow', 'woof', 'bark', 'Cow'].map((kind) => isValid({ kind }))).toEqual([true, true, true, true]);
    expect(['Cat', 'Dog', 'other', undefined].map((kind) => isValid({ kind }))).toEqual([false, false, false, false]);
    expect(notes).toEqual(['output: the values of the discriminator kind are written as const']);
  });

  it('that uses inheritance, or has a branch without a name, is left out with a note', async () => {
    const { notes: base } = await petOf(pet({ discriminator: { propertyName: 'kind' } }));
    expect(base).toEqual(['output: a discriminator is left out: kind']);
    const { output, notes } = await petOf({ anyOf: [pet()], discriminator: { propertyName: 'kind' } });
    expect(notes).toEqual(['output: the discriminator kind has no value for a branch']);
    expect(output).toEqual({ anyOf: [pet()] });
  });
});

describe('credentials that an operation needs', () => {
  const securitySchemes = {
    key: { type: 'apiKey', in: 'header', name: 'X-Key' },
    query: { type: 'apiKey', in: 'query', name: 'token' },
    bearer: { type: 'http', scheme: 'bearer' },
    user: {
      type: 'oauth2',
      flows: { authorizationCode: { authorizationUrl: 'https://a', tokenUrl: 'https://b', scopes: {} } },
    },
    machine: { type: 'oauth2', flows: { clientCredentials: { tokenUrl: 'https://b', scopes: {} } } },
    oidc: { type: 'openIdConnect', openIdConnectUrl: 'https://a' },
  };
  const needing = async (security: object[] | undefined, added: string[] = [], common: object[] = []) => {
    const operation = answering({}, security === undefined ? {} : { security });
    const document = documentOf({ '/a': { get: operation } }, { components: { securitySchemes }, security: common });
    const { operations, changed } = await importHere(document, { addedHeaders: added, addedParameters: added });
    const input = operations[0]?.input as { description?: string } | undefined;
    return { told: input?.description, notes: changed.map(({ note }) => note) };
  };

  it.each([
    [[{ user: ['read'] }], "Needs a user's own credentials: user (OAuth 2.0).", /forward_headers \(authorization\)$/],
    [[{ oidc: [] }], "Needs a user's own credentials: oidc (OpenID Connect).", /forward_headers \(authorization\)$/],
    [
      [{ key: [] }],
      'Needs credentials: key (header X-Key).',
      /upstream_headers, or ask for them by forward_headers \(x-key\)$/,
    ],
    [[{ query: [] }], 'Needs credentials: query (query token).', /upstream_query \(token\)$/],
    [
      [{ key: [], user: [] }, { bearer: [] }],
      'Needs credentials: key (header X-Key) and user (OAuth 2.0), or bearer (Authorization: bearer).',
      /./,
    ],
    [[{ machine: [] }], 'Needs credentials: machine (OAuth 2.0).', /./],
    [[{ gone: [] }], 'Needs credentials: gone.', /./],
  ])('are described to its callers, and to its author with what to do (%#)', async (security, told, note) => {
    const found = await needing(security);
    expect(found).toEqual({ told, notes: [expect.stringMatching(note)] });
  });

  it('are not described if the operation needs none, or if the listing adds them', async () => {
    const nothing = { told: undefined, notes: [] };
    expect(await needing([{ user: [] }, {}])).toEqual(nothing);
    expect(await needing([{ key: [] }], ['x-key'])).toEqual(nothing);
    expect(await needing([{ query: [] }], ['token'])).toEqual(nothing);
    expect(await needing([{ query: [] }], ['Token'])).not.toEqual(nothing);
    expect(await needing([], [], [{ key: [] }])).toEqual(nothing);
    expect(await needing(undefined, [], [{ key: [] }])).toMatchObject({
      told: 'Needs credentials: key (header X-Key).',
    });
  });
});

describe('what JSON cannot express', () => {
  const schema = { type: 'object' };
  const body = (...types: string[]) => ({
    requestBody: { content: Object.fromEntries(types.map((type) => [type, { schema }])) },
  });

  it('a second media type is left out with a note, and application/json is preferred', async () => {
    const document = documentOf({
      '/a': { post: answering(schema, body('application/xml', 'application/vnd.a+json', 'application/json')) },
    });
    const { operations, changed } = await importHere(document);
    expect(operations[0]?.input).toMatchObject({ properties: { body: schema } });
    expect(changed.map(({ note }) => note)).toEqual([
      'the body is described as application/json only; left out: application/xml, application/vnd.a+json',
    ]);
  });

  it('merge-patch and other JSON types are named in the schema, because a client must send them with that type', async () => {
    const { operations, changed } = await importHere(
      documentOf({ '/a': { patch: answering(schema, body('application/merge-patch+json')) } }),
    );
    const told = { ...schema, contentMediaType: 'application/merge-patch+json' };
    expect(operations[0]?.input).toMatchObject({ properties: { body: told } });
    expect(changed.map(({ note }) => note)).toEqual(['the body is application/merge-patch+json, as its schema says']);
  });

  it('response headers are left out with a note', async () => {
    const header = { schema: { type: 'string' } };
    const responses = {
      200: { description: '', headers: { Link: header, 'X-Next': header } },
      404: { description: '', headers: { X: header } },
    };
    expect(await notesOf(documentOf({ '/a': { get: { responses } } }))).toEqual([
      'the headers of the response 200 are left out: Link, X-Next',
    ]);
  });
});

describe('tags', () => {
  const tagged = (count: number, ...tags: string[]): [string, object][] =>
    Array.from({ length: count }, (_, index) => [
      `/${tags.join('-').replace(', ', '-')}${index}`,
      { get: answering({}, { tags }) },
    ]);
  const document = documentOf(
    Object.fromEntries([...tagged(150, 'pets'), ...tagged(120, 'shops'), ...tagged(2, 'a, b')]),
  );
  const taken = async (tag: string | null) => {
    const { operations, skippedTotal, tags } = await importHere(document, { tag });
    return { taken: operations.length, skippedTotal, tags };
  };

  it('select operations of a document that has more than a listing may have', async () => {
    const tags = [
      { tag: 'pets', operations: 150 },
      { tag: 'shops', operations: 120 },
      { tag: 'a, b', operations: 2 },
    ];
    expect(await taken(null)).toEqual({ taken: MAX_OPERATIONS, skippedTotal: 72, tags });
    expect(await taken('shops')).toEqual({ taken: 120, skippedTotal: 0, tags });
    expect(await taken('a, b')).toMatchObject({ taken: 2 });
    expect(await taken('shops, pets')).toMatchObject({ taken: 200, skippedTotal: 70 });
    const { skipped } = await importHere(document);
    expect(skipped[0]?.reason).toMatch(/may have at most 200 operations, .*; choose operations with \?tag=$/);
  });

  it('that no operation has are refused, and the error lists the existing tags', async () => {
    await expect(taken('pets,cars')).rejects.toThrow(
      'tag: no operation of the document has the tag cars. They have pets (150), shops (120), a, b (2).',
    );
    await expect(importHere(documentOf({}), { tag: 'x' }).then(() => null)).rejects.toThrow('They have none.');
  });
});

it('YAML is read as JSON is, with the core schema of YAML 1.2', async () => {
  const yaml = `
openapi: 3.1.0
info: { title: Test, version: "1" }
paths:
  /a:
    get:
      summary: yes
      x-price: 0.001
      responses:
        200:
          description: Good
          content:
            application/json:
              schema: &text { type: string, enum: [no, 2026-01-01, 0x1F] }
  /b:
    get:
      responses: { "200": { description: "", content: { application/json: { schema: *text } } } }
`;
  const text = { type: 'string', enum: ['no', '2026-01-01', 31] };
  expect((await importHere(yaml)).operations).toEqual([
    { method: 'GET', path: '/a', summary: 'yes', price: 0.001, output: text },
    { method: 'GET', path: '/b', summary: 'GET /b', output: text },
  ]);
});
