import { Ajv } from 'ajv';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DocumentFault } from '../../../src/catalog/openapi-import/document-fault.ts';
import { MAX_SKIPPED } from '../../../src/catalog/openapi-import/mapping.ts';
import { MAX_OPERATIONS, storeOperations } from '../../../src/catalog/operations/operation.ts';
import { OPERATIONS } from '../../../src/routes/operations.ts';
import { anyText } from '../../support/any-text.ts';
import { answering, documentOf, importHere } from './support.ts';

const nested = (depth: number): string => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
const withMember = (member: string): string =>
  `{"openapi":"3.1.0","info":{"title":"a","version":"1"},"paths":{},${member}}`;

/** Nine aliases of each of nine levels: fewer than a hundred, and 9^9 values. */
const laughs = (): string =>
  ['openapi: 3.1.0', 'x-0: &l0 [lol]']
    .concat(Array.from({ length: 9 }, (_, n) => `x-${n + 1}: &l${n + 1} [${Array(9).fill(`*l${n}`).join(', ')}]`))
    .join('\n');

describe('a document', () => {
  it.each([
    ['openapi: 3.1.0\ninfo:\n  title: Pets\n', "is not valid OpenAPI 3.1.0: must have required property 'paths'"],
    ['a: 1\na: 2\n', 'body: is not YAML that can be imported: duplicated mapping key in line 2.'],
    ['a: !!js/function x', 'body: is not YAML that can be imported: unknown scalar tag'],
    ['--- {}\n--- {}\n', 'expected a single document in the stream, but found more.'],
    ['openapi: 3.1.0\nx-a: .nan\n', 'must not have .inf or .nan'],
    ['openapi: 3.1.0\nx-a: &a\n  b: *a\n', 'must not be nested deeper than 100 levels'],
    [`openapi: 3.1.0\nx-a: &a {}\nx-b: [${'*a, '.repeat(101)}]\n`, 'aliases'],
    [laughs(), 'must have at most 400000 values'],
    ['# nothing\n', 'the input is empty'],
    ['just words', 'must be an OpenAPI document, which is an object in JSON or YAML'],
    ['{"openapi": "3.1.0",}', 'not valid JSON'],
    ['[]', 'must be an OpenAPI document'],
    ['{}', 'openapi: must be a version of OpenAPI 3.0 or 3.1'],
    ['{"swagger": "2.0"}', 'swagger: is Swagger 2.0'],
    ['{"openapi": "3.2.0"}', 'openapi: must be'],
    ['{"openapi": 3.1}', 'openapi: must be'],
    ['{"openapi": "3.1.0", "paths": {}}', "body: is not valid OpenAPI 3.1.0: must have required property 'info'"],
    [
      withMember('"paths": {"pets": {}}'),
      'paths: is not valid OpenAPI 3.1.0: must NOT have unevaluated properties (pets)',
    ],
    [
      JSON.stringify(documentOf({ '/a': { get: { responses: { 200: {} } } } }, { openapi: '3.0.0' })),
      "paths//a/get/responses/200: is not valid OpenAPI 3.0.0: must have required property 'description'",
    ],
    [withMember('"x-a": {"__proto__": {"isAdmin": true}}'), 'must not have the key __proto__'],
    [withMember(`"x-a": ${nested(100)}`), 'must not be nested deeper than 100 levels'],
    [withMember(`"x-a": ${'['.repeat(500_000)}${']'.repeat(500_000)}`), 'must not be nested deeper than 100 levels'],
    [withMember(`"x-a": [${'0,'.repeat(400_000)}0]`), 'must have at most 400000 values'],
  ])('that cannot be imported is refused with the reason (%#)', async (text, message) => {
    await expect(importHere(text)).rejects.toThrow(message.replaceAll('paths//a', 'paths/~1a'));
  });

  it('of the maximum depth is read', async () => {
    expect(await importHere(withMember(`"x-a": ${nested(99)}`))).toMatchObject({ operations: [] });
  });

  it('cannot reach object prototypes through its names', async () => {
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty'];
    const parameters = names.map((name) => ({
      name,
      in: 'query',
      required: true,
      schema: { enum: [name], type: name },
    }));
    const schemas = { constructor: { properties: { constructor: { $ref: '#/components/schemas/constructor' } } } };
    const operation = answering({ $ref: '#/components/schemas/constructor' }, { parameters });
    const { operations } = await importHere(
      documentOf({ '/{__proto__}/{constructor}': { get: operation } }, { components: { schemas } }),
    );
    expect(operations[0]?.path).toBe('/{proto}/{constructor}');
    const input = operations[0]?.input as {
      readonly properties?: { readonly query?: { readonly required?: unknown } };
    };
    expect(input.properties?.query?.required).toEqual(names.slice(1));
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    expect(() => storeOperations(operations)).not.toThrow();
  });
});

describe('a document that grows through references', () => {
  it('produces no more than a listing may store', async () => {
    const link = (i: number) => ({ $ref: `#/components/schemas/S${i}` });
    const level = (i: number) => ({
      properties: Object.fromEntries(Array.from({ length: 10 }, (_, k) => [`p${k}`, link(i + 1)])),
    });
    const schemas = Object.fromEntries(
      Array.from({ length: 60 }, (_, i) => [`S${i}`, i === 59 ? { type: 'string' } : level(i)]),
    );
    const paths = Object.fromEntries(
      Array.from({ length: 200 }, (_, i) => [`/p${i}`, { get: answering(link(i % 60)) }]),
    );
    const { operations, changed } = await importHere(documentOf(paths, { components: { schemas } }));
    expect(operations).toHaveLength(200);
    expect(changed.length).toBeGreaterThan(150);
    expect(() => storeOperations(operations)).not.toThrow();
  });

  it('is read if it has a chain of 20 000 references', async () => {
    const chain = Array.from({ length: 20_000 }, (_, i) => [`S${i}`, { $ref: `#/components/schemas/S${i + 1}` }]);
    const document = documentOf(
      { '/a': { get: answering({ $ref: '#/components/schemas/S0' }) } },
      { components: { schemas: Object.fromEntries(chain) } },
    );
    expect((await importHere(document)).operations).toHaveLength(1);
  });
});

/** Values as a document may have them: names that mean something to OpenAPI or to JavaScript, and references everywhere. */
const names = fc.oneof(
  fc.constantFrom(
    'type',
    'properties',
    'items',
    'allOf',
    'nullable',
    'enum',
    'required',
    'example',
    'constructor',
    'schema',
  ),
  anyText({ maxLength: 5 }),
);
const references = fc
  .constantFrom(
    '#/components/schemas/A',
    '#/components/schemas/B',
    '#/paths/~1a',
    '#',
    '#/nowhere',
    'file:///etc/passwd',
    '#/%ff',
  )
  .map(($ref) => ({ $ref }));
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'medium', maxDepth: 6 },
    fc.constantFrom(null, true, 0, -1, 1e300, 'object', 'array', '\ud800', '\u0000'),
    anyText({ maxLength: 8 }),
    references,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(names, tie('value'), { maxKeys: 4 }),
  ),
}));
const schemas = fc.oneof(
  references,
  value.filter((found) => typeof found === 'object' && found !== null && !Array.isArray(found)),
);
const segment = fc.oneof(
  fc.constantFrom('{id}', '{a-b}', 'pets', 'PETS', '', '*', '{a}.{b}', '..'),
  anyText({ maxLength: 4 }),
);
const path = fc.array(segment, { minLength: 1, maxLength: 4 }).map((segments) => `/${segments.join('/')}`);
const content = fc.dictionary(
  fc.constantFrom('application/json', 'text/plain'),
  fc.record({ schema: schemas, example: value }, { requiredKeys: [] }),
  { maxKeys: 2 },
);
const parameter = fc
  .tuple(fc.constantFrom('path', 'query', 'header', 'cookie'), names, schemas)
  .map(([place, name, schema]) => ({ in: place, name, schema, ...(place === 'path' ? { required: true } : {}) }));
const operation = fc.record(
  {
    responses: fc.record({ 200: fc.record({ description: fc.string(), content }) }),
    summary: anyText(),
    description: anyText(),
    parameters: fc.array(fc.oneof(parameter, references), { maxLength: 3 }),
    requestBody: fc.oneof(fc.record({ content }), references),
    deprecated: fc.boolean(),
    'x-price': fc.constantFrom(0, 0.5),
  },
  { requiredKeys: ['responses'] },
);
const item = fc.dictionary(fc.constantFrom('get', 'post', 'head', 'delete'), operation, { maxKeys: 3 });
const documents = fc
  .record({
    openapi: fc.constantFrom('3.0.3', '3.1.0', '3.1.1'),
    paths: fc.dictionary(path, item, { maxKeys: 6 }),
    a: schemas,
    b: schemas,
  })
  .map(({ openapi, paths, a, b }) => documentOf(paths, { openapi, components: { schemas: { A: a, B: b } } }));

it('schemas and examples can be stored even if they are nested as deeply as a document may be', async () => {
  const deep = (depth: number, make: (inner: object) => object): object =>
    Array.from({ length: depth }).reduce<object>((inner) => make(inner), {});
  const schema = deep(40, (inner) => ({ properties: { a: inner } }));
  const media = { schema, example: deep(80, (inner) => [inner]) };
  const body = { content: { 'application/json': media } };
  const parameters = ['query', 'header'].map((place) => ({ name: 'q', in: place, schema, example: media.example }));
  const operation = { parameters, requestBody: body, responses: { 200: { description: '', ...body } } };
  const { operations, changed } = await importHere(documentOf({ '/a': { post: operation } }));
  expect(() => storeOperations(operations)).not.toThrow();
  expect(changed.map(({ note }) => note)).toContain('input: only 48 levels of a schema are shown');
});

describe('any document', () => {
  const isListable = new Ajv({ allowUnionTypes: true }).compile(OPERATIONS);

  it('is refused with a reason, or yields operations that pass the checks for hand-written ones', async () => {
    let taken = 0;
    await fc.assert(
      fc.asyncProperty(documents, async (document) => {
        const imported = await importHere(document).catch((error: unknown) => error);
        if (imported instanceof DocumentFault) return;
        if (imported instanceof Error) throw imported;
        const { operations, skipped, changed } = imported as Awaited<ReturnType<typeof importHere>>;
        expect(isListable(operations), JSON.stringify(isListable.errors)).toBe(true);
        expect(JSON.parse(storeOperations(operations).json)).toEqual(operations);
        expect(JSON.stringify(imported).isWellFormed()).toBe(true);
        expect(operations.length).toBeLessThanOrEqual(MAX_OPERATIONS);
        expect(skipped.length).toBeLessThanOrEqual(MAX_SKIPPED);
        expect(changed.length).toBeLessThanOrEqual(operations.length * 10);
        taken += operations.length;
      }),
      { numRuns: 300 },
    );
    // The documents must not all be refused.

    expect(taken).toBeGreaterThan(100);
  });
});
