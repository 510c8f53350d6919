// Event streams of services that are silent for long. The gateway runs in this process, and `setInterval` is faked before it starts:
// everything it decides about idle connections depends on intervals. So ten minutes pass in a second for the upstream client, the HTTP
// edge and the comments. The sockets, Redis and Postgres are real.

import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import { EventSource } from 'eventsource';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { until } from '../support/wait.ts';
import { authorization, type Key, Marketplace, type TestService } from './marketplace.ts';
import { RawCaller, requestText } from './raw-caller.ts';

const TYPE = { 'Content-Type': 'text/event-stream' };

let market: Marketplace;
let service: TestService;
let buyer: Key;
/** The service may be silent for 60 s, as IDLE_BODY_SECONDS says. */
let path: string;
/** The service may be silent for 900 s. */
let patient: string;
/** The service's side of the latest call. Its head is not sent yet. */
let stream: ServerResponse | null;

beforeAll(async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  // Redis must not seem to be late when seconds pass between two turns of the event loop.
  market = await Marketplace.start({ IDLE_BODY_SECONDS: '60', REDIS_COMMAND_TIMEOUT_MS: '20000' });
  service = await quietService();
  buyer = await market.buyer(10);
  path = await market.service({ endpoint: service.url, price: 0.01 });
  patient = await market.service({ endpoint: service.url, price: 0.01, idle_seconds: 900 });
});
afterAll(async () => {
  await market.stop();
  await service.close();
  vi.useRealTimers();
});
beforeEach(() => {
  stream = null;
});

/** A service without timeouts of its own: Node's server checks them by an interval, too. */
async function quietService(): Promise<TestService> {
  const server = createServer({ connectionsCheckingInterval: 2 ** 30 }, (request, response) => {
    request.resume();
    stream = response;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${port}`, port, close };
}

/** Lets time pass, and the gateway and its callers do in each second what they want to. */
async function pass(seconds: number): Promise<void> {
  for (let i = 0; i < seconds; i++) {
    vi.advanceTimersByTime(1000);
    await turn();
    await turn();
  }
}

/** A call whose request has reached the service. */
async function call(line = `GET ${path}`, key = buyer, headers: string[] = []): Promise<[RawCaller, ServerResponse]> {
  const caller = await RawCaller.connect(market.baseUrl);
  caller.send(requestText(line, { key, headers }));
  return [caller, await until(() => stream)];
}

/** The data of the chunks that have come; a chunk may be incomplete. */
function bodyOf(caller: RawCaller): string {
  const text = caller.received.toString('latin1');
  return text
    .slice(text.indexOf('\r\n\r\n') + 4)
    .replace(/^[0-9a-f]+\r\n/, '')
    .replaceAll(/\r\n[0-9a-f]+\r\n/g, '');
}

const arrived = (caller: RawCaller, body: string): Promise<void> => caller.until(() => bodyOf(caller).endsWith(body));

describe('the head of an event stream', () => {
  it('reaches the caller before the first event, with a comment', async () => {
    const [caller, response] = await call();
    response.writeHead(200, TYPE).flushHeaders();
    await arrived(caller, ': \n');
    expect(caller.received.toString()).toMatch(/^HTTP\/1\.1 200 OK\r\n.*\r\nX-ACF-Amount: 0\.01\r\n/s);
    response.end('data: 1\n\n');
    expect((await caller.response()).body.toString()).toBe(': \ndata: 1\n\n');
    caller.destroy();
  });

  it('comes without a comment if an event comes with it; the body is then exactly what the service sent', async () => {
    const [caller, response] = await call();
    response.writeHead(200, TYPE).end('\ufeffdata: 1\r\n\r\n');
    expect((await caller.response()).body.toString()).toBe('\ufeffdata: 1\r\n\r\n');
    caller.destroy();
  });

  it('reaches a caller whose connection ends with this response', async () => {
    const caller = await RawCaller.connect(market.baseUrl);
    caller.send(requestText(`POST ${path}`, { key: buyer, headers: ['Transfer-Encoding: chunked'] }));
    caller.send('1\r\nx\r\n0\r\n\r\n');
    const response = await until(() => stream);
    response.writeHead(200, TYPE).flushHeaders();
    await arrived(caller, ': \n');
    response.end('data: 1\n\n');
    const whole = await caller.response();
    expect([whole.get('connection'), whole.body.toString()]).toEqual(['close', ': \ndata: 1\n\n']);
    await caller.end();
  });

  it('is followed by a visible cut, never by another status, if the service dies before the first event', async () => {
    const reader = await market.buyer(1);
    const [caller, response] = await call(undefined, reader);
    response.writeHead(200, TYPE).flushHeaders();
    await arrived(caller, ': \n');
    response.destroy();
    expect((await caller.end()).toString()).not.toMatch(/0\r\n\r\n$/);
    const [record] = await market.records(reader);
    expect(record).toMatchObject({ outcome: 'refunded:upstream_cut', status: 200, amount: 0, response_bytes: 0 });
  });
});

describe('a silent event stream', () => {
  it('lives for ten minutes where the listing allows it, with a free comment every 15 s', async () => {
    const reader = await market.buyer(1);
    const [caller, response] = await call(`GET ${patient}`, reader);
    response.writeHead(200, TYPE).write('data: 1\n\n');
    await arrived(caller, 'data: 1\n\n');
    await pass(600);
    response.end('data: 2\n\n');
    const { body } = await caller.response();
    expect(body.toString()).toBe(`data: 1\n\n${': \n'.repeat(40)}data: 2\n\n`);
    const [record] = await market.records(reader);
    expect(record).toMatchObject({ outcome: 'completed', amount: 0.01, response_bytes: 18 });
    caller.destroy();
  });

  it('is read by an EventSource as if nothing had been inserted', async () => {
    const source = new EventSource(`${market.baseUrl}${patient}/x`, {
      fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, Authorization: authorization(buyer) } }),
    });
    const seen: string[] = [];
    source.addEventListener('open', () => seen.push('open'));
    source.addEventListener('message', ({ data, lastEventId }) => seen.push(`${lastEventId} ${data}`));
    source.addEventListener('error', () => seen.push('error'));
    const response = await until(() => stream);
    response.writeHead(200, TYPE).flushHeaders();
    await until(() => seen.length === 1);
    await pass(20);
    response.write('\ufeffid: 7\ndata: one\n\n');
    await until(() => seen.length === 2);
    await pass(20);
    response.write('id: 8\r\ndata: two\r\n\r\n');
    await until(() => seen.length === 3);
    source.close();
    expect(seen).toEqual(['open', '7 one', '8 two']);
  });

  it.each([
    ['before the first event', ''],
    ['after an event', 'data: 1\n\n'],
    ['within an event', 'data: 1\n'],
  ])('is cut and refunded when the service has been silent for IDLE_BODY_SECONDS: %s', async (_when, said) => {
    const reader = await market.buyer(1);
    const [caller, response] = await call(undefined, reader);
    response.writeHead(200, TYPE).flushHeaders();
    await arrived(caller, ': \n');
    if (said !== '') response.write(said);
    await arrived(caller, said);
    await pass(58);
    expect(caller.gone).toBe(false);
    const comments = ': \n'.repeat(3);
    const expected = said === '' ? `: \n${comments}` : said.endsWith('\n\n') ? `: \n${said}${comments}` : `: \n${said}`;
    expect(bodyOf(caller)).toBe(expected);
    await pass(4);
    expect((await caller.end()).toString()).not.toMatch(/0\r\n\r\n$/);
    const [record] = await market.records(reader);
    expect(record).toMatchObject({ outcome: 'refunded:upstream_cut', status: 200, amount: 0 });
    expect(record).toMatchObject({ response_bytes: said.length });
  });

  it('is not cut while the service sends a comment now and then, and gets comments of the gateway after those', async () => {
    const [caller, response] = await call();
    response.writeHead(200, TYPE).write(': hello\n');
    for (let i = 0; i < 3; i++) {
      await pass(50);
      response.write(': still here\n');
      await arrived(caller, ': still here\n');
    }
    expect(bodyOf(caller)).toBe(`: hello\n${`${': \n'.repeat(3)}: still here\n`.repeat(3)}`);
    caller.destroy();
  });

  it('survives while its request is incomplete, although the caller has nothing more to send', async () => {
    const [caller, response] = await call(`POST ${patient}`, buyer, ['Content-Length: 100']);
    response.writeHead(200, TYPE).flushHeaders();
    await arrived(caller, ': \n');
    await pass(600);
    response.end('data: 1\n\n');
    const whole = await caller.response();
    expect(whole.body.toString()).toBe(`${': \n'.repeat(41)}data: 1\n\n`);
    caller.destroy();
  });
});

describe('the gateway inserts no comment into', () => {
  const quiet = async (
    status: number,
    headers: Record<string, string | string[]>,
    line?: string,
  ): Promise<RawCaller> => {
    const [caller, response] = await call(line);
    response.writeHead(status, headers).flushHeaders();
    await pass(40);
    expect(caller.received.toString()).toBe('');
    return caller;
  };

  it.each([
    ['a compressed event stream', 200, { ...TYPE, 'Content-Encoding': 'gzip' }],
    ['one with a length', 200, { ...TYPE, 'Content-Length': '9' }],
    ['an error', 400, TYPE],
    ['another response', 200, { 'Content-Type': 'text/plain' }],
  ])('%s, whose head still waits for its body', async (_what, status, headers) => {
    const caller = await quiet(status, headers);
    stream?.end('data: 1\n\n');
    const response = await caller.response();
    expect([response.status, response.body.toString()]).toEqual([status, 'data: 1\n\n']);
    caller.destroy();
  });

  it('a response without a body', async () => {
    const [caller, response] = await call(`HEAD ${path}`);
    response.writeHead(200, TYPE).end();
    expect((await caller.response(true)).get('content-type')).toBe('text/event-stream');
    await pass(40);
    expect(caller.received.length).toBe(0);
    caller.destroy();
  });

  it('a response whose head alone has arrived, so that the caller gets a clean error if the service fails then', async () => {
    const caller = await quiet(200, { 'Content-Type': 'text/plain' });
    stream?.destroy();
    expect((await caller.response()).status).toBe(502);
    caller.destroy();
  });

  it('a stream that its caller does not read', async () => {
    const [caller, response] = await call(`GET ${patient}`);
    response.writeHead(200, TYPE);
    caller.socket.pause();
    // Empty lines; a comment could come between any two of them.
    const lines = Buffer.alloc(65_536, '\n');
    let bytes = lines.length;
    // Until nothing is taken any more: the gateway has stopped reading, because its caller has.
    while (response.write(lines) || (await Promise.race([drained(response), wait(300)]))) bytes += lines.length;
    await pass(40);
    caller.socket.resume();
    response.end();
    const { body } = await caller.response();
    expect([body.length, body.indexOf(':')]).toEqual([bytes, -1]);
    caller.destroy();
  });
});

const drained = (response: ServerResponse): Promise<true> =>
  new Promise((resolve) => response.once('drain', () => resolve(true)));
