import { afterEach, beforeEach, expect, test, vi } from 'vitest';
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
])('a call that takes long is kept alive by comments for clients of %s', async (_revision, headers, params) => {
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
