import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/wait.ts';
import { bodyOf, echo, type Key, Marketplace, startService, type TestService } from './marketplace.ts';
import { agent } from './mcp-agent.ts';
import { RawCaller, type RawResponse, requestText } from './raw-caller.ts';

const PRICE = 0.1;
const MIB = 1_048_576;
const OPEN = 'tollgate_responses_open';
const JSON_TYPE = 'Content-Type: application/json\r\nAccept: application/json, text/event-stream';

let market: Marketplace;
let service: TestService;
let path: string;
/** How many requests have reached the service. */
let served = 0;

beforeAll(async () => {
  market = await Marketplace.start();
  service = await startService(async (request, response) => {
    served++;
    if (request.url === '/mcp/length') response.end(String((await bodyOf(request)).length));
    else await echo(request, response);
  });
  const operations = [
    { tool: 'cheap', price: 0.01 },
    { tool: 'dear', price: 0.5 },
  ];
  const listing = { price: PRICE, protocol: 'mcp' as const, only_operations: true, operations };
  path = await market.service({ endpoint: `${service.url}/mcp`, ...listing });
});
afterAll(async () => {
  await market.stop();
  await service.close();
});

const callOf = (name: string, args: object = {}): string =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } });
const PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}';

async function exchange(
  key: Key | undefined,
  line: string,
  headers: readonly string[] = [],
  body?: string,
): Promise<RawResponse> {
  const caller = await RawCaller.connect(market.baseUrl);
  const options = { key, headers, ...(body !== undefined && { body }) };
  const answer = await caller.exchange(line, options);
  caller.destroy();
  return answer;
}

const post = (key: Key, body: string, headers: readonly string[] = [], below = ''): Promise<RawResponse> =>
  exchange(key, `POST ${path}${below}`, [JSON_TYPE, ...headers], body);
const codeOf = (answer: RawResponse): string => `${answer.status} ${answer.json<{ error: string }>().error}`;

async function limited(requestsPerMinute: number): Promise<Key> {
  const key = await market.buyer(1);
  const body = { rate_limit: requestsPerMinute };
  await market.json(`/api/v1/keys/${key.key_id}`, { key: market.admin, method: 'PATCH', body });
  return key;
}

describe('what an MCP server receives', () => {
  it('is what the gateway has parsed: the last of two names, its own length, any path, the headers of the session', async () => {
    const buyer = await market.buyer(1);
    const text =
      '{ "jsonrpc":"2.0", "id":1,"method":"ping","method":"tools\\/call",\r\n"params":{"name":"dear","name":"cheap"}}';
    const session = [
      'Mcp-Session-Id: s-1',
      'MCP-Protocol-Version: 2025-11-25',
      'Last-Event-ID: 7',
      'Mcp-Method: tools/call',
    ];
    for (const below of ['', '/', '/messages?sessionId=1&x=%2f']) {
      const answer = await post(buyer, text, session, below);
      expect([answer.status, answer.get('x-acf-amount')]).toEqual([200, '0.01']);
      const got = answer.json<{ url: string; headers: string[]; body: string }>();
      expect(got.url).toBe(`/mcp${below}`);
      const body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cheap"}}';
      expect(got.body).toBe(body);
      const headers = got.headers.map((value) => value.toLowerCase());
      const header = (name: string): string | undefined => headers[headers.indexOf(name) + 1];
      expect([header('content-length'), header('mcp-session-id')]).toEqual([String(body.length), 's-1']);
      expect([header('mcp-protocol-version'), header('last-event-id')]).toEqual(['2025-11-25', '7']);
      expect(headers.filter((name) => name === 'content-length')).toHaveLength(1);
    }
    const records = await market.records(buyer);
    expect(records.map(({ amount, method, path: below }) => [amount, method, below])).toEqual([
      [0.01, 'POST', '/messages'],
      [0.01, 'POST', '/'],
      [0.01, 'POST', ''],
    ]);
    expect(await market.balance(buyer)).toMatchObject({ balance: 0.97, held: 0 });
  });

  it('may be a megabyte, sent in chunks', async () => {
    const buyer = await market.buyer(1);
    const message = callOf('cheap', { text: 'x'.repeat(MIB - 200) });
    const caller = await RawCaller.connect(market.baseUrl);
    caller.send(requestText(`POST ${path}/length`, { key: buyer, headers: [JSON_TYPE, 'Transfer-Encoding: chunked'] }));
    for (let at = 0; at < message.length; at += 100_000) {
      const piece = message.slice(at, at + 100_000);
      caller.send(`${piece.length.toString(16)}\r\n${piece}\r\n`);
    }
    caller.send('0\r\n\r\n');
    const answer = await caller.response();
    expect([answer.status, answer.body.toString()]).toEqual([200, String(message.length)]);
    expect((await market.records(buyer)).map(({ request_bytes, amount }) => [request_bytes, amount])).toEqual([
      [message.length, 0.01],
    ]);
    caller.destroy();
  });

  it('takes one token for each message, served or refused', async () => {
    const buyer = await limited(5);
    const answers: string[] = [];
    for (const body of [PING, callOf('cheap'), callOf('other'), '[]', PING, PING]) {
      const { status, get } = await post(buyer, body);
      answers.push(`${status} ${get('x-ratelimit-remaining')}`);
    }
    expect(answers).toEqual(['200 4', '200 3', '404 2', '400 1', '200 0', '429 0']);
  });
});

describe('a call of an MCP server is refused free of charge', () => {
  it('before its message is sent, when the head of the request is enough to refuse it', async () => {
    const buyer = await market.buyer(1);
    const before = served;
    const long = (length: number): string[] => [JSON_TYPE, `Content-Length: ${length}`];
    const unknown = `/api/v1/proxy/${'0'.repeat(8)}-0000-7000-8000-${'0'.repeat(12)}`;
    expect(codeOf(await exchange(undefined, `POST ${path}`, long(1_000)))).toBe('401 unauthorized');
    expect(codeOf(await exchange(await market.anotherProvider(), `POST ${path}`, long(1_000)))).toBe('403 forbidden');
    expect(codeOf(await exchange(buyer, `POST ${unknown}`, long(1_000)))).toBe('404 service_not_found');
    expect(codeOf(await exchange(buyer, `POST ${path}/../x`, long(1_000)))).toBe('400 invalid_request');
    expect(codeOf(await exchange(buyer, `POST ${path}`, long(MIB + 1)))).toBe('413 payload_too_large');
    const put = await exchange(buyer, `PUT ${path}`, long(1_000));
    expect([codeOf(put), put.get('allow')]).toEqual(['405 method_not_allowed', 'GET, POST, DELETE']);
    expect((await exchange(buyer, `HEAD ${path}`)).status).toBe(405);
    expect(served).toBe(before);
    expect(await market.records(buyer)).toEqual([]);
  });

  it('when its message is invalid, or when the service could read it as another message', async () => {
    const buyer = await market.buyer(1);
    const before = served;
    for (const [body, code] of [
      ['{"jsonrpc":', '400 invalid_json'],
      ['"\xff"', '400 invalid_json'],
      [`[${callOf('cheap')}]`, '400 invalid_request'],
      [callOf('cheap').replace('"id":1', '"id":12345678901234567890'), '400 invalid_request'],
      [callOf('cheap').replace('"params"', '"Params":{"name":"dear"},"params"'), '400 invalid_request'],
      [callOf('Dear'), '404 operation_not_found'],
    ] as const) {
      expect([body, codeOf(await post(buyer, body))]).toEqual([body, code]);
    }
    for (const header of ['Content-Encoding: gzip', 'Mcp-Name: dear', 'Mcp-Method: ping']) {
      expect(codeOf(await post(buyer, callOf('cheap'), [header]))).toBe('400 invalid_request');
    }
    const plain = await exchange(buyer, `POST ${path}`, ['Content-Type: text/plain'], callOf('cheap'));
    expect(codeOf(plain)).toBe('400 invalid_request');
    expect(served).toBe(before);
    expect(await market.records(buyer)).toEqual([]);
    expect(await market.balance(buyer)).toMatchObject({ balance: 1, held: 0 });
  });

  it('when its tool costs more than the caller will pay or has; other messages are free', async () => {
    const buyer = await market.buyer(0.4);
    const above = await post(buyer, callOf('dear'), ['X-ACF-Max-Amount: 0.1']);
    expect([above.status, above.json()]).toMatchObject([412, { error: 'price_exceeds_maximum', price: 0.5 }]);
    const poor = await post(buyer, callOf('dear'));
    expect([poor.status, poor.json()]).toMatchObject([402, { required: 0.5, balance: 0.4 }]);
    const ping = await post(buyer, PING, ['X-ACF-Max-Amount: 0']);
    expect([ping.status, ping.get('x-acf-amount'), ping.get('x-acf-free-tier')]).toEqual([200, '0', 'false']);
    expect((await market.records(buyer)).map(({ amount }) => amount)).toEqual([0]);
  });

  it('when its caller leaves before the whole message has arrived', async () => {
    const buyer = await market.buyer(1);
    const [before, open] = [served, await market.metric(OPEN)];
    const callers = await Promise.all(
      ['Content-Length: 5000', 'Transfer-Encoding: chunked'].map(async (framing) => {
        const caller = await RawCaller.connect(market.baseUrl);
        caller.send(requestText(`POST ${path}`, { key: buyer, headers: [JSON_TYPE, framing] }));
        caller.send(framing.startsWith('T') ? `5\r\n${callOf('dear').slice(0, 5)}\r\n` : callOf('dear'));
        return caller;
      }),
    );
    await until(async () => (await market.metric(OPEN)) === open + 2);
    callers[0]?.destroy();
    callers[1]?.socket.resetAndDestroy();
    await until(async () => (await market.metric(OPEN)) === open);
    expect(served).toBe(before);
    expect(await market.records(buyer)).toEqual([]);
    expect(await market.balance(buyer)).toMatchObject({ balance: 1, held: 0 });
  });

  it('before its message is read or parsed, when the caller is known to have no token', async () => {
    const buyer = await limited(1);
    expect((await post(buyer, PING)).status).toBe(200);
    const refused = await post(buyer, PING);
    expect(codeOf(refused)).toBe('429 rate_limited');
    const early = await exchange(buyer, `POST ${path}`, [JSON_TYPE, 'Content-Length: 1000000']);
    expect([codeOf(early), early.get('x-ratelimit-remaining'), early.get('x-ratelimit-limit')]).toEqual([
      '429 rate_limited',
      '0',
      '1',
    ]);
    expect(Number(early.get('retry-after'))).toBeGreaterThan(30);
    expect(Number(early.get('retry-after'))).toBeLessThanOrEqual(60);
    // A message that is under way when the bucket is found empty is not parsed either: it is no JSON, but the answer is 429.
    const another = await limited(1);
    const caller = await RawCaller.connect(market.baseUrl);
    // The responses of the requests before may still be under way.
    await until(async () => (await market.metric(OPEN)) === 0);
    caller.send(requestText(`POST ${path}`, { key: another, headers: [JSON_TYPE, 'Content-Length: 10'] }));
    caller.send('{{{{{');
    await until(async () => (await market.metric(OPEN)) === 1);
    expect((await post(another, PING)).status).toBe(200);
    expect(codeOf(await post(another, PING))).toBe('429 rate_limited');
    caller.send('{{{{{');
    expect(codeOf(await caller.response())).toBe('429 rate_limited');
    caller.destroy();
  });

  it('before its message is sent, and without a token, when its account is suspended, as is a request to /mcp', async () => {
    const buyer = await limited(1);
    const becomes = (status: string): Promise<unknown> =>
      market.json(`/api/v1/admin/accounts/${buyer.account_id}`, {
        key: market.admin,
        method: 'PATCH',
        body: { status },
      });
    await becomes('suspended');
    // Gets 408 after half a minute. A caller whose message was waited for would be answered later still.
    const slow = await RawCaller.connect(market.baseUrl);
    const headers = [JSON_TYPE, 'Content-Length: 1000000'];
    slow.send(requestText('POST /mcp', { key: await market.buyer(1), headers }));
    const late = slow.response();
    for (const line of [`POST ${path}`, 'POST /mcp']) {
      const first = await Promise.race([exchange(buyer, line, headers), late]);
      expect([line, codeOf(first)]).toEqual([line, '403 forbidden']);
    }
    slow.destroy();
    await expect(late).rejects.toThrow('connection ended');
    await becomes('active');
    expect((await post(buyer, PING)).status).toBe(200);
  });

  it('from memory, but only until the key has a token again', async () => {
    const buyer = await limited(300);
    const statuses: number[] = [];
    await until(async () => {
      const answers = await Promise.all(Array.from({ length: 40 }, () => post(buyer, PING)));
      statuses.push(...answers.map(({ status }) => status));
      return statuses.includes(429);
    });
    await until(async () => (await post(buyer, PING)).status === 200);
    expect(new Set(statuses)).toEqual(new Set([200, 429]));
  });
});

it('a redirect or a 406 of an MCP server costs nothing, but a 400 is charged', async () => {
  const buyer = await market.buyer(1);
  const moved = await startService((request, response) => {
    response.writeHead(Number(request.url?.slice(1)), { Location: '/elsewhere' }).end();
  });
  const below = await market.service({ endpoint: moved.url, price: PRICE, protocol: 'mcp' });
  for (const status of [307, 406, 400]) await exchange(buyer, `POST ${below}/${status}`, [JSON_TYPE], callOf('any'));
  expect((await market.records(buyer)).map(({ status, outcome, amount }) => [status, outcome, amount])).toEqual([
    [400, 'completed', PRICE],
    [406, 'refunded:upstream_error', 0],
    [307, 'refunded:upstream_error', 0],
  ]);
  await moved.close();
});

it('a listing without operations charges its own price for every tool', async () => {
  const buyer = await market.buyer(1);
  const plain = await market.service({ endpoint: service.url, price: PRICE, protocol: 'mcp' });
  const answer = await exchange(buyer, `POST ${plain}`, [JSON_TYPE], callOf('anything'));
  expect(answer.get('x-acf-amount')).toBe('0.1');
  const stream = await exchange(buyer, `GET ${plain}`, ['Accept: text/event-stream']);
  expect([stream.status, stream.get('x-acf-amount')]).toEqual([200, '0']);
  expect((await exchange(buyer, `DELETE ${plain}`)).get('x-acf-amount')).toBe('0');
  expect((await market.records(buyer)).map(({ method, amount }) => [method, amount])).toEqual([
    ['DELETE', 0],
    ['GET', 0],
    ['POST', 0.1],
  ]);
});

it('the record of a free message describes it in printable ASCII, whatever its path, and never looks like a tool call', async () => {
  const buyer = await market.buyer(1);
  const say = (member: string, below = ''): Promise<RawResponse> =>
    post(buyer, `{"jsonrpc":"2.0","id":1,${member}}`, [], below);
  const long = `/${'p'.repeat(600)}`;
  await say(`"method":"${'m'.repeat(100)}"`, long);
  await say('"method":"x\\ty #\\ud83d\\ude00\\u00e9"', '/below?a=secret');
  await say('"method":""');
  await say('"result":{}');
  await post(buyer, callOf('cheap'), [], long);
  expect(codeOf(await post(buyer, callOf('cheap'), [], '/a#b'))).toBe('400 invalid_request');
  expect((await market.records(buyer)).map((record) => record.path)).toEqual([
    long.slice(0, 512),
    '#response',
    '#',
    '/below#x_y_____',
    `${long.slice(0, 411)}#${'m'.repeat(100)}`,
  ]);
  expect(await market.json('/api/v1/usage/me', { key: buyer })).toMatchObject({ total_calls: 1, total_spent: 0.01 });
});

it('a call through call_service pays for the tool that its message calls', async () => {
  const buyer = await market.buyer(1);
  const { call, close } = await agent('2026-07-28', market.baseUrl, buyer);
  const service_id = path.split('/').at(-1);
  const ask = (body: object) => call('call_service', { service_id, method: 'POST', path: '', body });
  const paid = await ask(JSON.parse(callOf('cheap')));
  expect([paid.isError, paid.text]).toMatchObject([false, { status: 200, amount: 0.01 }]);
  const refused = await ask({ ...JSON.parse(callOf('cheap')), Method: 'ping' });
  expect([refused.isError, refused.text]).toMatchObject([true, { error: 'invalid_request', amount: 0 }]);
  await close();
  expect((await market.records(buyer)).map(({ amount }) => amount)).toEqual([0.01]);
  expect(await market.balance(buyer)).toMatchObject({ balance: 0.99, held: 0 });
});
