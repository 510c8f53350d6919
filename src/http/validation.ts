import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { ApiError } from '../errors.ts';
import type { JsonSchema, Route } from './route.ts';

type Validators = { readonly query: ValidateFunction; readonly body: ValidateFunction | null };

/**
 * The schemas themselves are not checked here: compiling the schema of schemas would take every process 60 ms. Tests check them
 * (test/openapi/contract.test.ts, as parts of the document, and test/mcp/ready-arguments.test.ts). Optimising the code
 * takes ajv as long as compiling it, and V8 does the same.
 */
const OPTIONS = { allErrors: false, meta: false, validateSchema: false, code: { optimize: false } } as const;

const bodies = new Ajv({ ...OPTIONS, useDefaults: true });
/** Coerces types, because query values are text: '5' is accepted as an integer. */
const queries = new Ajv({ ...OPTIONS, useDefaults: true, coerceTypes: true });

/** `allowUnionTypes`: the body of a tool's call may be any JSON value. */
const toolArguments = new Ajv({ ...OPTIONS, allowUnionTypes: true });

const NO_QUERY: JsonSchema = { type: 'object', additionalProperties: false, properties: {} };

/** Compiled at the first request of a route, and kept by ajv: compiling all of them at the start took every gateway 0.2 s. */
export function validatorsOf(route: Route): Validators {
  return {
    query: queries.compile(route.query ?? NO_QUERY),
    body: route.body === undefined ? null : bodies.compile(route.body),
  };
}

/**
 * A number in a query must look like this. ajv alone would also accept '0x2', '1e3' and ' 50', because it coerces with
 * JavaScript's `Number`.
 */
const PLAIN_NUMBER = /^-?\d+(?:\.\d+)?$/;

/**
 * Maximum parameters of a query; no route has as many as ten. Files and health checks take no token, and 5 000 parameters took 7 ms
 * to read.
 */
const MAX_PARAMETERS = 100;

function refuseManyParameters(query: string): void {
  let count = 1;
  for (let at = query.indexOf('&'); at !== -1; at = query.indexOf('&', at + 1)) count++;
  if (count > MAX_PARAMETERS) {
    throw new ApiError('invalid_request', `query: must have at most ${MAX_PARAMETERS} parameters.`);
  }
}

/** Query text → validated object. Throws `invalid_request` naming the parameter. */
export function validQuery(validate: ValidateFunction | null, query: string | undefined): unknown {
  refuseManyParameters(query ?? '');
  // An object without a prototype, so that `__proto__` is a parameter like any other.
  const values: Record<string, string> = Object.create(null);
  const { properties = {} } = (validate?.schema ?? {}) as { properties?: Record<string, JsonSchema> };
  for (const [name, value] of new URLSearchParams(query ?? '')) {
    if (name in values) throw new ApiError('invalid_request', `${name.slice(0, 100)}: given more than once.`);
    const type = Object.hasOwn(properties, name) ? properties[name]?.type : undefined;
    if ((type === 'integer' || type === 'number') && !PLAIN_NUMBER.test(value)) {
      throw new ApiError('invalid_request', `${name}: must be ${type}.`);
    }
    values[name] = value;
  }
  check(validate, values);
  return values;
}

/**
 * Maximum commas and opening brackets in a body, including those within texts; it bounds the number of values. A megabyte of short
 * values takes 0.2 s to parse, check and store, while all calls wait; a megabyte of long ones takes 10 ms.
 */
const MAX_COMMAS = 65_536;

function refuseManyValues(bytes: Buffer): void {
  if (bytes.length <= MAX_COMMAS) return;
  let count = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i];
    // `,`, `[` and `{`
    if (byte === 0x2c || byte === 0x5b || byte === 0x7b) count++;
  }
  if (count <= MAX_COMMAS) return;
  throw new ApiError('invalid_request', `body: must have at most ${MAX_COMMAS} commas and opening brackets.`);
}

/** Body bytes → validated value. Throws `invalid_json`, or `invalid_request` naming the field. */
export function validBody(validate: ValidateFunction | null, bytes: Buffer): unknown {
  if (validate === null) return undefined;
  refuseManyValues(bytes);
  let value: unknown;
  try {
    // An absent body counts as an empty object, so that the check below names the missing fields.
    value = bytes.length === 0 ? {} : JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new ApiError('invalid_json');
  }
  check(validate, value);
  const field = illFormedField(value);
  if (field !== null) throw new ApiError('invalid_request', `${field.slice(0, 100)}: has half a surrogate pair.`);
  return value;
}

/** @returns a check of a tool's arguments that throws `invalid_request` naming the argument */
export function argumentCheck(schema: JsonSchema): (value: unknown) => void {
  return (value) => check(toolArguments.compile(schema), value);
}

/**
 * Looks for a lone surrogate. JSON can spell one ("\\ud800"), but UTF-8 cannot encode it: Postgres would refuse the text, or
 * store a different text than the caller sent.
 *
 * @returns the name of the top-level field that contains one; 'body' if it is in the name of a top-level field, or if the body is
 *   not an object; null if there is none
 */
function illFormedField(body: unknown): string | null {
  // A loop instead of recursion: the caller chooses how deep a body is nested, and could overflow the stack.
  const left: [field: string, value: unknown][] = [['body', body]];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const [field, value] = next;
    if (typeof value === 'string' && !value.isWellFormed()) return field;
    if (typeof value !== 'object' || value === null) continue;
    for (const [name, member] of Object.entries(value)) {
      if (!name.isWellFormed()) return field;
      left.push([value === body && !Array.isArray(value) ? name : field, member]);
    }
  }
  return null;
}

function check(validate: ValidateFunction | null, value: unknown): void {
  if (validate === null || validate(value)) return;
  const fault = validate.errors?.[0];
  throw new ApiError('invalid_request', fault === undefined ? undefined : describe(fault));
}

/** What the patterns of the schemas require, in words. */
const PATTERNS: Readonly<Record<string, string>> = {
  '^[a-z0-9]+(-[a-z0-9]+)*$': 'must be lower-case words joined by hyphens, such as weather-data',
  '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$': 'must be a UUID in lower case',
  '^acf_[0-9A-Za-z]{22}$': 'must be a key id: acf_ and 22 letters and digits',
  '^[^\\u0000-\\u001f\\u007f-\\u009f]*$': 'must not have control characters',
};

/** Example: 'price: must be >= 0.' The name of the field comes first, because people look for it. */
function describe(fault: ErrorObject): string {
  const path = fault.instancePath.slice(1).replaceAll('/', '.');
  const named =
    (fault.params as { missingProperty?: string }).missingProperty ??
    (fault.params as { additionalProperty?: string }).additionalProperty;
  const field = [path, named].filter((part) => part !== undefined && part !== '').join('.') || 'body';
  const { allowedValues: allowed, pattern = '' } = fault.params as { allowedValues?: unknown[]; pattern?: string };
  const what =
    fault.keyword === 'required'
      ? 'is required'
      : fault.keyword === 'additionalProperties'
        ? 'is not known'
        : allowed !== undefined
          ? `must be one of ${allowed.join(', ')}`
          : fault.keyword === 'minProperties'
            ? 'must have at least one field'
            : (PATTERNS[pattern] ?? fault.message ?? 'is invalid');
  return `${field.slice(0, 100)}: ${what}.`;
}
