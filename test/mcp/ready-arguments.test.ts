import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import type { Operation } from '../../src/catalog/operations/operation.ts';
import { readyCall } from '../../src/catalog/ready-call.ts';
import { PROXY_PREFIX } from '../../src/gate/caller-io.ts';
import { argumentCheck } from '../../src/http/validation.ts';
import { type CallArguments, callRequest } from '../../src/mcp/call-request.ts';
import { readyArguments } from '../../src/mcp/ready-arguments.ts';
import { TOOLS } from '../../src/mcp/tools.ts';
import { makeListing } from '../support/listings.ts';

const schema = TOOLS.find(({ name }) => name === 'call_service')?.inputSchema ?? {};
const FIRST = { method: 'POST', path: '/a%20b', summary: '' };
const NEEDED = {
  properties: { 'X-Version': { default: '2 b' }, 'X-Tenant': {}, 'idempotency-key': {} },
  required: ['X-Version', 'X-Tenant', 'idempotency-key'],
};

test.each<[string, Operation[], Parameters<typeof makeListing>[0]]>([
  ['nothing is stated', [], {}],
  ['with a query', [{ ...FIRST, method: 'GET', example: { query: { q: 'x y', n: 1 } } }], {}],
  ['with a body', [{ ...FIRST, example: { body: { a: [1, 'ü'] } } }], {}],
  ['with text', [{ ...FIRST, example: { body: 'a,b' } }], {}],
  ['with headers that it needs', [{ ...FIRST, input: { properties: { headers: NEEDED } } }], {}],
  ['with credentials of the caller', [], { forwardHeaders: 'authorization,cookie' }],
  ['of an MCP server', [{ tool: 'search' }], { protocol: 'mcp' }],
])('the arguments make the same call as the HTTP request: %s', (_, operations, fields) => {
  const listing = makeListing(fields);
  const call = readyCall(listing, operations, 'https://gateway.test');
  const args = readyArguments(listing.id, call);
  argumentCheck(schema)(args);
  const outer = { authorization: 'Bearer key', headers: ['host', 'gateway.test'] };
  const { head, body } = callRequest(args as CallArguments, outer);
  const target = head.query === undefined ? head.path : `${head.path}?${head.query}`;
  expect([head.method, `https://gateway.test${target}`]).toEqual([call.method, call.url]);
  expect(head.path.startsWith(PROXY_PREFIX + listing.id)).toBe(true);
  const sent = typeof call.body === 'string' ? call.body : (JSON.stringify(call.body) ?? '');
  expect(Buffer.from(body).toString()).toBe(sent);
  const headers = new Map(
    Array.from({ length: head.headers.length / 2 }, (_, i) => head.headers.slice(2 * i, 2 * i + 2) as [string, string]),
  );
  for (const [name, value] of Object.entries(call.headers)) {
    if (value.includes('{key_id}')) expect(headers.get(name.toLowerCase()) ?? '').not.toContain('key_id');
    else if (name === 'Accept') expect(headers.get('accept')).toMatch(/application\/json.*text\/event-stream/);
    else expect(headers.get(name.toLowerCase()), name).toBe(value);
  }
});

test.each(TOOLS)(
  'the arguments of $name have a valid schema, which no process checks at its start',
  ({ inputSchema }) => {
    const ajv = new Ajv();
    expect([ajv.validateSchema(inputSchema), ajv.errors]).toEqual([true, null]);
  },
);
