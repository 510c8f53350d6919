import { mergeOperations, type OperationChange } from '../catalog/operations/merge-operations.ts';
import {
  MAX_OPERATIONS,
  MAX_SUMMARY_LENGTH,
  MAX_TOOL_LENGTH,
  OPERATION_METHODS,
  type Operation,
  OperationFault,
  type Protocol,
  type StoredOperations,
  storeOperations,
} from '../catalog/operations/operation.ts';
import { MAX_TEMPLATE_LENGTH } from '../catalog/operations/template.ts';
import { MAX_PRICE_USD } from '../catalog/price.ts';
import { ApiError } from '../errors.ts';
import { violatedConstraint } from '../platform/postgres.ts';

const FIELDS = {
  method: { type: 'string', enum: [...OPERATION_METHODS], description: 'GET also stands for HEAD' },
  path: {
    type: 'string',
    maxLength: MAX_TEMPLATE_LENGTH,
    description: 'What follows the service id: literal segments, {name} for one segment, a last * for the rest',
  },
  tool: { type: 'string', minLength: 1, maxLength: MAX_TOOL_LENGTH, description: 'Of an MCP server' },
} as const;
const SUMMARY = { type: 'string', minLength: 1, maxLength: MAX_SUMMARY_LENGTH } as const;
const PRICE = {
  type: 'number',
  minimum: 0,
  maximum: MAX_PRICE_USD,
  description: "USD per call, instead of the listing's price",
} as const;
const MAX_PRICE_OF_CALL = {
  type: 'number',
  minimum: 0,
  maximum: MAX_PRICE_USD,
  description: 'USD: the service reports what a call cost, up to this amount',
} as const;
const INPUT = { type: 'object', description: 'JSON Schema of the request; it is not enforced' } as const;
const OUTPUT = { type: 'object', description: 'JSON Schema of the response; it is not enforced' } as const;
const EXAMPLE = {
  type: 'object',
  additionalProperties: false,
  properties: { query: { type: 'object' }, body: {}, response: {} },
} as const;

/** Operations as a provider writes them. Which fields an operation needs depends on the protocol: `readOperations` checks it. */
export const OPERATIONS = {
  type: 'array',
  maxItems: MAX_OPERATIONS,
  description: 'How to call the service; an empty list: not stated',
  items: {
    type: 'object',
    additionalProperties: false,
    properties: {
      ...FIELDS,
      summary: SUMMARY,
      price: PRICE,
      max_price: MAX_PRICE_OF_CALL,
      input: INPUT,
      output: OUTPUT,
      example: EXAMPLE,
    },
  },
} as const;

/** Changes of single operations: `mergeOperations`. */
export const OPERATION_CHANGES = {
  type: ['array', 'null'],
  // Enough to remove the maximum number of operations, and to add as many.
  maxItems: 2 * MAX_OPERATIONS,
  description:
    'Changes of single operations, found by method and path, or by tool; all others are kept. null removes all of them',
  items: {
    type: 'object',
    additionalProperties: false,
    description: 'The fields that change; null clears one. An operation that does not exist yet is added',
    properties: {
      ...FIELDS,
      remove: { type: 'boolean', const: true, description: 'Removes the operation' },
      summary: { ...SUMMARY, type: ['string', 'null'] },
      price: { ...PRICE, type: ['number', 'null'], description: "USD per call; null: the listing's price" },
      max_price: { ...MAX_PRICE_OF_CALL, type: ['number', 'null'] },
      input: { ...INPUT, type: ['object', 'null'] },
      output: { ...OUTPUT, type: ['object', 'null'] },
      example: { ...EXAMPLE, type: ['object', 'null'] },
    },
  },
} as const;

/**
 * Reads `operations` of a request body that has passed its schema.
 *
 * @returns null if the listing should have none
 */
export function readOperations(value: readonly object[] | null, protocol: Protocol): StoredOperations | null {
  if (value === null || value.length === 0) return null;
  return withoutFaults(() => {
    for (const [index, operation] of value.entries()) checkFields(operation, protocol, `operations.${index}`);
    return storeOperations(value as readonly Operation[]);
  });
}

/**
 * Reads changes of operations from a request body that has passed its schema.
 *
 * @param base  the operations that they change
 * @returns null if none is left
 */
export function mergeChanges(
  base: readonly Operation[],
  changes: readonly object[],
  protocol: Protocol,
): StoredOperations | null {
  return withoutFaults(() => {
    if (changes.length === 0)
      throw new OperationFault('operations', 'an empty list changes nothing; null removes them all');
    for (const [index, change] of changes.entries()) {
      requireFields(protocol === 'mcp' ? ['tool'] : ['method', 'path'], change, `operations.${index}`);
    }
    return mergeOperations(base, changes as readonly OperationChange[], (operation, field) =>
      checkFields(operation, protocol, field),
    );
  });
}

function withoutFaults<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof OperationFault) throw new ApiError('invalid_request', error.message);
    throw error;
  }
}

const HTTP_FIELDS = ['method', 'path', 'summary'] as const;
const ONLY_HTTP = ['method', 'path', 'input', 'output', 'example'] as const;

function checkFields(operation: object, protocol: Protocol, field: string): void {
  requireFields(protocol === 'mcp' ? ['tool'] : HTTP_FIELDS, operation, field);
  for (const name of protocol === 'mcp' ? ONLY_HTTP : ['tool']) {
    if (!(name in operation)) continue;
    throw new OperationFault(`${field}.${name}`, `is not supported for a listing with protocol ${protocol}`);
  }
}

function requireFields(names: readonly string[], operation: object, field: string): void {
  const missing = names.find((name) => !(name in operation));
  if (missing !== undefined) throw new OperationFault(`${field}.${missing}`, 'is required');
}

const EXPENSIVE_OPERATIONS =
  'operations: an operation may cost more than the listing only with only_operations: true. Send both in the same request; with an OpenAPI document, as ?only_operations=true. Otherwise a call that matches no operation, such as another spelling of its path, would cost less.';
const ONLY_OPERATIONS =
  'only_operations: needs operations. Without any, every call would be refused. Send both in the same request; with an OpenAPI document, as ?only_operations=true.';
const MAX_PRICE = 'max_price: must be at least the price. Send both in the same request.';
const OPERATION_MAX_PRICE =
  "operations: the max_price of an operation must be at least its price, which is the listing's if it has none of its own.";
/** Applies to the terms that count now and to the announced ones. */
const RULES: Readonly<Record<string, string>> = {
  services_max_price: MAX_PRICE,
  services_next_max_price: MAX_PRICE,
  services_operation_max_price: OPERATION_MAX_PRICE,
  services_next_operation_max_price: OPERATION_MAX_PRICE,
  services_dear_operations: EXPENSIVE_OPERATIONS,
  services_next_dear_operations: EXPENSIVE_OPERATIONS,
  services_only_operations: ONLY_OPERATIONS,
  services_next_only_operations: ONLY_OPERATIONS,
};

/**
 * Runs a write to the catalog. Postgres checks rules that concern several fields of a listing, because a change may contain only
 * one of them. A violation becomes `invalid_request`.
 */
export async function withinRules<T>(write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    const rule = RULES[violatedConstraint(error) ?? ''];
    throw rule === undefined ? error : new ApiError('invalid_request', rule);
  }
}
