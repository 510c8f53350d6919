import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../support/wait.ts';
import { authorization, bodyOf, echo, type Key, Marketplace, startService, type TestService } from './marketplace.ts';
import { type Agent, type Answer, agent, REVISIONS } from './mcp-agent.ts';
import { RawCaller, requestText } from './raw-caller.ts';

const PRICE = 0.1;
const PAGE = 'https://app.example.com';

let market: Marketplace;
let service: TestService;
let serviceId: string;
/** Responses that the service has begun, or will never begin. */
const open: ServerResponse[] = [];

beforeAll(async () => {
  market = await Marketplace.start({ ALLOWED_ORIGINS: PAGE, DRAIN_SECONDS: '2' });
  service = await startService(async (request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://service');
    switch (pathname) {
      case '/hang':
        open.push(response);
        return;
      case '/status':
        await bodyOf(request);
        response.writeHead(Number(new URL(request.url ?? '', 'http://service').searchParams.get('code')));
        response.end('so it is');
        return;
      case '/used':
        response.writeHead(200, { 'Content-Type': 'text/plain' });
        response.write('so much');
        response.addTrailers({ 'X-ACF-Charge': '0.0123' });
        response.end();
        return;
      case '/large':
        response.writeHead(200, { 'Content-Type': 'text/plain' });
        response.end('é'.repeat(400_000));
        return;
      case '/binary':
        response.writeHead(200, { 'Content-Type': 'image/png' });
        response.end(Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2, 255]));
        return;
      case '/events':
        response.writeHead(200, { 'Content-Type': 'text/event-stream' });
        response.write('data: 1\n\n');
        setTimeout(() => response.end('data: 2\n\n'), 20);
        return;
      case '/half':
        response.writeHead(200, { 'Content-Length': '100' });
        response.write('half');
        open.push(response);
        return;
      case '/moved':
        response.writeHead(302, {
          Location: new URL(request.url ?? '', 'http://service').searchParams.get('to') ?? '',
        });
        response.end();
        return;
      case '/cut':
        response.writeHead(200, { 'Content-Length': '100' });
        response.write('half');
        setImmediate(() => response.destroy());
        return;
      default:
        await echo(request, response);
    }
  });
  serviceId = await listing(PRICE);
});

afterAll(async () => {
  for (const response of open) response.destroy();
  await market?.stop();
  await service?.close();
});

async function listing(
  price: number,
  options: { timeout_seconds?: number; endpoint?: string; max_price?: number; free_calls?: number } = {},
): Promise<string> {
  const path = await market.service({ endpoint: service.url, price, ...options });
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Expects that the key's only record is this, and that its balance agrees. */
async function expectOnlyRecord(key: Key, record: Record<string, unknown>): Promise<void> {
  const records = await market.records(key);
  expect(records).toHaveLength(1);
  expect(records[0]).toMatchObject(record);
  const spent = Math.round(Number(record.amount) * 1e6);
  expect(await market.balance(key)).toMatchObject({ balance: (1e6 - spent) / 1e6, held: 0 });
}

describe.each(REVISIONS)('a client of %s', (revision) => {
  let buyer: Key;
  let tools: Agent;

  beforeAll(async () => {
    buyer = await market.buyer(1);
    tools = await agent(revision, market.baseUrl, buyer);
  });

  afterAll(() => tools?.close());

  test('finds five tools, each with a description of its input and its output', async () => {
    expect(tools.revision).toBe(revision);
    const list = await tools.tools();
    expect(list.map(({ name }) => name)).toEqual([
      'discover_services',
      'get_service',
      'call_service',
      'get_usage',
      'get_balance',
    ]);
    for (const tool of list) expect(tool).toHaveProperty('outputSchema.type', 'object');
    expect(list[2]?.annotations).toEqual({
      readOnlyHint: false,
      destructiveHint: true,
      idempotentHint: false,
      openWorldHint: true,
    });
  });

  test('finds a service and reads how to call it', async () => {
    const found = await tools.call('discover_services', { q: 'test', max_price: 1, limit: 100 });
    expect(found.structured?.services).toContainEqual(expect.objectContaining({ id: serviceId, price: PRICE }));
    expect(found.structured?.services).not.toContainEqual(expect.objectContaining({ proxy_path: expect.anything() }));
    const { structured } = await tools.call('get_service', { service_id: serviceId });
    const url = `${market.baseUrl}/api/v1/proxy/${serviceId}/`;
    expect(structured).toMatchObject({ id: serviceId, price: PRICE, call: { method: 'GET', url } });
    expect(structured).not.toHaveProperty('note');
    const caller = await agent(revision, market.baseUrl, await market.buyer(1));
    const called = await caller.call('call_service', structured?.call_service as Record<string, unknown>);
    expect(called.structured).toMatchObject({ status: 200, amount: PRICE });
    await caller.close();
  });

  test('is charged the price of a call, which has the record that a proxied call has', async () => {
    const progress: (string | undefined)[] = [];
    const args = { method: 'POST', path: '/a%20b', query: { q: 'x y', n: [1, 2] }, body: { hello: 'wörld' } };
    const { isError, structured } = await tools.call(
      'call_service',
      { service_id: serviceId, ...args, max_amount: PRICE, idempotency_key: 'once' },
      { onprogress: ({ message }) => progress.push(message) },
    );
    expect(isError).toBe(false);
    expect(structured).toMatchObject({ status: 200, truncated: false, amount: PRICE, balance: 0.9, free_tier: false });
    const received = structured?.body as { method: string; url: string; headers: string[]; body: string };
    expect(received).toMatchObject({ method: 'POST', url: '/a%20b?q=x%20y&n=1&n=2' });
    expect(Buffer.from(received.body, 'latin1').toString()).toBe('{"hello":"wörld"}');
    expect(received.headers.join(' ')).toContain('idempotency-key once');
    expect(received.headers.join(' ')).not.toContain(buyer.secret);
    expect(progress[0]).toContain('waiting for the service');
    await expectOnlyRecord(buyer, {
      usage_id: structured?.usage_id,
      method: 'POST',
      path: '/a%20b',
      status: 200,
      amount: PRICE,
      outcome: 'completed',
      request_bytes: 18,
    });
    const again = { service_id: serviceId, ...args, max_amount: PRICE, idempotency_key: 'once' };
    expect((await tools.call('call_service', again)).structured).toEqual({ ...structured, replayed: true });
    const mismatch = await tools.call('call_service', { ...again, body: 'other' });
    expect(mismatch.structured).toMatchObject({
      error: 'idempotency_mismatch',
      amount: 0,
      note: 'Nothing was charged. Use another idempotency_key for another call.',
    });
    const usage = await tools.call('get_usage', { service_id: serviceId });
    expect(usage.structured).toMatchObject({ total_calls: 1, total_spent: PRICE });
    expect(usage.structured).not.toHaveProperty('by_day');
    expect(usage.structured).not.toHaveProperty('by_hour');
    const balance = (await tools.call('get_balance')).structured;
    expect(balance).toMatchObject({ account_id: buyer.account_id, balance: 0.9, held: 0, currency: 'USD' });
  });

  test('sends headers through the same filter as a proxied call, and a body exactly as the agent gave it', async () => {
    const sender = await market.buyer(1);
    const its = await agent(revision, market.baseUrl, sender);
    const headers = {
      'X-Version': '2',
      'X-ACF-Tag': 'customer-17',
      Accept: 'text/csv',
      Authorization: 'Bearer of-another-company',
      Cookie: 'a=b',
      'X-Forwarded-For': '192.0.2.1',
      'X-Key': `${sender.key_id}:${sender.secret}`,
      Host: 'evil.test',
      Connection: 'x-named',
      'X-Named': '1',
      'Transfer-Encoding': 'chunked',
    };
    const args = { method: 'POST', path: '/', headers, body: 'a;b', content_type: 'text/csv' };
    const { structured } = await its.call('call_service', { service_id: serviceId, ...args });
    const echoed = structured?.body as { headers: string[]; body: string };
    const received = echoed.headers.join(' ').toLowerCase();
    for (const sent of ['x-version 2', 'accept text/csv', 'content-type text/csv']) expect(received).toContain(sent);
    expect(received).not.toMatch(/another-company|a=b|192\.0\.2\.1|x-key|evil|x-named|chunked|acf_|customer/);
    expect(echoed.body).toBe('a;b');
    await market.settled();
    expect(await market.records(sender)).toMatchObject([{ tag: 'customer-17' }]);
    await its.close();
  });

  test('sends credentials to a service that asks for them if the call agrees, beside the key that pays', async () => {
    const sender = await market.buyer(1);
    const its = await agent(revision, market.baseUrl, sender);
    const path = await market.service({ endpoint: service.url, price: 0, forward_headers: ['authorization'] });
    const service_id = path.slice(path.lastIndexOf('/') + 1);
    const { structured: shown } = await its.call('get_service', { service_id });
    expect(shown?.call_service).toMatchObject({ headers: { 'X-ACF-Forward': 'authorization' } });
    const headers = { 'X-ACF-Forward': 'authorization', Authorization: 'Bearer mine' };
    for (const sent of [headers, { Authorization: 'Bearer mine' }]) {
      const { structured } = await its.call('call_service', { service_id, method: 'GET', path: '/', headers: sent });
      const received = structured?.body as { headers: string[] };
      expect(received.headers.includes('Bearer mine')).toBe(sent === headers);
    }
    await its.close();
  });

  test('gets a refusal as an error with its code, free of charge, with advice on what to do', async () => {
    const poor = await market.buyer(0);
    const its = await agent(revision, market.baseUrl, poor);
    const call = async (args: Record<string, unknown>): Promise<Record<string, unknown>> => {
      const { isError, text, structured } = await its.call('call_service', { method: 'GET', path: '/', ...args });
      expect({ isError, amount: text.amount }).toEqual({ isError: true, amount: 0 });
      // There is no record that an id could name.
      expect(text).not.toHaveProperty('usage_id');
      expect(structured).toEqual(text);
      expect(text.note).toMatch(/^Nothing was charged/);
      return text;
    };
    expect(await call({ service_id: serviceId })).toMatchObject({
      error: 'insufficient_balance',
      status: 402,
      required: PRICE,
      balance: 0,
      note: expect.stringContaining('top it up'),
    });
    expect(await call({ service_id: serviceId, max_amount: 0.05 })).toMatchObject({
      error: 'price_exceeds_maximum',
      status: 412,
      price: PRICE,
    });
    expect(await call({ service_id: poor.account_id })).toMatchObject({ error: 'service_not_found', status: 404 });
    for (const path of ['/..', '/%2e%2e/x', 'x', '/ä', '/a b', '/x?y=1', '/\u0000']) {
      expect(await call({ service_id: serviceId, path }), path).toMatchObject({
        error: 'invalid_request',
        status: 400,
      });
    }
    for (const [wrong, named] of [
      [{ method: 'TRACE' }, 'method'],
      [{ unknown: 1 }, 'unknown'],
      [{ headers: { 'Content-Type': 'text/csv' } }, 'content_type'],
      [{ content_type: 'multipart/form-data', body: 'x' }, 'multipart'],
    ] as const) {
      expect(await call({ service_id: serviceId, ...wrong })).toMatchObject({
        error: 'invalid_request',
        status: 400,
        message: expect.stringContaining(named),
      });
    }
    expect(await market.records(poor)).toEqual([]);
    await its.close();
  });

  test('is told, for a call priced by use, what its service could charge and what it did charge', async () => {
    const rich = await market.buyer(1);
    const its = await agent(revision, market.baseUrl, rich);
    const id = await listing(0.01, { max_price: 0.5 });
    const call = async (path: string) =>
      (await its.call('call_service', { service_id: id, method: 'GET', path, max_amount: 0.4 })).structured;
    expect((await its.call('get_service', { service_id: id })).structured).toMatchObject({
      price: 0.01,
      max_price: 0.5,
    });
    const used = await call('/used');
    expect(used).toMatchObject({ body: 'so much', authorized: 0.4, amount: 0.0123, balance: 0.9877 });
    expect(used).not.toHaveProperty('held');
    // Cut because it is long, so it is read on, and what it cost is known only later.
    const note = expect.stringMatching(/^At most \$0\.4 is charged/);
    expect(await call('/large')).toMatchObject({ truncated: true, authorized: 0.4, amount: 0.4, held: true, note });
    const [large] = await market.records(rich);
    expect(large).toMatchObject({ amount: 0.01, outcome: 'completed', response_bytes: 800_000 });
    await its.close();
  });

  test('can ask for a free call only, and is told how many are left', async () => {
    const its = await agent(revision, market.baseUrl, await market.buyer(1));
    const id = await listing(PRICE, { free_calls: 2 });
    const left = async () => (await its.call('get_service', { service_id: id })).structured?.free_calls_left;
    const call = (more = {}) =>
      its.call('call_service', { service_id: id, method: 'GET', path: '/', free_only: true, ...more });
    expect(await left()).toBe(2);
    expect((await call()).structured).toMatchObject({ status: 200, amount: 0, free_tier: true, free_calls_left: 1 });
    expect((await call()).structured).toMatchObject({ status: 200, amount: 0, free_tier: true, free_calls_left: 0 });
    expect(await call()).toMatchObject({
      isError: true,
      structured: { error: 'free_calls_used', price: PRICE, amount: 0, note: expect.stringContaining('free_only') },
    });
    expect(await left()).toBe(0);
    const paid = { status: 200, amount: PRICE, free_tier: false, free_calls_left: 0 };
    expect((await call({ free_only: false })).structured).toMatchObject(paid);
    await its.close();
  });

  test('gets the answer of the service with its price, and is told when a repeat would cost again', async () => {
    const rich = await market.buyer(1);
    const its = await agent(revision, market.baseUrl, rich);
    const call = (path: string, query = {}, id = serviceId): Promise<Answer> =>
      its.call('call_service', { service_id: id, method: 'GET', path, query });

    const failed = await call('/status', { code: 500 });
    expect(failed).toMatchObject({ isError: true, structured: { status: 500, amount: 0, body: 'so it is' } });
    expect(failed.text.note).toMatch(/^Nothing was charged.*may have acted/);
    const refused = await call('/status', { code: 404 });
    expect(refused).toMatchObject({ isError: true, structured: { status: 404, amount: PRICE } });
    expect(refused.text.note).toMatch(/^\$0\.1 was charged.*a repeat is charged again/);
    const large = await call('/large');
    expect(large).toMatchObject({ isError: false, structured: { status: 200, amount: PRICE, truncated: true } });
    // 256 KiB are 131 072 characters of two bytes.
    expect(large.structured?.body).toBe('é'.repeat(131_072));
    expect(large.text.note).toMatch(/^\$0\.1 was charged.*only its beginning.*charged again/);
    const binary = await call('/binary');
    expect(binary.structured).toMatchObject({ media_type: 'image/png', body_base64: 'iVBORwABAv8=', truncated: false });
    const events = await call('/events');
    expect(events.structured).toMatchObject({ truncated: false, amount: PRICE });
    // The gateway's comments may be among the events.
    expect(String(events.structured?.body).replaceAll(/^: ?\n/gm, '')).toBe('data: 1\n\ndata: 2\n\n');
    const cut = await call('/cut');
    expect(cut).toMatchObject({ isError: true, text: { error: 'upstream_error', status: 502, amount: 0 } });
    const nobody = await call('/', {}, await listing(PRICE, { endpoint: 'http://127.0.0.1:1' }));
    expect(nobody).toMatchObject({ isError: true, text: { error: 'upstream_error', amount: 0 } });
    const late = await call('/hang', {}, await listing(PRICE, { timeout_seconds: 1 }));
    expect(late).toMatchObject({ isError: true, text: { error: 'upstream_timeout', amount: 0 } });

    const records = await market.records(rich);
    expect(records.map(({ status, outcome, amount }) => [status, outcome, amount])).toEqual([
      [504, 'refunded:upstream_timeout', 0],
      [502, 'refunded:upstream_error', 0],
      [200, 'refunded:upstream_cut', 0],
      [200, 'completed', PRICE],
      [200, 'completed', PRICE],
      [200, 'completed', PRICE],
      [404, 'completed', PRICE],
      [500, 'refunded:upstream_5xx', 0],
    ]);
    expect(await market.balance(rich)).toMatchObject({ balance: 0.6, held: 0 });
    await its.close();
  });

  test('pays if it cancels or goes away once the service has the request, and the books are right', async () => {
    const leaver = await market.buyer(1);
    const its = await agent(revision, market.baseUrl, leaver);
    const waiting = open.length;
    const cancel = new AbortController();
    const call = its
      .call('call_service', { service_id: serviceId, method: 'GET', path: '/hang' }, { signal: cancel.signal })
      .then(
        () => 'answered',
        () => 'cancelled',
      );
    await until(() => open.length > waiting);
    cancel.abort();
    expect(await call).toBe('cancelled');
    // Clients of 2025 say on another request that they cancelled, which a server without sessions cannot connect with the
    // call. Only the end of the connection ends the call.
    if (revision === '2025-11-25') await its.close();
    await expectOnlyRecord(leaver, { status: 499, outcome: 'completed', amount: PRICE });
    await its.close();
  });

  test('sees the catalog without a key, and the other tools tell it how to get a key', async () => {
    const its = await agent(revision, market.baseUrl);
    expect((await its.call('discover_services')).isError).toBe(false);
    expect((await its.call('get_service', { service_id: serviceId })).isError).toBe(false);
    const call = { service_id: serviceId, method: 'GET', path: '/' };
    for (const [name, args] of [['call_service', call], ['get_usage'], ['get_balance']] as const) {
      const { isError, text } = await its.call(name, args);
      expect(isError, name).toBe(true);
      expect(text).toMatchObject({ error: 'unauthorized', status: 401, note: expect.stringContaining('/api/v1/keys') });
    }
    await its.close();
  });
});

describe('the endpoint', () => {
  const toolCall = (name: string, args: object = {}): object => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name, arguments: args },
  });
  const callOf = (path: string, more: object = {}): object =>
    toolCall('call_service', { service_id: serviceId, method: 'GET', path, ...more });

  function post(
    message: unknown,
    {
      key,
      headers = {},
      baseUrl = market.baseUrl,
    }: { key?: Key; headers?: Record<string, string>; baseUrl?: string } = {},
  ): Promise<Response> {
    const all: Record<string, string> = {
      Accept: 'application/json, text/event-stream',
      'Content-Type': 'application/json',
      ...headers,
    };
    if (key !== undefined) all.Authorization = authorization(key);
    const body = typeof message === 'string' ? message : JSON.stringify(message);
    return fetch(`${baseUrl}/mcp`, { method: 'POST', headers: all, body });
  }

  /** The result of a tool call that was answered with an event stream. */
  async function resultOf(
    response: Response,
  ): Promise<{ isError?: boolean; structuredContent: Record<string, unknown> }> {
    const event = /^data: (.*)$/m.exec(await response.text())?.[1] ?? '{}';
    return (JSON.parse(event) as { result: Awaited<ReturnType<typeof resultOf>> }).result;
  }

  async function limitTo({ key_id }: Key, perMinute: number): Promise<void> {
    await market.json(`/api/v1/keys/${key_id}`, {
      key: market.admin,
      method: 'PATCH',
      body: { rate_limit: perMinute },
    });
  }

  test('takes exactly one token for every message, including one that makes a call, and says how many are left', async () => {
    const key = await market.buyer(1);
    await limitTo(key, 30);
    const messages = [
      { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      callOf('/'),
      callOf('/', { max_amount: 0 }),
      callOf('/..'),
      callOf('no slash'),
      callOf('/', { unknown: 1 }),
      toolCall('get_balance'),
      toolCall('no_such_tool'),
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      'no JSON',
    ];
    const left: number[] = [];
    for (const message of messages) {
      const response = await post(message, { key });
      await response.text();
      expect(response.headers.get('x-ratelimit-limit'), JSON.stringify(message)).toBe('30');
      expect(response.headers.get('x-request-id'), JSON.stringify(message)).toMatch(/^[0-9a-f-]{36}$/);
      left.push(Number(response.headers.get('x-ratelimit-remaining')));
    }
    const taken = left.map((now, i) => (left[i - 1] ?? 30) - now);
    // Now and then the bucket refills a token: one every 2 s.
    expect(taken.filter((tokens) => tokens !== 1).length, taken.join()).toBeLessThanOrEqual(1);
    expect(Math.max(...taken)).toBe(1);
    expect(await market.records(key)).toHaveLength(1);
  });

  test("leaves a record of a tool's call that differs from a proxied call only in ids and times", async () => {
    const key = await market.buyer(1);
    const query = { code: 201 };
    await resultOf(await post(callOf('/status', { method: 'POST', query, body: 'text' }), { key }));
    const url = `${market.baseUrl}/api/v1/proxy/${serviceId}/status?code=201`;
    const proxied = await fetch(url, { method: 'POST', headers: { Authorization: authorization(key) }, body: 'text' });
    await proxied.text();
    const [one, other] = (await market.records(key)).map((record) => ({
      ...record,
      usage_id: expect.any(String),
      latency_ms: expect.any(Number),
      created_at: expect.any(String),
    }));
    expect(one).toMatchObject({ status: 201, amount: PRICE, request_bytes: 4, response_bytes: 8 });
    expect(other).toEqual(one);
  });

  test('tells a key without tokens when to come again: in the result of the tool, or in a 429 if it does not wait', async () => {
    const key = await market.buyer(1);
    await limitTo(key, 1);
    const told = await until(async () => {
      const result = await resultOf(await post(callOf('/'), { key }));
      return result.isError === true && result.structuredContent;
    });
    expect(told).toMatchObject({ error: 'rate_limited', status: 429, amount: 0 });
    expect(told.retry_after_seconds).toBeGreaterThan(0);
    const refused = await post(callOf('/'), { key });
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await refused.json()).toMatchObject({ error: 'rate_limited' });
  });

  test('refuses a page of a foreign origin, with or without a preflight; it accepts its own and allowed origins', async () => {
    const preflight = (origin: string): Promise<Response> =>
      fetch(`${market.baseUrl}/mcp`, {
        method: 'OPTIONS',
        headers: {
          Origin: origin,
          'Access-Control-Request-Method': 'POST',
          'Access-Control-Request-Headers': 'authorization,content-type',
        },
      });
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const statuses = async (origin: string): Promise<number[]> => [
      (await preflight(origin)).status,
      (await post(list, { headers: { Origin: origin } })).status,
    ];
    expect(await statuses('https://evil.example')).toEqual([403, 403]);
    expect(await statuses('null')).toEqual([403, 403]);
    expect(await statuses(PAGE)).toEqual([204, 200]);
    expect(await statuses(market.baseUrl)).toEqual([204, 200]);
    expect((await preflight(PAGE)).headers.get('access-control-allow-headers')).toBe('authorization,content-type');
    const refused = await post(list, { headers: { Origin: 'https://evil.example' } });
    expect(await refused.json()).toMatchObject({ error: 'forbidden', status: 403 });
    // Its name was made to point here after the page was loaded.
    const rebound = await RawCaller.connect(market.baseUrl);
    const headers = ['Origin: http://gateway.test', 'Content-Type: application/json'];
    expect((await rebound.exchange('POST /mcp', { headers, body: '{}' })).status).toBe(403);
    rebound.destroy();
  });

  test('hides redirects of a service to other listings here, maps those within its endpoint, and passes all others', async () => {
    const key = await market.buyer(1);
    const locationFor = async (to: string): Promise<unknown> => {
      const { structuredContent } = await resultOf(await post(callOf('/moved', { query: { to } }), { key }));
      expect(structuredContent.status).toBe(302);
      return structuredContent.location;
    };
    expect(await locationFor(`${market.baseUrl}/api/v1/proxy/${key.account_id}/dear`)).toBeUndefined();
    expect(await locationFor(`${service.url}/within`)).toBe(`/api/v1/proxy/${serviceId}/within`);
    expect(await locationFor('https://elsewhere.example/')).toBe('https://elsewhere.example/');
  });

  test('reports the progress of a call of an MCP listing once it is admitted, and not while its message is read', async () => {
    const key = await market.buyer(1);
    const path = await market.service({ endpoint: service.url, price: PRICE, protocol: 'mcp' });
    const args = { service_id: path.slice(path.lastIndexOf('/') + 1), method: 'POST', path: '/' };
    const call = toolCall('call_service', { ...args, body: { jsonrpc: '2.0', id: 1, method: 'ping' } });
    const { params } = call as { params: object };
    const response = await post({ ...call, params: { ...params, _meta: { progressToken: 1 } } }, { key });
    const events = await response.text();
    expect(events.split('waiting for the service')).toHaveLength(2);
    expect(response.headers.get('x-ratelimit-remaining')).toMatch(/^[1-9]/);
    await expectOnlyRecord(key, { status: 200, amount: 0 });
  });

  test('has no sessions: GET and DELETE are 405', async () => {
    for (const method of ['GET', 'DELETE', 'PUT']) {
      const response = await fetch(`${market.baseUrl}/mcp`, { method });
      expect([response.status, response.headers.get('allow')], method).toEqual([405, 'POST']);
    }
  });

  test('refuses invalid messages: too long, not JSON, a batch, another media type, an Accept without streams', async () => {
    const key = await market.buyer(1);
    const long = await post(callOf('/', { body: 'x'.repeat(1_048_576) }), { key });
    expect(long.status).toBe(413);
    expect(await long.json()).toMatchObject({
      error: 'payload_too_large',
      message: expect.stringContaining('proxy_path'),
    });
    const body = new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(65_536).fill(32)),
    });
    const chunked = { method: 'POST', body, duplex: 'half' as const, headers: { Authorization: authorization(key) } };
    const answer = await fetch(`${market.baseUrl}/mcp`, chunked).then(
      ({ status }) => status,
      () => 'cut',
    );
    expect([413, 'cut']).toContain(answer);
    expect((await post('{', { key })).status).toBe(400);
    expect((await post([callOf('/'), callOf('/')], { key })).status).toBe(400);
    expect((await post(callOf('/'), { key, headers: { 'Content-Type': 'text/plain' } })).status).toBe(415);
    expect((await post(callOf('/'), { key, headers: { Accept: 'application/json' } })).status).toBe(406);
    expect(await market.records(key)).toEqual([]);
  });

  test.each([
    ['while it waits', '/hang', 'waiting for the service', 499],
    ['in the middle of an answer', '/half', 'status 200', 200],
  ])('leaves one record and the right balance after an agent is killed %s', async (_when, path, notice, status) => {
    const key = await market.buyer(1);
    const waiting = open.length;
    const message = callOf(path) as { params: object };
    const body = JSON.stringify({ ...message, params: { ...message.params, _meta: { progressToken: 1 } } });
    const headers = ['Content-Type: application/json', 'Accept: application/json, text/event-stream'];
    const caller = await RawCaller.connect(market.baseUrl);
    caller.send(requestText('POST /mcp', { key, headers, body }));
    await until(() => open.length > waiting && caller.received.includes(notice));
    caller.socket.resetAndDestroy();
    await expectOnlyRecord(key, { status, outcome: 'completed', amount: PRICE });
  });

  test('waits for calls of tools when it drains; a call that does not end in time is refunded', async () => {
    const key = await market.buyer(1);
    const gateway = await market.anotherGateway();
    const { baseUrl } = gateway;
    const waiting = open.length;
    const ends = post(callOf('/hang'), { key, baseUrl }).then(resultOf);
    await until(() => open.length > waiting);
    const isCut = post(callOf('/hang'), { key, baseUrl })
      .then(resultOf)
      .catch(() => 'cut');
    await until(() => open.length > waiting + 1);
    const stopped = gateway.stop();
    open[waiting]?.end('in time');
    expect(await ends).toMatchObject({ structuredContent: { body: 'in time', amount: PRICE } });
    expect(await stopped).toMatchObject({ callsCut: 1, unsettled: 0 });
    expect(await isCut).toBe('cut');
    const records = await market.records(key);
    expect(records.map(({ outcome, amount }) => [outcome, amount]).sort()).toEqual([
      ['completed', PRICE],
      ['refunded:unavailable', 0],
    ]);
    expect(await market.balance(key)).toMatchObject({ balance: 0.9, held: 0 });
  });

  test('is named in /.well-known/mcp/server.json', async () => {
    const card = await market.json<Record<string, unknown>>('/.well-known/mcp/server.json');
    expect(card).toMatchObject({
      name: 'localhost/tollgate',
      remotes: [{ type: 'streamable-http', url: `${market.baseUrl}/mcp` }],
    });
    expect(String(card.description).length).toBeLessThanOrEqual(100);
  });
});
