import {
  Client as Client2026,
  type ClientOptions,
  StreamableHTTPClientTransport as Transport2026,
} from '@modelcontextprotocol/client';
import { Client as Client2025 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport2025 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/wait.ts';
import { authorization, type CallRecord, type Key, Marketplace, type Usage } from './marketplace.ts';
import { agent } from './mcp-agent.ts';
import { type McpService, server2025, server2026 } from './mcp-servers.ts';
import { RawCaller } from './raw-caller.ts';

const PRICE = 0.1;
const OPERATIONS = [
  { tool: 'echo', price: 0.01, summary: 'Says it again' },
  { tool: 'count' },
  { tool: 'fail', price: 0.02 },
  { tool: 'wait', price: 0.25 },
  { tool: 'leave', price: 0.3 },
  { tool: 'gone', price: 0.04 },
];

let market: Marketplace;
let modern: McpService;
let classic: McpService;
let modernPath: string;
let classicPath: string;

beforeAll(async () => {
  market = await Marketplace.start();
  [modern, classic] = await Promise.all([server2026(), server2025()]);
  const listing = {
    price: PRICE,
    free_calls: 1,
    protocol: 'mcp' as const,
    only_operations: true,
    operations: OPERATIONS,
  };
  modernPath = await market.service({ endpoint: `${modern.url}/mcp`, ...listing });
  classicPath = await market.service({ endpoint: `${classic.url}/mcp`, ...listing });
});
afterAll(async () => {
  await market.stop();
  await Promise.all([modern.close(), classic.close()]);
});

const headersOf = (key: Key) => ({ requestInit: { headers: { Authorization: authorization(key) } } });
const INFO = { name: 'test', version: '1' };

async function client2026(key: Key, options: ClientOptions = {}): Promise<Client2026> {
  const client = new Client2026(INFO, { versionNegotiation: { mode: { pin: '2026-07-28' } }, ...options });
  await client.connect(new Transport2026(new URL(market.baseUrl + modernPath), headersOf(key)));
  return client;
}

async function client2025(
  key: Key,
  fetchAs: typeof fetch = fetch,
): Promise<{ client: Client2025; transport: Transport2025 }> {
  const client = new Client2025(INFO);
  const transport = new Transport2025(new URL(market.baseUrl + classicPath), {
    ...headersOf(key),
    fetch: fetchAs,
    reconnectionOptions: {
      initialReconnectionDelay: 10,
      maxReconnectionDelay: 10,
      reconnectionDelayGrowFactor: 1,
      maxRetries: 5,
    },
  });
  await client.connect(transport as Transport);
  return { client, transport };
}

/** What was paid for and what was not, oldest first: `outcome amount`, with an `f` for a free call. */
async function bills(key: Key): Promise<{ paid: string[]; unpaid: string[] }> {
  const records = [...(await market.records(key))].reverse();
  const line = ({ outcome, amount, free_tier }: CallRecord): string => `${outcome} ${free_tier ? 'f' : amount}`;
  const isPaid = ({ amount, free_tier }: CallRecord): boolean => amount > 0 || free_tier;
  return {
    paid: records.filter(isPaid).map(line),
    unpaid: records.filter((record) => !isPaid(record)).map(line),
  };
}

/** Since this many lines, what the server has seen. */
const since = (service: McpService, before: number): string[] => service.seen.slice(before);

describe('an agent that has only the tools of the marketplace', () => {
  const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

  it('learns from get_service how to call an MCP listing, and calls its tool with what get_service returned', async () => {
    const buyer = await market.buyer(1);
    const tools = await agent('2025-11-25', market.baseUrl, buyer);
    const service_id = modernPath.slice(modernPath.lastIndexOf('/') + 1);
    const { structured: service } = await tools.call('get_service', { service_id });
    expect(service).toMatchObject({ protocol: 'mcp', note: expect.stringContaining('JSON-RPC') });
    const ready = service?.call_service as { body: { params: object }; max_amount: number };
    const listed = await tools.call('call_service', { ...ready, body: LIST });
    expect(listed.structured).toMatchObject({ status: 200, amount: 0, body: expect.stringContaining('"echo"') });
    const body = { ...ready.body, params: { ...ready.body.params, arguments: { text: 'ready' } } };
    // The first takes the free call.
    for (const amount of [0, 0.01]) {
      const called = await tools.call('call_service', { ...ready, body });
      expect(called.structured).toMatchObject({ status: 200, amount, body: expect.stringContaining('"ready"') });
    }
    expect(ready.max_amount).toBe(0.01);
    await tools.close();
  });

  it('gets the same by HTTP with the example call of the listing', async () => {
    const buyer = await market.buyer(1);
    const id = modernPath.slice(modernPath.lastIndexOf('/') + 1);
    const { call } = await market.json<{
      call: { method: string; url: string; headers: Record<string, string>; body: object };
    }>(`/api/v1/discover/${id}`);
    expect(call.url).toBe(market.baseUrl + modernPath);
    const headers = { ...call.headers, Authorization: authorization(buyer) };
    const response = await fetch(call.url, { method: call.method, headers, body: JSON.stringify(call.body) });
    expect([response.status, response.headers.get('x-acf-free-tier')]).toEqual([200, 'true']);
    await response.text();
  });

  it('keeps the session of a server that has sessions, by a header', async () => {
    const buyer = await market.buyer(1);
    const tools = await agent('2026-07-28', market.baseUrl, buyer);
    const service_id = classicPath.slice(classicPath.lastIndexOf('/') + 1);
    const send = async (body: object, headers = {}) =>
      (await tools.call('call_service', { service_id, method: 'POST', path: '', body, headers })).structured;
    expect(await send(LIST)).toMatchObject({ status: 400, amount: 0 });
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: INFO };
    const begun = await send({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
    expect(begun).toMatchObject({ status: 200, amount: 0, mcp_session_id: expect.any(String) });
    const session = { 'Mcp-Session-Id': String(begun?.mcp_session_id) };
    await send({ jsonrpc: '2.0', method: 'notifications/initialized' }, session);
    const call = { ...LIST, method: 'tools/call', params: { name: 'echo', arguments: { text: 'in it' } } };
    expect(await send(call, session)).toMatchObject({ status: 200, body: expect.stringContaining('in it') });
    await tools.close();
  });
});

describe('an MCP server of protocol 2026-07-28 behind the proxy, with an unmodified client', () => {
  it('lists its tools, reports progress, and fails; only calls of tools cost, each the price of its tool', async () => {
    const buyer = await market.buyer(1);
    const before = modern.seen.length;
    const client = await client2026(buyer);
    expect(client.getNegotiatedProtocolVersion()).toBe('2026-07-28');
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['echo', 'count', 'fail', 'wait', 'leave']);
    const echo = (text: string) => client.callTool({ name: 'echo', arguments: { text } });
    // The first takes the free call.
    expect((await echo('one')).content).toEqual([{ type: 'text', text: 'one' }]);
    expect((await echo('zwei, 三, \u{1f600}')).content).toEqual([{ type: 'text', text: 'zwei, 三, \u{1f600}' }]);
    const progress: number[] = [];
    const counted = await client.callTool({ name: 'count' }, { onprogress: (at) => progress.push(at.progress) });
    expect([counted.content, progress]).toEqual([[{ type: 'text', text: 'counted' }], [1, 2, 3]]);
    expect((await client.callTool({ name: 'fail' })).isError).toBe(true);
    await expect(client.callTool({ name: 'other' })).rejects.toThrow('operation_not_found');
    await client.close();
    expect(await bills(buyer)).toEqual({
      paid: ['completed f', 'completed 0.01', 'completed 0.1', 'completed 0.02'],
      unpaid: ['completed 0', 'completed 0'],
    });
    expect(await market.balance(buyer)).toMatchObject({ balance: 0.87, held: 0 });
    const calls = Array(4).fill('POST tools/call');
    expect(since(modern, before)).toEqual(['POST server/discover', 'POST tools/list', ...calls]);
  });

  it('tells a listening client what has changed, free of charge', async () => {
    const buyer = await market.buyer(0);
    let changes = 0;
    const onChanged = (): void => void changes++;
    const client = await client2026(buyer, {
      listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged } },
    });
    expect(modern.seen.at(-1)).toBe('POST subscriptions/listen');
    modern.announce();
    await until(() => changes === 1);
    await client.close();
    const { paid, unpaid } = await bills(buyer);
    expect([paid, unpaid.length]).toEqual([[], 2]);
  });

  it('is paid when its caller leaves in the middle of a call', async () => {
    const buyer = await market.buyer(1);
    const client = await client2026(buyer);
    const left = new AbortController();
    const call = client.callTool({ name: 'wait' }, { signal: left.signal, onprogress: () => left.abort() });
    await expect(call).rejects.toThrow();
    modern.release();
    await client.close();
    expect((await bills(buyer)).paid).toEqual(['completed 0.25']);
    expect(await market.balance(buyer)).toMatchObject({ balance: 0.75, held: 0 });
  });

  it('is not paid when it dies in the middle of a call, which is refunded', async () => {
    const buyer = await market.buyer(1);
    const client = await client2026(buyer);
    let isUnderWay = false;
    const onprogress = (): void => {
      isUnderWay = true;
      modern.responses.at(-1)?.destroy();
    };
    const failed = expect(client.callTool({ name: 'wait' }, { onprogress })).rejects.toThrow();
    await until(async () => isUnderWay && (await market.balance(buyer)).held === 0);
    modern.release();
    // Nothing tells this client's call that its stream broke.
    await client.close();
    await failed;
    expect(await bills(buyer)).toMatchObject({ paid: [], unpaid: ['completed 0', 'refunded:upstream_cut 0'] });
    expect(await market.balance(buyer)).toMatchObject({ balance: 1, held: 0 });
  });
});

describe('an MCP server of protocol 2025-11-25 behind the proxy, with an unmodified client', () => {
  it('opens a session, lists its tools, reports progress, fails, and ends the session; only calls of tools cost', async () => {
    const buyer = await market.buyer(1);
    const before = classic.seen.length;
    const { client, transport } = await client2025(buyer);
    expect(transport.sessionId).toMatch(/^[0-9a-f-]{36}$/);
    expect(transport.protocolVersion).toBe('2025-11-25');
    expect((await client.listTools()).tools).toHaveLength(5);
    await client.callTool({ name: 'echo', arguments: { text: 'free' } });
    const progress: number[] = [];
    const options = { onprogress: (at: { progress: number }) => progress.push(at.progress) };
    const counted = await client.callTool({ name: 'count' }, undefined, options);
    expect([counted.content, progress]).toEqual([[{ type: 'text', text: 'counted' }], [1, 2, 3]]);
    expect((await client.callTool({ name: 'fail' })).isError).toBe(true);
    // The server answers with a JSON-RPC error and status 200.
    await expect(client.callTool({ name: 'gone' })).rejects.toThrow('no tool gone');
    await expect(client.callTool({ name: 'other' })).rejects.toThrow('operation_not_found');
    await client.ping();
    await until(() => since(classic, before).includes('GET'));
    await transport.terminateSession();
    await client.close();
    const { paid, unpaid } = await bills(buyer);
    expect(paid).toEqual(['completed f', 'completed 0.1', 'completed 0.02', 'completed 0.04']);
    // initialize, initialized, the event stream, list, ping, the end of the session. When it ends, the client may try to open its event
    // stream once more before it closes.
    expect([6, 7]).toContain(unpaid.length);
    expect(await market.balance(buyer)).toMatchObject({ balance: 0.84, held: 0 });
    // Every message is on record, and says what it was. The sums have the calls of tools only.
    const usage = await market.json<Usage>('/api/v1/usage/me', { key: buyer });
    const marks = usage.records.map(({ method, path }) => `${method} ${path}`);
    expect(new Set(marks)).toEqual(
      new Set([
        'POST ',
        'POST #initialize',
        'POST #notifications/initialized',
        'GET #stream',
        'POST #tools/list',
        'POST #ping',
        'DELETE #end',
      ]),
    );
    expect(usage).toMatchObject({ total_calls: 4, free_calls: 1, by_service: [{ calls: 4 }] });
    const methods = [
      'DELETE',
      'GET',
      'POST initialize',
      'POST notifications/initialized',
      'POST ping',
      'POST tools/list',
    ];
    expect(new Set(since(classic, before))).toEqual(new Set([...methods, 'POST tools/call']));
    expect(since(classic, before).filter((line) => line === 'POST tools/call')).toHaveLength(4);
  });

  it('opens an event stream before there is an event, and reports changes on it, free of charge', async () => {
    const buyer = await market.buyer(0);
    let isOpen = false;
    const { client } = await client2025(buyer, async (url, init) => {
      const response = await fetch(url, init);
      isOpen ||= init?.method === 'GET' && response.headers.get('content-type') === 'text/event-stream';
      return response;
    });
    let changes = 0;
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void changes++);
    await until(() => isOpen);
    classic.announce();
    await until(() => changes === 1);
    await client.close();
    const { paid, unpaid } = await bills(buyer);
    expect([paid, unpaid.length]).toEqual([[], 3]);
  });

  it('resumes a stream that the server ended on purpose, and the call is charged once', async () => {
    const buyer = await market.buyer(1);
    const { client } = await client2025(buyer);
    await until(() => classic.seen.at(-1) === 'GET');
    const before = classic.seen.length;
    const progress: number[] = [];
    const call = client.callTool({ name: 'leave' }, undefined, { onprogress: (at) => progress.push(at.progress) });
    await until(() => since(classic, before).includes('GET'));
    classic.release();
    expect([(await call).content, progress]).toEqual([[{ type: 'text', text: 'came back' }], [1, 2]]);
    await client.close();
    expect((await bills(buyer)).paid).toEqual(['completed 0.3']);
    expect(await market.balance(buyer)).toMatchObject({ balance: 0.7, held: 0 });
  });

  it('resumes a stream that broke, and the call is refunded', async () => {
    const buyer = await market.buyer(1);
    const { client } = await client2025(buyer);
    await until(() => classic.seen.at(-1) === 'GET');
    const before = classic.seen.length;
    let isBroken = false;
    const onprogress = (): void => {
      if (!isBroken) classic.responses.at(-1)?.destroy();
      isBroken = true;
    };
    const call = client.callTool({ name: 'wait' }, undefined, { onprogress });
    await until(() => since(classic, before).includes('GET'));
    classic.release();
    expect((await call).content).toEqual([{ type: 'text', text: 'waited' }]);
    await client.close();
    const { paid, unpaid } = await bills(buyer);
    expect(paid).toEqual([]);
    expect(unpaid).toContain('refunded:upstream_cut 0');
    expect(await market.balance(buyer)).toMatchObject({ balance: 1, held: 0 });
  });

  it('resumes a stream whose caller was cut off, and the call is charged once', async () => {
    const buyer = await market.buyer(1);
    const { client, transport } = await client2025(buyer);
    const session = `Mcp-Session-Id: ${transport.sessionId}\r\nMCP-Protocol-Version: 2025-11-25`;
    const ask = async (line: string, headers: string, body = ''): Promise<RawCaller> => {
      const caller = await RawCaller.connect(market.baseUrl);
      const common = `Host: gateway.test\r\nAuthorization: ${authorization(buyer)}\r\n${session}\r\n${headers}`;
      caller.send(`${line} ${classicPath} HTTP/1.1\r\n${common}\r\n\r\n${body}`);
      return caller;
    };
    const params = { name: 'wait', _meta: { progressToken: 7 } };
    const message = JSON.stringify({ jsonrpc: '2.0', id: 'my call', method: 'tools/call', params });
    const types = 'Content-Type: application/json\r\nAccept: application/json, text/event-stream';
    const first = await ask('POST', `${types}\r\nContent-Length: ${message.length}`, message);
    await first.until((received) => received.includes('"progress":1'));
    const id = /\bid: (\d+)\n[^\0]*"progress":1/.exec(first.received.toString())?.[1];
    first.destroy();
    await until(async () => (await market.balance(buyer)).held === 0);
    const second = await ask('GET', `Accept: text/event-stream\r\nLast-Event-ID: ${id}`);
    classic.release();
    await second.until((received) => received.includes('"text":"waited"') && received.includes('"id":"my call"'));
    second.destroy();
    await client.close();
    expect((await bills(buyer)).paid).toEqual(['completed 0.25']);
    expect(await market.balance(buyer)).toMatchObject({ balance: 0.75, held: 0 });
  });
});

describe('the books of MCP servers', () => {
  it('record no free call and no money for messages that call no tool, even from a caller without money', async () => {
    const buyer = await market.buyer(0);
    const client = await client2026(buyer);
    expect((await client.listTools()).tools).toHaveLength(5);
    await client.callTool({ name: 'echo' });
    await expect(client.callTool({ name: 'echo' })).rejects.toThrow('insufficient_balance');
    await client.close();
    expect(await bills(buyer)).toEqual({ paid: ['completed f'], unpaid: ['completed 0', 'completed 0'] });
  });

  it('balance when the gateway stops in the middle of a call, which is refunded', async () => {
    const buyer = await market.buyer(1);
    const client = await client2026(buyer);
    let isUnderWay = false;
    const onprogress = (): void => {
      isUnderWay = true;
    };
    const failed = expect(client.callTool({ name: 'wait' }, { onprogress })).rejects.toThrow();
    await until(() => isUnderWay);
    expect(await market.balance(buyer)).toMatchObject({ balance: 0.75, held: 0.25 });
    const another = await market.anotherGateway();
    try {
      expect(await market.stopGateway()).toEqual({ callsCut: 1, unsettled: 0 });
      await market.settled();
      const usage = await fetch(`${another.baseUrl}/api/v1/usage/me`, {
        headers: { Authorization: authorization(buyer) },
      });
      const { records } = (await usage.json()) as { records: CallRecord[] };
      expect(records.map(({ outcome, amount }) => [outcome, amount])).toEqual([
        ['refunded:unavailable', 0],
        ['completed', 0],
      ]);
      expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
    } finally {
      modern.release();
      await another.stop();
      await client.close();
      await failed;
    }
  });
});
