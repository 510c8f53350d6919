// Calls with an Idempotency-Key: paid once, and answered again.

import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/wait.ts';
import { bodyOf, type Key, Marketplace, startService, type TestService } from './marketplace.ts';
import { RawCaller, type RawResponse, requestText } from './raw-caller.ts';

const PRICE = 0.01;

let market: Marketplace;
let other: Awaited<ReturnType<Marketplace['anotherGateway']>>;
let service: TestService;
let path: string;
let byUse: string;
/** What the service has received, newest last. */
const received: { url: string; headers: IncomingMessage['headers']; body: string }[] = [];
let release: () => void = () => {};

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url as string, 'http://service.test');
  const kind = url.pathname.split('/').at(-1);
  if (kind === 'early') {
    response.end('early');
    request.resume();
    return;
  }
  const body = await bodyOf(request);
  received.push({ url: request.url as string, headers: request.headers, body: body.toString('latin1') });
  const n = String(received.length);
  response.setHeader('X-Nth', n);
  switch (kind) {
    case 'slow':
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      response.end(n);
      return;
    case 'stream':
      response.setHeader('Content-Type', 'text/event-stream');
      response.write(`data: ${n}\n\n`);
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      response.end(`data: end ${n}\n\n`);
      return;
    case 'metered':
      response.setHeader('Trailer', 'X-ACF-Charge');
      response.write(n.padEnd(Number(url.searchParams.get('size'))));
      response.addTrailers({ 'X-ACF-Charge': '0.005' });
      response.end();
      return;
    case 'bytes':
      response.end(randomBytes(Number(url.searchParams.get('size'))));
      return;
    case 'moved':
      response.writeHead(302, { Location: `${request.url}/there` }).end();
      return;
    default:
      response.writeHead(Number(kind) || 200, { 'Content-Type': 'application/json', ETag: '"1"' });
      response.end(JSON.stringify({ n, received: body.toString('latin1') }));
  }
}

beforeAll(async () => {
  market = await Marketplace.start();
  other = await market.anotherGateway();
  service = await startService(serve);
  path = await market.service({ endpoint: service.url, price: PRICE });
  byUse = await market.service({ endpoint: service.url, price: 0.001, max_price: 0.1 });
  await until(async () => (await fetch(`${other.baseUrl}${byUse.replace('proxy', 'services')}`)).ok);
});
afterAll(async () => {
  await other.stop();
  await market.stop();
  await service.close();
});

type Options = { key: Key; method?: string; body?: string; headers?: string[]; baseUrl?: string };

async function call(to: string, idempotencyKey: string, options: Options): Promise<RawResponse> {
  const { key, method = options.body === undefined ? 'GET' : 'POST', body, headers = [], baseUrl } = options;
  const caller = await RawCaller.connect(baseUrl ?? market.baseUrl);
  try {
    const lines = [...headers, `Idempotency-Key: ${idempotencyKey}`];
    return await caller.exchange(`${method} ${to}`, { key, headers: lines, ...(body === undefined ? {} : { body }) });
  } finally {
    caller.destroy();
  }
}

const codeOf = (response: RawResponse): [number, string] => [response.status, response.json<{ error: string }>().error];
/** What a repeat says as the first answer does. */
const toldBy = ({ status, body, headers }: RawResponse) => [
  status,
  body.toString('latin1'),
  headers
    .filter(
      ([name]) =>
        !/^(?:x-ratelimit-.*|x-request-id|date|server-timing|idempotent-replayed|connection|uwebsockets)$/i.test(name),
    )
    .map(([name, value]) => `${name.toLowerCase()}: ${value}`)
    .sort(),
];
const isReplayed = (response: RawResponse): boolean => response.get('Idempotent-Replayed') === 'true';
const nth = (response: RawResponse): string | null => response.get('X-Nth');

async function spent(key: Key): Promise<[string, number][]> {
  return (await market.records(key)).map(({ outcome, amount }) => [outcome, amount]);
}

describe('a repeat with the same Idempotency-Key', () => {
  it.each([
    ['GET', `/200`, undefined],
    ['POST', `/200?a=1`, 'body \xff'],
    ['POST', `/404`, '{}'],
    ['HEAD', `/200`, undefined],
    ['GET', `/bytes?size=32768`, undefined],
    ['GET', `/bytes?size=0`, undefined],
    ['GET', `/moved`, undefined],
  ])('gets the first answer of %s %s, from any gateway, and is charged once', async (method, to, body) => {
    const key = await market.buyer(1);
    const options = { key, method, ...(body === undefined ? {} : { body }) };
    const first = await call(path + to, 'one', options);
    const calls = received.length;
    expect(received.at(-1)?.headers['idempotency-key'], 'it reaches the service, too').toBe('one');
    expect(isReplayed(first)).toBe(false);
    for (const baseUrl of [market.baseUrl, other.baseUrl]) {
      const again = await call(path + to, '"one"', { ...options, baseUrl });
      expect(isReplayed(again)).toBe(true);
      expect(toldBy(again)).toEqual(toldBy(first));
      expect(again.get('X-Request-Id')).not.toBe(first.get('X-Request-Id'));
    }
    expect(received).toHaveLength(calls);
    expect(await spent(key)).toEqual([['completed', PRICE]]);
    expect((await market.balance(key)).balance).toBe(1 - PRICE);
  });

  it('gets the whole event stream at once, although it asks for a part of it', async () => {
    const key = await market.buyer(1);
    const caller = await RawCaller.connect(market.baseUrl);
    caller.send(requestText(`GET ${path}/stream`, { key, headers: ['Idempotency-Key: s', 'X-ACF-Usage-Event: true'] }));
    await caller.until((bytes) => bytes.includes('data: '));
    expect(codeOf(await call(`${path}/stream`, 's', { key }))).toEqual([409, 'call_in_progress']);
    release();
    const first = await caller.response();
    const again = await call(`${path}/stream`, 's', { key, headers: ['Range: bytes=0-1', 'If-None-Match: "1"'] });
    expect(isReplayed(again)).toBe(true);
    expect(toldBy(again)).toEqual(toldBy(first));
    expect(again.body.toString()).toContain('event: acf.usage');
    caller.destroy();
  });

  it('of a call priced by use says what that call cost', async () => {
    const key = await market.buyer(1);
    const first = await call(`${byUse}/metered`, 'm', { key });
    expect([first.get('X-ACF-Amount'), first.get('X-ACF-Held')]).toEqual(['0.1', 'true']);
    const again = await call(`${byUse}/metered`, 'm', { key });
    expect(isReplayed(again)).toBe(true);
    expect([again.get('X-ACF-Amount'), again.get('X-ACF-Held')]).toEqual(['0.005', null]);
    expect(again.get('X-ACF-Balance')).toBe('0.995');
    expect(again.get('X-ACF-Usage-Id')).toBe(first.get('X-ACF-Usage-Id'));
    expect(await spent(key)).toEqual([['completed', 0.005]]);
  });

  it('gets the answer even if the caller has no money left, or if the price or the listing would refuse the call now', async () => {
    const key = await market.buyer(PRICE);
    const own = await market.service({ endpoint: service.url, price: PRICE });
    const first = await call(`${own}/200`, 'a', { key, body: 'x' });
    const again = async (headers: string[] = []) => {
      const response = await call(`${own}/200`, 'a', { key, body: 'x', headers });
      return [isReplayed(response), response.body.toString()];
    };
    const expected = [true, first.body.toString()];
    expect(await again()).toEqual(expected);
    expect(await again(['X-ACF-Max-Amount: 0'])).toEqual(expected);
    const twice = await call(`${own}/200`, 'a', { key, body: 'x', headers: ['Idempotency-Key: a'] });
    expect(codeOf(twice), 'which of two keys is meant nobody knows').toEqual([400, 'invalid_request']);
    const id = own.split('/').at(-1);
    await market.json(`/api/v1/services/${id}`, { key: market.provider, method: 'PATCH', body: { status: 'paused' } });
    await until(async () => (await call(`${own}/200`, 'b', { key })).status === 404);
    expect(await again()).toEqual(expected);
    expect((await call(`${own}/other`, 'a', { key, body: 'x' })).status).toBe(404);
  });
});

describe('an Idempotency-Key', () => {
  it('belongs to one request: another method, path, query or body is a mismatch, which is not charged', async () => {
    const key = await market.buyer(1);
    await call(`${path}/200?a=1`, 'k', { key, body: 'one' });
    const calls = received.length;
    const asked: [string, Partial<Options>][] = [
      ['/200?a=1', { body: 'two' }],
      ['/200?a=1', { body: 'one', method: 'PUT' }],
      ['/200?a=1', {}],
      ['/200?a=2', { body: 'one' }],
      ['/200', { body: 'one' }],
      ['/201?a=1', { body: 'one' }],
    ];
    for (const [to, options] of asked) {
      expect(codeOf(await call(path + to, 'k', { key, ...options }))).toEqual([422, 'idempotency_mismatch']);
    }
    expect(received).toHaveLength(calls);
    expect(await spent(key)).toEqual([['completed', PRICE]]);
  });

  it('belongs to one API key: with another key of the account it starts another call', async () => {
    const key = await market.buyer(1);
    const [first, second] = [
      await call(`${path}/200`, 'k', { key }),
      await call(`${path}/200`, 'k', { key: await market.anotherKey(key) }),
    ];
    expect(nth(second)).not.toBe(nth(first));
    expect((await market.balance(key)).balance).toBe(1 - 2 * PRICE);
  });

  it.each(['', ' ', 'a b', 'a\tb', '"', '""', '"a', 'x'.repeat(256), 'gr\xfc\xdfe'])('cannot be %j', async (value) => {
    const key = await market.buyer(1);
    expect(codeOf(await call(`${path}/200`, value, { key }))).toEqual([400, 'invalid_request']);
    expect(await spent(key)).toEqual([]);
  });

  it('cannot be sent twice, and may have 255 characters between quotes', async () => {
    const key = await market.buyer(1);
    const twice = await call(`${path}/200`, 'a', { key, headers: ['Idempotency-Key: a'] });
    expect(codeOf(twice)).toEqual([400, 'invalid_request']);
    expect((await call(`${path}/200`, `"${'x'.repeat(255)}"`, { key })).status).toBe(200);
  });

  it.each([
    ['429', 'refunded:upstream_rate_limited'],
    ['500', 'refunded:upstream_5xx'],
  ])('can be used again after a %s of the service, which costs nothing', async (status, outcome) => {
    const key = await market.buyer(1);
    const first = await call(`${path}/${status}`, 'k', { key });
    expect([first.status, first.get('X-ACF-Amount')]).toEqual([Number(status), '0']);
    await market.settled(key.account_id);
    const second = await call(`${path}/${status}`, 'k', { key });
    expect([isReplayed(second), nth(second) === nth(first)]).toEqual([false, false]);
    expect(await spent(key)).toEqual([
      [outcome, 0],
      [outcome, 0],
    ]);
  });

  it('is required for a refund of a 429 of the service: a call without one is charged', async () => {
    const key = await market.buyer(1);
    await market.request(`${path}/429`, { key });
    expect(await spent(key)).toEqual([['completed', PRICE]]);
  });

  it('of an open call gets 409, which says when to come again and takes no money', async () => {
    const key = await market.buyer(1);
    const caller = await RawCaller.connect(market.baseUrl);
    const calls = received.length;
    caller.send(requestText(`POST ${path}/slow`, { key, headers: ['Idempotency-Key: k'], body: 'x' }));
    await until(() => received.length > calls);
    for (const baseUrl of [market.baseUrl, other.baseUrl]) {
      const early = await call(`${path}/slow`, 'k', { key, body: 'x', baseUrl });
      expect(codeOf(early)).toEqual([409, 'call_in_progress']);
      expect(early.get('Retry-After')).toBe('1');
    }
    // A refusal would let it end its tries, although the call under way will be charged.
    const dearer = await call(`${path}/slow`, 'k', { key, body: 'x', headers: ['X-ACF-Max-Amount: 0'] });
    expect([codeOf(dearer), dearer.get('Retry-After')]).toEqual([[409, 'call_in_progress'], '1']);
    release();
    const first = await caller.response();
    expect(first.status).toBe(200);
    expect(toldBy(await call(`${path}/slow`, 'k', { key, body: 'x' }))).toEqual(toldBy(first));
    expect(await spent(key)).toEqual([['completed', PRICE]]);
    caller.destroy();
  });
});

describe('an answer that is not kept', () => {
  it('may be too long', async () => {
    const key = await market.buyer(1);
    const before = await market.metric('tollgate_answers_not_kept_total');
    expect((await call(`${path}/bytes?size=32769`, 'k', { key })).body).toHaveLength(32_769);
    const again = await call(`${path}/bytes?size=32769`, 'k', { key });
    const [record] = await market.records(key);
    expect(codeOf(again)).toEqual([422, 'answer_not_kept']);
    expect(again.json()).toMatchObject({ usage_id: record?.usage_id, amount: PRICE });
    expect(await market.metric('tollgate_answers_not_kept_total')).toBe(before + 1);
    expect(await spent(key)).toEqual([['completed', PRICE]]);
    const first = await call(`${byUse}/metered?size=32769`, 'm', { key });
    const metered = await call(`${byUse}/metered?size=32769`, 'm', { key });
    expect(metered.json(), 'it tells what the call did cost').toMatchObject({
      error: 'answer_not_kept',
      usage_id: first.get('X-ACF-Usage-Id'),
      amount: 0.005,
    });
  });

  it('may have begun before the whole request was read', async () => {
    const key = await market.buyer(1);
    const caller = await RawCaller.connect(market.baseUrl);
    const before = await market.metric('tollgate_answers_not_kept_total');
    const headers = ['Idempotency-Key: k', 'Content-Length: 4'];
    caller.send(requestText(`POST ${path}/early`, { key, headers }));
    await caller.until((bytes) => bytes.includes('early'));
    caller.destroy();
    await market.settled(key.account_id);
    const again = await call(`${path}/early`, 'k', { key, body: 'abcd' });
    expect([codeOf(again), again.json<{ amount: number }>().amount]).toEqual([[422, 'answer_not_kept'], PRICE]);
    expect(await market.metric('tollgate_answers_not_kept_total')).toBe(before + 1);
    expect(await spent(key)).toEqual([['completed', PRICE]]);
  });

  it('may have been lost by Redis: a repeat is at first in progress, later not kept, and nothing is charged', async () => {
    const key = await market.buyer(1);
    const { redis, keys } = market.stores;
    const shard = keys.shardOf(key.account_id);
    await call(`${path}/200`, 'k', { key });
    await until(async () => (await redis.command('del', [keys.answers[shard] as string])) === 1);
    expect(codeOf(await call(`${path}/200`, 'k', { key }))).toEqual([409, 'call_in_progress']);
    const claims = keys.claims(shard, key.account_id);
    const [name, text] = Object.entries((await redis.command('hgetall', [claims])) as Record<string, string>)[0] ?? [];
    const old = (text as string).replace(/\d+(?=\t\d+$)/, (at) => String(Number(at) - 60_000));
    await redis.command('hset', [claims, name as string, old]);
    expect(codeOf(await call(`${path}/200`, 'k', { key }))).toEqual([422, 'answer_not_kept']);
    expect(await spent(key)).toEqual([['completed', PRICE]]);
  });

  it('may belong to a call whose claim an older Redis has brought back open, without its hold', async () => {
    const key = await market.buyer(1);
    const { redis, keys } = market.stores;
    await call(`${path}/200`, 'k', { key });
    expect(await spent(key)).toEqual([['completed', PRICE]]);
    const claims = keys.claims(keys.shardOf(key.account_id), key.account_id);
    const [name, text] = Object.entries((await redis.command('hgetall', [claims])) as Record<string, string>)[0] ?? [];
    const [, usageId, at, target] = (text as string).split('\t');
    await redis.command('hset', [claims, name as string, ['o', usageId, at, target, '-', '0'].join('\t')]);
    expect(codeOf(await call(`${path}/200`, 'k', { key }))).toEqual([422, 'answer_not_kept']);
    expect(codeOf(await call(`${path}/201`, 'k', { key }))).toEqual([422, 'idempotency_mismatch']);
    expect(await spent(key)).toEqual([['completed', PRICE]]);
  });
});

describe('a caller that leaves before it has its whole answer', () => {
  it.each([
    ['fixed', () => path, '/slow', PRICE],
    ['by use', () => byUse, '/slow', 0.001],
  ])('gets the answer when it comes back (%s)', async (_, listing, to, amount) => {
    const key = await market.buyer(1);
    const calls = received.length;
    const caller = await RawCaller.connect(market.baseUrl);
    caller.send(requestText(`POST ${listing()}${to}`, { key, headers: ['Idempotency-Key: k'], body: 'x' }));
    await until(() => received.length > calls);
    const open = await market.metric('tollgate_responses_open');
    caller.destroy();
    await until(async () => (await market.metric('tollgate_responses_open')) < open);
    expect(codeOf(await call(listing() + to, 'k', { key, body: 'x' }))).toEqual([409, 'call_in_progress']);
    release();
    const answer = await until(async () => {
      const response = await call(listing() + to, 'k', { key, body: 'x' });
      return response.status === 409 ? null : response;
    });
    expect([answer.status, isReplayed(answer), nth(answer)]).toEqual([200, true, String(calls + 1)]);
    expect(received).toHaveLength(calls + 1);
    expect(await spent(key)).toEqual([['completed', amount]]);
  });

  it('gets the whole stream from a repeat, including the event with the cost', async () => {
    const key = await market.buyer(1);
    const caller = await RawCaller.connect(market.baseUrl);
    const asking = ['Idempotency-Key: k', 'X-ACF-Usage-Event: true'];
    caller.send(requestText(`GET ${path}/stream`, { key, headers: asking }));
    await caller.until((bytes) => bytes.includes('data: '));
    const open = await market.metric('tollgate_responses_open');
    caller.destroy();
    await until(async () => (await market.metric('tollgate_responses_open')) < open);
    release();
    const answer = await until(async () => {
      const response = await call(`${path}/stream`, 'k', { key });
      return response.status === 409 ? null : response;
    });
    const event = `event: acf.usage\ndata: ${JSON.stringify({
      usage_id: answer.get('X-ACF-Usage-Id'),
      amount: PRICE,
      free_tier: false,
      balance: 1 - PRICE,
    })}\n\n`;
    expect(answer.body.toString().split('event: ')).toEqual([
      expect.stringMatching(/^data: (\d+)\n\ndata: end \1\n\n$/),
      event.slice('event: '.length),
    ]);
    expect(await spent(key)).toEqual([['completed', PRICE]]);
  });
});

describe('a message to an MCP server', () => {
  const said = (tool: string, space = ' '): string =>
    `{"jsonrpc":${space}"2.0", "id": 1, "method": "tools/call", "params": {"name": "${tool}"}}`;

  it('is replayed if its bytes are the same, even when its tool or its listing is gone', async () => {
    const key = await market.buyer(1);
    const operations = [{ tool: 'stays' }, { tool: 'leaves' }];
    const options = { price: PRICE, protocol: 'mcp' as const, only_operations: true, operations };
    const mcp = await market.service({ endpoint: `${service.url}/200`, ...options });
    const send = (name: string, body: string) => {
      const headers = ['Content-Type: application/json', 'Accept: application/json, text/event-stream'];
      return call(mcp, name, { key, body, headers });
    };
    const change = (body: object) =>
      market.json(`/api/v1/services/${mcp.split('/').at(-1)}`, { key: market.provider, method: 'PATCH', body });
    const [stays, leaves] = [await send('a', said('stays')), await send('b', said('leaves'))];
    const repeats = async () => {
      expect(toldBy(await send('a', said('stays')))).toEqual(toldBy(stays));
      expect(toldBy(await send('b', said('leaves')))).toEqual(toldBy(leaves));
      expect(codeOf(await send('a', said('stays', '')))).toEqual([422, 'idempotency_mismatch']);
    };
    await repeats();
    await change({ operations: [{ tool: 'leaves', remove: true }] });
    await until(async () => (await send('c', said('leaves'))).status === 404);
    await repeats();
    await change({ status: 'paused' });
    await until(async () => (await send('d', said('stays'))).status === 404);
    await repeats();
    expect((await spent(key)).filter(([outcome]) => outcome === 'completed')).toHaveLength(2);
  });
});

it('the record of a call says how often its answer was replayed; refused repeats do not count', async () => {
  const key = await market.buyer(1);
  const gateway = await market.anotherGateway();
  const { baseUrl } = gateway;
  await call(`${path}/200`, 'k', { key, body: 'x' });
  await call(`${path}/200`, 'once', { key, body: 'x' });
  for (let i = 0; i < 2; i++)
    expect(isReplayed(await call(`${path}/200`, 'k', { key, body: 'x', baseUrl }))).toBe(true);
  expect(codeOf(await call(`${path}/200`, 'k', { key, body: 'y', baseUrl }))).toEqual([422, 'idempotency_mismatch']);
  // It stores what it has counted before it ends.
  await gateway.stop();
  const [once, twice] = await market.records(key);
  expect([once?.replays, twice?.replays]).toEqual([undefined, 2]);
});
