import { isDeeperThan } from '../../platform/json-depth.ts';
import { usdToMicros } from '../../platform/money.ts';
import { type OwnPrice, parsePrice } from '../price.ts';
import { looseTemplate } from './spelling.ts';
import { parseTemplate, type TemplateSegment } from './template.ts';

export type Protocol = 'http' | 'mcp';

/** One way to call a listing, as its provider writes it and as buyers read it. */
export type HttpOperation = {
  readonly method: string;
  /** A template for what follows the service id; see `parseTemplate`. */
  readonly path: string;
  readonly summary: string;
  /** USD per call, instead of the listing's price. */
  readonly price?: number;
  /** USD: the highest amount that the service may report for such a call. */
  readonly max_price?: number;
  /** JSON Schemas of the request and of the response. They are shown to buyers, and nothing is checked against them. */
  readonly input?: unknown;
  readonly output?: unknown;
  readonly example?: { readonly query?: object; readonly body?: unknown; readonly response?: unknown };
};

/** A tool of an MCP server: its `tools/call` is charged. */
type ToolOperation = { readonly tool: string; readonly summary?: string } & Pick<HttpOperation, 'price' | 'max_price'>;

export type Operation = HttpOperation | ToolOperation;

/** What calls need to know about an operation: method and path, or the tool, and its own prices. */
export type HttpTerms = readonly [method: string, path: string, ...OwnPrice];
export type ToolTerms = readonly [tool: string, ...OwnPrice];
export type OperationTerms = readonly (HttpTerms | ToolTerms)[];

/** The operations of a listing, as stored. */
export type StoredOperations = {
  /** JSON text of `Operation[]`. */
  readonly json: string;
  /** JSON text of `OperationTerms`. */
  readonly terms: string;
};

export const MAX_OPERATIONS = 200;
export const OPERATION_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export const MAX_SUMMARY_LENGTH = 200;
export const MAX_TOOL_LENGTH = 128;
/**
 * Maximum characters of all operations of a listing as JSON. Postgres stores them, and one answer of /discover/{id} contains them
 * all.
 */
export const MAX_OPERATIONS_LENGTH = 262_144;
/** Maximum depth of a schema or an example. Deeper JSON can exhaust the stack of programs that read it, including this one. */
export const MAX_DEPTH = 64;

/** A fault in one of a listing's operations, worded so that it follows the field's name: `operations.3.path: must …`. */
export class OperationFault extends Error {
  /** @param field  'operations.3.path' */
  constructor(field: string, message: string) {
    super(`${field}: ${message}.`);
    this.name = 'OperationFault';
  }
}

/** The name of an operation in a fault, by its position in the list. */
type FieldOf = (index: number) => string;
const BY_INDEX: FieldOf = (index) => `operations.${index}`;

/**
 * Checks what a schema cannot express, and makes the stored form. The operations must have passed the schema of their protocol.
 *
 * @throws OperationFault
 */
export function storeOperations(operations: readonly Operation[], fieldOf: FieldOf = BY_INDEX): StoredOperations {
  if (operations.length > MAX_OPERATIONS) {
    throw new OperationFault('operations', `must be at most ${MAX_OPERATIONS}, and would be ${operations.length}`);
  }
  const terms = operations.map((operation, index) => termsOf(operation, fieldOf(index)));
  refuseRepeated(terms, fieldOf);
  const json = storedText(operations, fieldOf);
  return { json, terms: JSON.stringify(terms) };
}

/**
 * Equal for operations that match the same calls: names in braces do not matter. The path may be any text, so even a long run of
 * braces must be fast.
 */
export const operationKey = (
  of: { readonly method: string; readonly path: string } | { readonly tool: string },
): string => ('tool' in of ? of.tool : `${of.method} ${of.path.replaceAll(/\{[^{}]*\}/g, '{}')}`);

/** @param text of `StoredOperations.terms` */
export function parseTerms(text: string): OperationTerms {
  return JSON.parse(text) as OperationTerms;
}

export const isTool = (term: HttpTerms | ToolTerms): term is ToolTerms => term.length === 3;

export const ownPriceOf = (term: HttpTerms | ToolTerms): OwnPrice =>
  isTool(term) ? [term[1], term[2]] : [term[2], term[3]];

function storedText(operations: readonly Operation[], fieldOf: FieldOf): string {
  for (const [index, operation] of operations.entries()) {
    if (isDeeperThan(MAX_DEPTH, operation)) {
      throw new OperationFault(fieldOf(index), `must not be nested deeper than ${MAX_DEPTH} levels`);
    }
    // Postgres refuses this character in JSON that it has to read. The JSON text alone does not tell: a regular expression may
    // contain its escape, which is six ordinary characters.
    if (hasNul(operation)) throw new OperationFault(fieldOf(index), 'must not contain the character U+0000');
  }
  const json = JSON.stringify(operations);
  if (json.length <= MAX_OPERATIONS_LENGTH) return json;
  throw new OperationFault('operations', `must be at most ${MAX_OPERATIONS_LENGTH} characters of JSON together`);
}

/** Whether the character U+0000 is in a text or in the name of a member. Only for values whose depth is bounded. */
function hasNul(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('\0');
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([name, member]) => name.includes('\0') || hasNul(member));
}

/** The prices that a stored operation states. */
export const ownPriceIn = ({ price, max_price: max }: Operation): OwnPrice => [microsOf(price), microsOf(max)];

const microsOf = (usd: number | undefined): number | null => (usd === undefined ? null : usdToMicros(usd));

function termsOf(operation: Operation, field: string): HttpTerms | ToolTerms {
  const { price: usd, max_price: maxUsd } = operation;
  const price = usd === undefined ? null : readPrice(usd, `${field}.price`);
  const max = maxUsd === undefined ? null : readPrice(maxUsd, `${field}.max_price`);
  // An operation without a price has the listing's. Postgres compares them, because only one of the two may have been changed.
  if (max !== null && max < (price ?? 0)) throw new OperationFault(`${field}.max_price`, 'must be at least its price');
  return 'tool' in operation ? [operation.tool, price, max] : [operation.method, operation.path, price, max];
}

function readPrice(usd: number, field: string): number {
  const price = parsePrice(usd);
  if ('fault' in price) throw new OperationFault(field, price.fault);
  return price.micros;
}

/**
 * Two operations may not be the same, nor two spellings of the same path: a service that ignores letter case would serve either
 * path at either price.
 */
function refuseRepeated(terms: OperationTerms, fieldOf: FieldOf): void {
  const seen = new Map<string, number>();
  for (const [index, term] of terms.entries()) {
    const key = isTool(term) ? term[0] : `${term[0]} ${shapeOf(term[1], `${fieldOf(index)}.path`)}`;
    const before = seen.get(key);
    if (before !== undefined) {
      throw new OperationFault(fieldOf(index), `is the same as ${fieldOf(before)}, or another spelling of it`);
    }
    seen.set(key, index);
  }
}

/** The same text for templates that differ only in names in braces, letter case or encoding. @throws OperationFault */
export function shapeOf(path: string, field: string): string {
  const parsed = parseTemplate(path);
  if ('fault' in parsed) throw new OperationFault(field, parsed.fault);
  const shape = looseTemplate(parsed.segments).map(shapeOfSegment).join('/');
  // `/users` and `/users/` may be two operations: many services tell them apart.
  return parsed.segments.at(-1)?.kind === 'literal' && path.endsWith('/') ? `${shape}/` : shape;
}

function shapeOfSegment(segment: TemplateSegment): string {
  if (segment.kind === 'literal') return segment.text;
  return segment.kind === 'name' ? '{}' : '*';
}
