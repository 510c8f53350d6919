import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { ApiError } from '../errors.ts';
import type { JsonSchema, Route } from './route.ts';

/** The validators of one route, compiled at start. */
export type Validators = { readonly query: ValidateFunction | null; readonly body: ValidateFunction | null };

const bodies = new Ajv({ allErrors: false, useDefaults: true });
/** Query values are text: '5' is good for an integer. */
const queries = new Ajv({ allErrors: false, useDefaults: true, coerceTypes: true });

const NO_QUERY: JsonSchema = { type: 'object', additionalProperties: false, properties: {} };

export function compileValidators(route: Route): Validators {
  return {
    query: queries.compile(route.query ?? NO_QUERY),
    body: route.body === undefined ? null : bodies.compile(route.body),
  };
}

/** Query text → validated object. Throws `invalid_request` naming the parameter. */
export function validQuery(validate: ValidateFunction | null, query: string | undefined): unknown {
  const values: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(query ?? '')) {
    if (Object.hasOwn(values, name))
      throw new ApiError('invalid_request', `${name.slice(0, 100)}: given more than once.`);
    values[name] = value;
  }
  check(validate, values);
  return values;
}

/** Body bytes → validated value. Throws `invalid_json`, or `invalid_request` naming the field. */
export function validBody(validate: ValidateFunction | null, bytes: Buffer): unknown {
  if (validate === null) return undefined;
  let value: unknown;
  try {
    // No body at all is an empty object: what it lacks is named below.
    value = bytes.length === 0 ? {} : JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new ApiError('invalid_json');
  }
  check(validate, value);
  return value;
}

function check(validate: ValidateFunction | null, value: unknown): void {
  if (validate === null || validate(value)) return;
  const fault = validate.errors?.[0];
  throw new ApiError('invalid_request', fault === undefined ? undefined : describe(fault));
}

/** 'price: must be >= 0.' The name of the field comes first: people look for it. */
function describe(fault: ErrorObject): string {
  const path = fault.instancePath.slice(1).replaceAll('/', '.');
  const named =
    (fault.params as { missingProperty?: string }).missingProperty ??
    (fault.params as { additionalProperty?: string }).additionalProperty;
  const field = [path, named].filter((part) => part !== undefined && part !== '').join('.') || 'body';
  const allowed = (fault.params as { allowedValues?: unknown[] }).allowedValues;
  const what =
    fault.keyword === 'required'
      ? 'is required'
      : fault.keyword === 'additionalProperties'
        ? 'is not known'
        : allowed !== undefined
          ? `must be one of ${allowed.join(', ')}`
          : (fault.message ?? 'is invalid');
  return `${field.slice(0, 100)}: ${what}.`;
}
