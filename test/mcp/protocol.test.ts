import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Protocol } from '../../src/mcp/protocol.ts';
import type { Visit } from '../../src/mcp/visit.ts';
import { createLog } from '../../src/observability/log.ts';
import { CLOCKS } from '../support/clocks.ts';

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};
const MODERN = ['mcp-protocol-version', '2026-07-28', 'mcp-method', 'tools/call', 'mcp-name', 'call_service'];

beforeEach(() => {
  vi.useFakeTimers({ toFake: [...CLOCKS] });
});
afterEach(() => {
  vi.useRealTimers();
});

test.each([
  ['2026-07-28', MODERN, { _meta: META }],
  ['2025-11-25', [], {}],
])('a long call is kept alive by comments for clients of %s', async (_revision, headers, params) => {
  const protocol = new Protocol(() => new Promise(() => {}), createLog('silent', {}));
  const gone = new AbortController();
  const common = ['accept', 'application/json, text/event-stream', 'content-type', 'application/json'];
  const visit = { head: { headers: [...common, ...headers] }, gone: gone.signal } as unknown as Visit;
  const call = { name: 'call_service', arguments: {}, ...params };
  const response = await protocol.handle(visit, { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call }, true);
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const first = reader.read();
  await vi.advanceTimersByTimeAsync(15_000);
  expect(Buffer.from((await first).value ?? []).toString()).toMatch(/^:.*\n\n$/);
  gone.abort();
});

describe('a message that the protocol refuses', () => {
  const BASE = ['accept', 'application/json, text/event-stream', 'content-type', 'application/json'];
  const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  const SECRET = 'secret-of-the-caller';

  test.each<[string, string[], object]>([
    ['no message', BASE, { [SECRET]: SECRET }],
    ['an invalid id', BASE, { ...LIST, id: { [SECRET]: 1 } }],
    ['an invalid method', BASE, { ...LIST, method: 5, params: { [SECRET]: SECRET } }],
    ['a tool without a name', BASE, { ...LIST, method: 'tools/call', params: { arguments: SECRET } }],
    ['invalid arguments', BASE, { ...LIST, method: 'tools/call', params: { name: 'get_balance', arguments: SECRET } }],
    ['an unknown tool', BASE, { ...LIST, method: 'tools/call', params: { name: SECRET } }],
    ['another media type', ['content-type', 'text/plain'], LIST],
    ['an Accept without streams', ['accept', 'application/json', 'content-type', 'application/json'], LIST],
    [
      'an unknown revision',
      BASE,
      { ...LIST, params: { _meta: { ...META, 'io.modelcontextprotocol/protocolVersion': SECRET } } },
    ],
    [
      'an invalid envelope',
      BASE,
      { ...LIST, params: { _meta: { ...META, 'io.modelcontextprotocol/clientInfo': SECRET } } },
    ],
    [
      'a header that contradicts the message',
      [...BASE, 'mcp-protocol-version', '2026-07-28', 'mcp-method', SECRET],
      LIST,
    ],
  ])('%s: the log has no line above debug, no stack, and no text of the message', async (_, headers, message) => {
    const log = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn(), fatal: vi.fn() };
    const protocol = new Protocol(async () => ({ content: [] }), log);
    for (const isLong of [true, false]) {
      const visit = { head: { headers }, gone: new AbortController().signal } as unknown as Visit;
      const response = await protocol.handle(visit, message, isLong);
      expect(response.status).toBeLessThan(500);
      await response.text();
    }
    const { debug, ...louder } = log;
    for (const write of Object.values(louder)) expect(write).not.toHaveBeenCalled();
    expect(JSON.stringify(debug.mock.calls)).not.toMatch(/secret|stack|err|\.js|\.ts/);
  });
});
