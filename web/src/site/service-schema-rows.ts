// A JSON Schema as lines for people. Providers write schemas, so nothing about them is certain.
// Tested by test/web/service-schema.test.ts.

import { objectOf } from './service-request.ts';

/** One property, with those below it. */
export type SchemaRow = {
  readonly name: string;
  /** `string`, `array of integer`, `one of`, … */
  readonly type: string;
  readonly required: boolean;
  readonly description: string;
  /** `at least 1`, `default 5`, … as the schema has them: name and value. */
  readonly limits: readonly (readonly [name: string, value: string])[];
  readonly rows: readonly SchemaRow[];
};

/** Bounds: deeper levels and further lines are not shown; the schema can be read as JSON beside them. */
const MAX_DEPTH = 8;
const MAX_ROWS = 400;

const LIMITS = (
  'default const format pattern minimum maximum exclusiveMinimum exclusiveMaximum multipleOf ' +
  'minLength maxLength minItems maxItems uniqueItems contentMediaType'
).split(' ');

export function schemaRows(schema: unknown): { readonly rows: readonly SchemaRow[]; readonly isCut: boolean } {
  const budget = { left: MAX_ROWS, isCut: false };
  const top = objectOf(schema);
  const rows = below(top, 0, budget);
  // A schema without parts is shown as a single line.
  if (rows.length === 0 && Object.keys(top).length > 0)
    return { rows: [rowOf('', top, false, MAX_DEPTH, budget)], isCut: false };
  return { rows, isCut: budget.isCut };
}

type Budget = { left: number; isCut: boolean };
type Schema = Readonly<Record<string, unknown>>;

function rowOf(name: string, schema: Schema, required: boolean, depth: number, budget: Budget): SchemaRow {
  const limits = LIMITS.flatMap((key) => (schema[key] === undefined ? [] : [[key, shortText(schema[key])] as const]));
  const choices = Array.isArray(schema.enum) ? [['enum', schema.enum.map(shortText).join(', ')] as const] : [];
  return {
    name,
    type: typeName(schema),
    required,
    limits: [...choices, ...limits],
    description: typeof schema.description === 'string' ? schema.description : shortText(schema.title ?? ''),
    rows: below(schema, depth + 1, budget),
  };
}

function below(schema: Schema, depth: number, budget: Budget): SchemaRow[] {
  const parts: (readonly [name: string, schema: unknown, required: boolean])[] = [];
  // Sets: a schema may have thousands of names.
  const required = new Set<unknown>(Array.isArray(schema.required) ? schema.required : []);
  const known = new Set<unknown>();
  for (const [name, its] of Object.entries(objectOf(schema.properties))) {
    parts.push([name, its, required.has(name)]);
    known.add(name);
  }
  for (const name of required) {
    if (typeof name === 'string' && !known.has(name)) parts.push([name, {}, true]);
  }
  const { items, additionalProperties: others } = schema;
  if (typeof others === 'object' && others !== null) parts.push(['*', others, false]);
  // The properties of an array's items are shown as if they were the array's own.
  if (Object.keys(objectOf(items)).length > 0 && hasParts(objectOf(items))) {
    return [...parts.flatMap((part) => take(part, depth, budget)), ...below(objectOf(items), depth, budget)];
  }
  for (const key of ['allOf', 'anyOf', 'oneOf'] as const) {
    if (!Array.isArray(schema[key])) continue;
    schema[key].forEach((its, at) => {
      parts.push([`${key} ${at + 1}`, its, false]);
    });
  }
  return parts.flatMap((part) => take(part, depth, budget));
}

function take(
  [name, schema, required]: readonly [string, unknown, boolean],
  depth: number,
  budget: Budget,
): SchemaRow[] {
  if (depth >= MAX_DEPTH || budget.left <= 0) {
    budget.isCut = true;
    return [];
  }
  budget.left -= 1;
  return [rowOf(name, objectOf(schema), required, depth, budget)];
}

const hasParts = (schema: Schema): boolean =>
  ['properties', 'items', 'allOf', 'anyOf', 'oneOf', 'required', 'additionalProperties'].some(
    (key) => typeof schema[key] === 'object',
  );

function typeName(schema: Schema): string {
  const { type, items } = schema;
  if (Array.isArray(type)) return type.map(String).join(' | ');
  if (type === 'array') {
    const inner = typeName(objectOf(items));
    return inner === '' ? 'array' : `array of ${inner}`;
  }
  if (typeof type === 'string') return type;
  if (schema.properties !== undefined) return 'object';
  return Array.isArray(schema.enum) && schema.enum.length > 0 ? typeof schema.enum[0] : '';
}

function shortText(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
