// An example request of an operation, made from its path template, its schemas and its example. The pages use it too, so it imports
// nothing of Node. Tested by test/web/service-request.test.ts.

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
export type Pair = { readonly name: string; readonly value: string };
/** The fields of an operation that are read. Its provider may have written anything into the schema and the example. */
type SampledOperation = {
  readonly path?: string;
  readonly input?: unknown;
  readonly example?: { readonly query?: unknown; readonly body?: unknown };
};
type Schema = Readonly<Record<string, unknown>>;

/** A field of a form. */
type Parameter = {
  readonly name: string;
  readonly description: string;
  readonly type: string;
  readonly required: boolean;
  /** What the provider suggests; '' if nothing. */
  readonly value: string;
};

/** The last `*` of a template, as a name that no `{name}` can have. */
export const REST = '*';

/** `/users/{id}/*` → `['id', '*']` */
export function pathNames(template: string): string[] {
  return template.split('/').flatMap((segment) => {
    if (segment === REST) return [REST];
    const name = /^\{(\w+)\}$/.exec(segment)?.[1];
    return name === undefined ? [] : [name];
  });
}

/** The path after the service id, with the values encoded. The text for `*`, and the rest of the template, are not changed. */
export function pathOf(template: string, values: Readonly<Record<string, string>>): string {
  const segments = template.split('/').map((segment) => {
    if (segment === REST) return sendable(values[REST] ?? '');
    const name = /^\{(\w+)\}$/.exec(segment)?.[1];
    return name === undefined ? sendable(segment) : encoded(values[name] ?? '');
  });
  return segments.join('/');
}

/** `a=1&b=x%20y`, without a question mark; '' without pairs. */
export function queryOf(pairs: readonly Pair[]): string {
  return pairs.map(({ name, value }) => `${encoded(name)}=${encoded(value)}`).join('&');
}

/** Dot segments: a browser would resolve them itself, and the gateway refuses them. */
export const hasDotSegment = (path: string): boolean =>
  path.split(/[/\\]/).some((segment) => /^(\.|%2e){1,2}$/i.test(segment));

// The apostrophe is encoded too, as browsers do in queries.
const encoded = (text: string): string => encodeURIComponent(wellFormed(text)).replaceAll("'", '%27');

/** Encodes only characters that a path cannot contain. */
const sendable = (text: string): string =>
  wellFormed(text).replace(/[^\x21-\x7e]|["#<>?\\^`{|}]/gu, (character) => encodeURIComponent(character));

/** The parameters that the schema of the input names below `location`, and those that only the example has. */
export function parametersOf(operation: SampledOperation, location: 'path' | 'query' | 'headers'): Parameter[] {
  const schema = objectOf(objectOf(objectOf(operation.input).properties)[location]);
  // A set: a schema may have thousands of names.
  const required = new Set<unknown>(Array.isArray(schema.required) ? schema.required : []);
  const example = location === 'query' ? objectOf(operation.example?.query) : {};
  const declared = Object.entries(objectOf(schema.properties)).map(([name, its]) => ({
    name,
    description: textOf(objectOf(its).description),
    type: typeOf(objectOf(its)),
    required: required.has(name),
    value: textOf(example[name] ?? suggested(objectOf(its))),
  }));
  const known = new Set(declared.map(({ name }) => name));
  const others = Object.entries(example).filter(([name]) => !known.has(name));
  return [
    ...declared,
    ...others.map(([name, value]) => ({ name, description: '', type: '', required: false, value: textOf(value) })),
  ];
}

const HEADER_NAME = /^[a-z\d][\w-]{0,63}$/i;
/** Visible ASCII, with blanks between. */
const HEADER_VALUE = /^[\x21-\x7e](?:[\x20-\x7e]{0,198}[\x21-\x7e])?$/;
const MAX_HEADERS = 10;
/** Headers that clients, the gateway or the rest of a request set, and those that do not reach a service. */
const SAID_ELSEWHERE =
  /^(?:accept|accept-encoding|content-(?:type|length)|authorization|cookie|(?:x-|x-goog-)?api-key|x-auth-token|host|via|expect|te|trailer|transfer-encoding|upgrade|connection|keep-alive|forwarded|from|(?:proxy|x-acf|x-forwarded)-.*)$/;

/**
 * The headers that a call needs, each with the value that the schema suggests, or with its name in braces for the caller to fill
 * in.
 */
export function headersOf(operation: SampledOperation): Pair[] {
  const found = new Map<string, Pair>();
  for (const { name, value, required } of parametersOf(operation, 'headers')) {
    if (!required || !HEADER_NAME.test(name) || found.size === MAX_HEADERS) continue;
    // The gateway treats an underscore as a hyphen.
    const known = name.toLowerCase().replaceAll('_', '-');
    if (SAID_ELSEWHERE.test(known) || found.has(known)) continue;
    // Each call has an idempotency key of its own.
    const isGood = HEADER_VALUE.test(value) && known !== 'idempotency-key';
    found.set(known, { name, value: isGood ? value : `{${name}}` });
  }
  return [...found.values()];
}

const bodySchemaOf = (operation: SampledOperation): Schema | null => {
  const { body } = objectOf(objectOf(operation.input).properties);
  return body === undefined ? null : objectOf(body);
};

/** A body to start from: the example, or what the schema demands. Undefined: the operation describes none. */
export function bodyOf(operation: SampledOperation): Json | undefined {
  if (operation.example?.body !== undefined) return operation.example.body as Json;
  const schema = bodySchemaOf(operation);
  return schema === null ? undefined : sampleOf(schema);
}

/** Longer media types are ignored: no registered one is longer. */
const MAX_MEDIA_TYPE = 100;

/** The media type of that body. */
export function mediaTypeOf(operation: SampledOperation, body: Json): string {
  const told = bodySchemaOf(operation)?.contentMediaType;
  if (typeof told === 'string' && told.length <= MAX_MEDIA_TYPE && /^[\w.+-]+\/[\w.+-]+$/.test(told)) return told;
  return typeof body === 'string' ? 'text/plain' : 'application/json';
}

/** A value for each name in the path, for snippets: what the schema suggests, or the name itself. */
export function pathSamples(operation: SampledOperation): Record<string, string> {
  const told = new Map(parametersOf(operation, 'path').map((parameter) => [parameter.name, parameter]));
  const names = pathNames(operation.path ?? '');
  return Object.fromEntries(
    names.map((name) => {
      const { value = '', type = '' } = told.get(name) ?? {};
      const made = name === REST ? '' : /integer|number/.test(type) ? '1' : name;
      return [name, value === '' ? made : value];
    }),
  );
}

/** Depth to which a value is made from a schema; deeper levels stay empty. */
const MAX_SAMPLE_DEPTH = 6;

function sampleOf(schema: Schema, depth = 0): Json {
  const told = suggested(schema);
  if (told !== undefined) return told as Json;
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === 'object' || schema.properties !== undefined) {
    if (depth >= MAX_SAMPLE_DEPTH) return {};
    const all = objectOf(schema.properties);
    // Each name is used once. Otherwise a provider who repeats names on every level makes the work grow by their product.
    const required = new Set(Array.isArray(schema.required) ? schema.required.map(String) : []);
    const names = required.size === 0 ? Object.keys(all).slice(0, 3) : [...required];
    return Object.fromEntries(names.map((name) => [name, sampleOf(objectOf(all[name]), depth + 1)]));
  }
  if (type === 'array') {
    const isEmpty = depth >= MAX_SAMPLE_DEPTH || schema.items === undefined;
    return isEmpty ? [] : [sampleOf(objectOf(schema.items), depth + 1)];
  }
  if (type === 'integer' || type === 'number') return typeof schema.minimum === 'number' ? schema.minimum : 1;
  if (type === 'boolean') return false;
  return type === 'null' ? null : '';
}

function suggested(schema: Schema): unknown {
  const { example, examples, default: usual, const: only, enum: choices } = schema;
  if (example !== undefined) return example;
  if (Array.isArray(examples) && examples.length > 0) return examples[0];
  if (usual !== undefined) return usual;
  if (only !== undefined) return only;
  return Array.isArray(choices) ? choices[0] : undefined;
}

/** Half a surrogate pair cannot be written in UTF-8. */
export function wellFormed(text: string): string {
  return text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '\ufffd');
}

const typeOf = ({ type }: Schema): string => (Array.isArray(type) ? type.map(String).join(' | ') : textOf(type));

export const objectOf = (value: unknown): Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Schema) : {};

const textOf = (value: unknown): string => {
  if (value === undefined || value === null) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
};
