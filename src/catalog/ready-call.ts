import { formatUsd } from '../platform/money.ts';
import { type JsonSchema, record, TEXT } from '../platform/schemas.ts';
import type { Listing } from './listing.ts';
import { type HttpOperation, type Operation, ownPriceIn } from './operations/operation.ts';
import {
  bodyOf,
  headersOf,
  type Json,
  mediaTypeOf,
  parametersOf,
  pathOf,
  queryOf,
} from './operations/sample-request.ts';
import { mostOf, priceOf } from './price.ts';

/** A request that calls the first operation of a listing. The caller fills in the parts in braces. */
type ReadyCall = {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Json;
};

export const READY_CALL: JsonSchema = record(
  'ReadyCall',
  {
    method: TEXT,
    url: TEXT,
    headers: { type: 'object', additionalProperties: TEXT },
    body: { description: 'Text is sent as it is, any other value as JSON' },
  },
  {
    optional: ['body'],
    description:
      'A request that calls the first operation: fill in the parts in braces. X-ACF-Max-Amount is the most that it can cost. For an MCP server it is a message; if no tools are listed it asks for them, which is free',
  },
);

/** Longer bodies and values are left out, because the operation has them: its example and schema may have 262 144 characters. */
const MAX_BODY = 4_000;
const MAX_VALUE = 500;
const MAX_PARAMETERS = 20;

/**
 * @param operations the listing's operations, in the order of its provider
 * @param baseUrl base URL by which the caller reaches the gateway; '': the URL is only a path
 */
export function readyCall(listing: Listing, operations: readonly Operation[], baseUrl: string): ReadyCall {
  const [first] = operations;
  const base = `${baseUrl}/api/v1/proxy/${listing.id}`;
  const headers: Record<string, string> = {
    ...credentialsOf(listing),
    'X-ACF-Max-Amount': formatUsd(ceilingOf(listing, first)),
  };
  if (listing.protocol === 'mcp') {
    const tool = first !== undefined && 'tool' in first ? first.tool : null;
    const accepted = { Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json' };
    return { method: 'POST', url: base, headers: { ...headers, ...accepted }, body: messageOf(tool) };
  }
  if (first === undefined || 'tool' in first) return { method: 'GET', url: `${base}/`, headers };
  const { method } = first;
  for (const { name, value } of headersOf(first)) headers[name] = value;
  const body = method === 'GET' ? undefined : shortBodyOf(first);
  const target = { method, url: base + pathOfCall(first) + queryOfCall(first) };
  if (body === undefined) return { ...target, headers };
  return { ...target, headers: { ...headers, 'Content-Type': mediaTypeOf(first, body) }, body };
}

/** The gateway's key, in a header that the service does not ask for, and the headers that the service asks for. */
function credentialsOf({ forwardHeaders }: Listing): Record<string, string> {
  const asked = forwardHeaders?.split(',') ?? [];
  const key = '{key_id}:{secret}';
  const isTaken = asked.includes('authorization');
  const own: Record<string, string> = isTaken ? { 'X-Api-Key': key } : { Authorization: `Bearer ${key}` };
  // One header cannot carry both credentials.
  const others = asked.filter((name) => !isTaken || name !== 'x-api-key');
  if (others.length === 0) return own;
  own['X-ACF-Forward'] = others.join(', ');
  for (const name of others) own[name] = '{your own, for this service}';
  return own;
}

/** The most that the call can cost. */
const ceilingOf = (listing: Listing, operation: Operation | undefined): number =>
  mostOf(operation === undefined ? listing : priceOf(ownPriceIn(operation), listing));

function messageOf(tool: string | null): Json {
  const message = { jsonrpc: '2.0', id: 1 };
  if (tool === null) return { ...message, method: 'tools/list' };
  return { ...message, method: 'tools/call', params: { name: tool, arguments: {} } };
}

function pathOfCall(operation: HttpOperation): string {
  const told = new Map(parametersOf(operation, 'path').map(({ name, value }) => [name, value]));
  const segments = operation.path.split('/').map((segment) => {
    const name = /^\{(\w+)\}$/.exec(segment)?.[1];
    if (name === undefined) return pathOf(segment, {});
    const value = told.get(name) ?? '';
    return value === '' || value.length > MAX_VALUE ? segment : pathOf(segment, { [name]: value });
  });
  return segments.join('/');
}

/** Begins with '?', unless there are no parameters. */
function queryOfCall(operation: HttpOperation): string {
  const pairs = parametersOf(operation, 'query')
    .filter(({ name, value, required }) => name.length + value.length <= MAX_VALUE && (value !== '' || required))
    .slice(0, MAX_PARAMETERS)
    .map(({ name, value }) => (value === '' ? `${queryOf([{ name, value }])}{${name}}` : queryOf([{ name, value }])));
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}

function shortBodyOf(operation: HttpOperation): Json | undefined {
  const body = bodyOf(operation);
  return body === undefined || JSON.stringify(body).length > MAX_BODY ? undefined : body;
}
