import { describe, expect, it } from 'vitest';
import { CATEGORY_PATTERN } from '../../src/catalog/listing.ts';
import { ApiError } from '../../src/errors.ts';
import { ANY_QUERY, type JsonSchema } from '../../src/http/route.ts';
import { validatorsOf, validBody, validQuery } from '../../src/http/validation.ts';
import { ACCOUNT_ID } from '../../src/routes/admin/money-fields.ts';

const query: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  properties: { limit: { type: 'integer', minimum: 1 }, min_quality: { type: 'number' }, q: { type: 'string' } },
};
const body: JsonSchema = {
  type: 'object',
  minProperties: 1,
  properties: {
    owner_id: { type: 'string', pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f]*$' },
    category: { type: 'string', pattern: CATEGORY_PATTERN },
    account_id: ACCOUNT_ID,
  },
};
const validators = validatorsOf({
  method: 'POST',
  path: '/',
  summary: '',
  responses: {},
  access: 'anyone',
  query,
  body,
  handle: async () => ({ status: 200 }),
});

const readQuery = (text: string): unknown => validQuery(validators.query, text);
const readBody = (text: string): unknown => validBody(validators.body, Buffer.from(text));
const messageOf = (read: () => unknown): string => {
  try {
    return `accepted ${JSON.stringify(read())}`;
  } catch (error) {
    return error instanceof ApiError ? `${error.code}: ${error.message}` : String(error);
  }
};

describe('a query', () => {
  it.each(['0x2', '0b1', '1e1', '%205', '5%20', '+5', '%2B5', '', 'Infinity', '1.', '1_0'])(
    'accepts plain decimal numbers only: not %j',
    (text) => {
      expect(messageOf(() => readQuery(`limit=${text}`))).toBe('invalid_request: limit: must be integer.');
      expect(messageOf(() => readQuery(`min_quality=${text}`))).toBe('invalid_request: min_quality: must be number.');
    },
  );

  it('accepts plain decimal numbers, and any text where text is expected', () => {
    expect({ ...(readQuery('limit=20&min_quality=-0.50&q=0x2') as object) }).toEqual({
      limit: 20,
      min_quality: -0.5,
      q: '0x2',
    });
  });

  it.each(['__proto__', 'constructor', 'toString', 'page'])('refuses %s like any unknown parameter', (name) => {
    expect(messageOf(() => readQuery(`${name}=1`))).toBe(`invalid_request: ${name}: is not known.`);
  });

  it.each(['limit', '__proto__'])('refuses %s if it is given twice', (name) => {
    expect(messageOf(() => readQuery(`${name}=1&${name}=1`))).toBe(`invalid_request: ${name}: given more than once.`);
  });
});

it('a query with more parameters than any route has is refused before it is read', () => {
  const names = (count: number): string => Array.from({ length: count }, (_, i) => `p${i}`).join('&');
  const any = validatorsOf({
    method: 'GET',
    path: '/',
    summary: '',
    responses: {},
    access: 'anyone',
    query: ANY_QUERY,
    handle: async () => ({ status: 200 }),
  });
  expect(Object.keys(validQuery(any.query, names(100)) as object).length).toBe(100);
  expect(() => validQuery(any.query, names(101))).toThrow('query: must have at most 100 parameters.');
});

describe('a body', () => {
  it.each([
    ['{"owner_id":"\\ud800"}', 'owner_id'],
    ['{"owner_id":"x\\udc00\\ud800"}', 'owner_id'],
    ['{"tags":["a",{"b":"\\udfff"}]}', 'tags'],
    ['{"tags":{"\\ud800":1}}', 'tags'],
    ['{"\\ud800":1}', 'body'],
  ])('with half a surrogate pair, %s, is refused, and the error names its field', (text, field) => {
    expect(messageOf(() => readBody(text))).toBe(`invalid_request: ${field}: has half a surrogate pair.`);
  });

  it.each([
    ['{"category":"Weather data"}', 'category: must be lower-case words joined by hyphens, such as weather-data.'],
    ['{"account_id":"7"}', 'account_id: must be a UUID in lower case.'],
    ['{"owner_id":"\\n"}', 'owner_id: must not have control characters.'],
    ['{}', 'body: must have at least one field.'],
  ])('%s is refused with words, not with a pattern', (text, message) => {
    expect(messageOf(() => readBody(text))).toBe(`invalid_request: ${message}`);
  });

  it('with whole surrogate pairs is accepted', () => {
    expect(readBody('{"owner_id":"\\ud83d\\ude00"}')).toEqual({ owner_id: '😀' });
  });

  it('is accepted if it is nested as deeply as its length allows', () => {
    expect(readBody(`{"a":${'['.repeat(30_000)}${']'.repeat(30_000)}}`)).toHaveProperty('a');
  });
});

it('a long body with more values than can be read at once is refused before it is parsed', () => {
  expect(messageOf(() => readBody(`{"a":[${'{},'.repeat(340_000)}{}]}`))).toContain('commas and opening brackets');
  expect(readBody(`{"a":["${'x'.repeat(1_000_000)}"]}`)).toHaveProperty('a');
});
