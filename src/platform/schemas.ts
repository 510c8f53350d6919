/**
 * A JSON Schema in the common subset of draft-07 and OpenAPI 3.1. The OpenAPI document contains the same object; a schema with a
 * `title` becomes a component of the document with that name.
 */
export type JsonSchema = Readonly<Record<string, unknown>>;

// The parts from which the schemas of responses are built.

export const UUID: JsonSchema = { type: 'string', format: 'uuid' };
export const TIME: JsonSchema = { type: 'string', format: 'date-time', description: 'RFC 3339, in UTC' };
export const COUNT: JsonSchema = { type: 'integer', minimum: 0 };
export const TEXT: JsonSchema = { type: 'string' };
/** The pattern of a text without control characters: it ends up in terminals, logs and CSV files. */
export const ONE_LINE = '^[^\\u0000-\\u001f\\u007f-\\u009f]*$';
export const CURRENCY: JsonSchema = { type: 'string', const: 'USD' };

/** An amount of money. It has no `multipleOf`: 0.000001 has no exact binary form, so validators would refuse valid amounts. */
export const usd = (description: string): JsonSchema => ({
  type: 'number',
  description: `${description}, in US dollars with at most six decimals`,
});

export const orNull = (schema: JsonSchema): JsonSchema => ({ ...schema, type: [schema.type, 'null'] });

export const list = (items: JsonSchema, description?: string): JsonSchema => ({
  type: 'array',
  items,
  ...(description === undefined ? {} : { description }),
});

/**
 * An object that always has all of these fields, except the optional ones. Callers must expect more fields in later versions, so
 * the schema permits them; tests do not.
 *
 * @param title  name of the component in the OpenAPI document, and of the type in a generated client
 */
export function record(
  title: string,
  properties: Readonly<Record<string, JsonSchema>>,
  { optional = [], description }: { readonly optional?: readonly string[]; readonly description?: string } = {},
): JsonSchema {
  return {
    title,
    type: 'object',
    ...(description === undefined ? {} : { description }),
    required: Object.keys(properties).filter((name) => !optional.includes(name)),
    properties,
  };
}

/** The ids, keys and times of all examples. The same thing has the same id everywhere, so that a reader can follow it. */
export const EXAMPLE = {
  serviceId: '019aa3f2-6b1c-7c3e-9f57-2f4b6d1e8a90',
  usageId: '019aa3f5-0d44-7a61-8c12-5b7e9f3a2d10',
  accountId: '019aa3f0-11aa-7b2c-8d3e-4f5a6b7c8d9e',
  providerId: '019aa3ee-77bb-7c4d-9e5f-6a7b8c9d0e1f',
  keyId: 'acf_4xQ8mZ2kLr7Vt1Ns9Wb3Yd',
  secret: 'sk_7hK2pQ9xZt4Lw8Nv1Rb6Yc3Mf5Gj0Ds8Ae2Uo7Ti4Xk9Bq1V0',
  time: '2026-11-22T07:51:00.486Z',
} as const;
