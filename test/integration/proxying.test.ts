import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type RawServer, rawServer } from '../upstream/helpers.ts';
import { bodyOf, echo, type Key, Marketplace, startService, type TestService } from './marketplace.ts';
import { RawCaller, requestText } from './raw-caller.ts';

let market: Marketplace;
let service: TestService;
/** A service that sends what the test tells it to, and shows byte for byte what it received. */
let raw: RawServer;
let buyer: Key;
let echoPath: string;
let rawPath: string;

beforeAll(async () => {
  market = await Marketplace.start();
  service = await startService(echo);
  raw = await rawServer();
  buyer = await market.buyer(1);
  echoPath = await market.service({ endpoint: `${service.url}/base` });
  rawPath = await market.service({ endpoint: `${raw.url}/base` });
});
afterAll(async () => {
  await market.stop();
  await service.close();
  await raw.close();
});

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

type Echoed = { readonly method: string; readonly url: string; readonly headers: string[]; readonly body: string };

/** The message that the service has received for this request once the condition is met. Then it answers `reply`. */
async function forwarded(
  request: string,
  {
    until = (text) => text.includes('\r\n\r\n'),
    reply = OK,
  }: { until?: (text: string) => boolean; reply?: string } = {},
): Promise<{ received: string; response: Awaited<ReturnType<RawCaller['response']>> }> {
  const before = raw.peers.length;
  const caller = await RawCaller.connect(market.baseUrl);
  caller.send(request);
  const peer = await raw.peer(before);
  await peer.until(until);
  // Every test uses its own connection.
  peer.send(reply.replace(/(HTTP\/1.1 [2-5].*?\r\n)/, '$1Connection: close\r\n'));
  const response = await caller.response(request.startsWith('HEAD '));
  caller.destroy();
  return { received: peer.received, response };
}

const headerLines = (message: string): string[] => message.slice(0, message.indexOf('\r\n\r\n')).split('\r\n').slice(1);

describe('what the service receives', () => {
  it('contains every header of the caller, in order, except credentials, hop-by-hop headers and gateway headers', async () => {
    const request = requestText(`GET ${rawPath}/x`, {
      key: buyer,
      headers: [
        'Cookie: session=secret',
        'User-Agent: agent/1.0',
        'Proxy-Authorization: Basic c2VjcmV0',
        'Proxy-Connection: keep-alive',
        'Connection: keep-alive, X-Hop, close-not',
        'X-Hop: gone',
        'Keep-Alive: timeout=5',
        'TE: trailers',
        'Trailer: X-Sum',
        'Upgrade: TLS/1.0',
        'X-ACF-Buyer: forged',
        'x-acf-usage-id: forged',
        'X-ACF-Max-Amount: 1',
        'X-ACF-Tag: customer-17',
        'X-Forwarded-For: 1.2.3.4',
        'X-Forwarded-Host: forged',
        'Expect: 100-continue',
        'X-Twice: one',
        'Accept-Encoding: gzip, br',
        'X-Twice: two',
        'X-Empty:',
        'X-Name: caf\u00c3\u00a9 noir',
        'Via: 1.0 fred',
        'Range: bytes=0-1',
      ],
    });
    const { received, response } = await forwarded(request);
    expect(received.split('\r\n')[0]).toBe('GET /base/x HTTP/1.1');
    expect(headerLines(received)).toEqual([
      `host: 127.0.0.1:${raw.port}`,
      'user-agent: agent/1.0',
      'x-twice: one',
      'accept-encoding: gzip, br',
      'x-twice: two',
      'x-empty: ',
      'x-name: caf\u00c3\u00a9 noir',
      'range: bytes=0-1',
      'via: 1.0 fred, 1.1 tollgate',
      `x-acf-usage-id: ${response.get('x-acf-usage-id')}`,
      expect.stringMatching(/^x-acf-buyer: [0-9a-f]{32}$/),
    ]);
    expect(received).not.toContain(buyer.secret);
  });

  it('contains the trace context unchanged: traceparent, tracestate and baggage, of any version and any number', async () => {
    const trace = [
      'traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
      'tracestate: rojo=00f067aa0ba902b7,congo=t61rcWkgMzE',
      'tracestate: vendor@tenant=  opaque!value',
      'baggage: userId=alice,isProduction=false;ttl=3',
    ];
    const { received } = await forwarded(requestText(`GET ${rawPath}/x`, { key: buyer, headers: trace }));
    expect(headerLines(received).filter((line) => /^(trace|baggage)/.test(line))).toEqual(trace);
    const newer = 'traceparent: cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-comes-later';
    const { received: later } = await forwarded(requestText(`GET ${rawPath}/x`, { key: buyer, headers: [newer] }));
    expect(headerLines(later)).toContain(newer);
  });

  it('contains a pseudonym of the buyer: the same for every call and key, different for every provider and buyer', async () => {
    const url = `${market.baseUrl}/api/v1/keys`;
    const created = await fetch(url, { method: 'POST', body: JSON.stringify({ owner_id: 'p2', role: 'provider' }) });
    const provider = (await created.json()) as Key;
    const list = { name: 'other', description: '', category: 'test', price: 0, endpoint: service.url };
    const { id } = await market.json<{ id: string }>('/api/v1/services', { key: provider, method: 'POST', body: list });
    const pseudonym = async (path: string, key: Key): Promise<string> => {
      const { headers } = await market.json<Echoed>(path, { key });
      return headers[headers.indexOf('x-acf-buyer') + 1] as string;
    };
    const first = await pseudonym(echoPath, buyer);
    expect(await pseudonym(echoPath, buyer)).toBe(first);
    expect(await pseudonym(await market.service({ endpoint: service.url }), buyer)).toBe(first);
    expect(await pseudonym(echoPath, await market.anotherKey(buyer))).toBe(first);
    expect(await pseudonym(echoPath, await market.buyer(0))).not.toBe(first);
    const elsewhere = await pseudonym(`/api/v1/proxy/${id}`, buyer);
    expect(elsewhere).not.toBe(first);
    expect([buyer.account_id, buyer.key_id]).not.toContain(first);
  });

  it.each([
    ['', '/base'],
    ['/', '/base/'],
    ['?', '/base?'],
    ['/?', '/base/?'],
    ['/a//b///', '/base/a//b///'],
    ['/a%2Fb%2fc%5Cd', '/base/a%2Fb%2fc%5Cd'],
    ['/%00/%0d%0a/%zz/%', '/base/%00/%0d%0a/%zz/%'],
    ['/%E2%82%AC/%e2%82%ac', '/base/%E2%82%AC/%e2%82%ac'],
    ["/~!$&'()*+,;=:@-._", "/base/~!$&'()*+,;=:@-._"],
    ['/a;v=1/.well-known/...', '/base/a;v=1/.well-known/...'],
    ['/{a}|b^c`d"e<f>[g]', '/base/{a}|b^c`d"e<f>[g]'],
    ['/a%20b+c?q=%20+%2B&q=&&=x&a[]=1', '/base/a%20b+c?q=%20+%2B&q=&&=x&a[]=1'],
    ['/p?x=../..&y=%2e%2e/&z=?/?', '/base/p?x=../..&y=%2e%2e/&z=?/?'],
    [`/${'long'.repeat(1000)}`, `/base/${'long'.repeat(1000)}`],
  ])('contains the path and query byte for byte: %s', async (given, expected) => {
    const { received } = await forwarded(requestText(`GET ${rawPath}${given}`, { key: buyer }));
    expect(received.split('\r\n')[0]).toBe(`GET ${expected} HTTP/1.1`);
  });

  it.each([
    ['a length', ['Content-Length: 5'], 'hello', ['content-length: 5'], 'hello'],
    ['a length of 0', ['Content-Length: 0'], '', ['content-length: 0'], ''],
    ['no body, where a body is usual', [], '', ['content-length: 0'], ''],
    [
      'chunks of its own making',
      ['Transfer-Encoding: Chunked'],
      '02\r\nhe\r\n0003\r\nllo\r\n0\r\n\r\n',
      ['transfer-encoding: chunked'],
      /^(?:5\r\nhello\r\n|2\r\nhe\r\n3\r\nllo\r\n)0\r\n\r\n$/,
    ],
  ])('has framing of its own: %s', async (_name, headers, body, framing, expected) => {
    const request = requestText(`POST ${rawPath}`, { key: buyer, headers }) + body;
    const { received, response } = await forwarded(request, {
      until: (text) => text.endsWith(typeof expected === 'string' ? `\r\n\r\n${expected}` : '0\r\n\r\n'),
    });
    expect(headerLines(received).filter((line) => /^(content-length|transfer-encoding)/.test(line))).toEqual(framing);
    expect(received.slice(received.indexOf('\r\n\r\n') + 4)).toMatch(expected);
    expect(response.status).toBe(200);
  });
});

describe('what the caller receives', () => {
  const answer = async (reply: string, line = `GET ${rawPath}`) =>
    (await forwarded(requestText(line, { key: buyer }), { reply })).response;

  it('contains every header of the service, in order, except hop-by-hop headers, cookies and gateway headers', async () => {
    const response = await answer(
      [
        'HTTP/1.1 203 Whatever',
        'Server: mine/1',
        'Content-Type: text/plain; charset=utf-8',
        'Link: </a>; rel=next',
        'Set-Cookie: a=1',
        'set-cookie2: b=1',
        'Connection: X-Hop',
        'X-Hop: gone',
        'Keep-Alive: timeout=5',
        'Proxy-Authenticate: Basic',
        'Trailer: X-Sum',
        'Upgrade: h2c',
        'X-ACF-Amount: 0',
        'x-acf-free-tier: true',
        'X-RateLimit-Remaining: 1000000',
        'RateLimit: "default";r=50',
        'RateLimit-Policy: "default";q=100',
        'X-Request-Id: forged',
        'Link: </b>; rel=prev',
        'Server-Timing: db;dur=53, cache;desc="Hit, or not"',
        'ETag: "x"',
        'X-Empty:',
        'X-Name: caf\u00e9',
        'Content-Length: 5',
        '\r\nhello',
      ].join('\r\n'),
    );
    expect(response.status).toBe(203);
    expect(response.body.toString()).toBe('hello');
    const usageId = response.get('x-acf-usage-id') as string;
    expect(response.headers.filter(([name]) => !['Date', 'uWebSockets'].includes(name))).toEqual([
      ['Access-Control-Allow-Origin', '*'],
      ['Access-Control-Expose-Headers', '*'],
      ['X-RateLimit-Limit', '300'],
      ['X-RateLimit-Remaining', expect.stringMatching(/^\d+$/)],
      ['X-RateLimit-Reset', expect.stringMatching(/^\d+$/)],
      ['X-Request-Id', usageId],
      ['X-ACF-Amount', '0'],
      ['X-ACF-Free-Tier', 'false'],
      ['X-ACF-Usage-Id', usageId],
      ['X-ACF-Balance', '1'],
      ['Timing-Allow-Origin', '*'],
      ['Server-Timing', expect.stringMatching(/^admission;dur=\d+\.\d, service;dur=\d+\.\d$/)],
      ['Content-Security-Policy', 'sandbox'],
      ['Server', 'mine/1'],
      ['Content-Type', 'text/plain; charset=utf-8'],
      ['Link', '</a>; rel=next'],
      ['Link', '</b>; rel=prev'],
      ['Server-Timing', 'db;dur=53, cache;desc="Hit, or not"'],
      ['ETag', '"x"'],
      ['X-Empty', ''],
      ['X-Name', 'caf\u00e9'],
      ['Content-Length', '5'],
    ]);
  });

  it.each([
    ['a length', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello', { 'content-length': '5' }],
    [
      'chunks',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=1\r\nllo\r\n0\r\nT: 1\r\n\r\n',
      null,
    ],
  ])('contains the body with framing of its own: %s', async (_name, reply, length) => {
    const response = await answer(reply);
    expect(response.body.toString()).toBe('hello');
    expect(response.get('content-length')).toBe(length === null ? null : '5');
    expect(response.get('transfer-encoding')).toBe(length === null ? 'chunked' : null);
  });

  it('is chunked if the service ends its body by closing the connection', async () => {
    const path = await market.service({ endpoint: raw.url });
    const before = raw.peers.length;
    const caller = await RawCaller.connect(market.baseUrl);
    caller.send(requestText(`GET ${path}`, { key: buyer }));
    const peer = await raw.peer(before);
    await peer.takeRequest();
    peer.send('HTTP/1.0 200 OK\r\n\r\nhello');
    peer.socket.end();
    const response = await caller.response();
    expect(response.get('transfer-encoding')).toBe('chunked');
    expect(response.body.toString()).toBe('hello');
    caller.destroy();
  });

  it('contains each interim response at once, and then the response, whatever its form', async () => {
    let caller = await RawCaller.connect(market.baseUrl);
    const answers = [
      ['GET', 'HTTP/1.1 200 OK\r\nX-Name: caf\u00e9\r\nContent-Length: 5\r\n\r\nhello', 200, 'hello'],
      ['GET', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n', 200, 'hello'],
      ['GET', `HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n${'x'.repeat(20_000)}`, 200, 'x'.repeat(20_000)],
      ['POST', 'HTTP/1.1 201 Created\r\nLocation: y\r\nContent-Length: 0\r\n\r\n', 201, ''],
      ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n', 200, ''],
      ['GET', 'HTTP/1.1 204 No Content\r\n\r\n', 204, ''],
    ] as const;
    for (const [method, reply, status, body] of answers) {
      const before = raw.peers.length;
      caller.send(requestText(`${method} ${rawPath}`, { key: buyer, ...(method === 'POST' ? { body: 'x' } : {}) }));
      const peer = await raw.peer(before);
      await peer.until((text) => text.includes('\r\n\r\n') && (method !== 'POST' || text.endsWith('x')));
      peer.send('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n');
      await caller.until((received) => received.toString().endsWith('\r\n\r\n'));
      expect(caller.received.toString()).toMatch(
        /^HTTP\/1\.1 102 Processing\r\nX-Request-Id: [-0-9a-f]+\r\nContent-Security-Policy: sandbox\r\n\r\n$/,
      );
      peer.send(
        'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\nSet-Cookie: a=b\r\nX-Name: \u00e9\r\nLocation: base/x\r\n\r\n',
      );
      await caller.until((received) => received.toString('latin1').includes(' 103 Early Hints'));
      await caller.until((received) => received.toString('latin1').endsWith('\r\n\r\n'));
      expect(caller.received.toString('latin1').split('\r\n').slice(4)).toEqual([
        'HTTP/1.1 103 Early Hints',
        expect.stringMatching(/^X-Request-Id: /),
        'Content-Security-Policy: sandbox',
        'Link: </x>',
        'X-Name: \u00e9',
        `Location: ${rawPath}/x`,
        '',
        '',
      ]);
      peer.send(reply.replace('\r\n', '\r\nConnection: close\r\n'));
      const response = await caller.response(method === 'HEAD');
      expect([response.status, response.body.toString()]).toEqual([status, body]);
      expect(response.get('x-acf-usage-id')).toBe(response.get('x-request-id'));
      expect(response.get('link')).toBeNull();
      // A response without a body cannot show that the caller reads, so it costs the connection.
      expect(response.get('connection')).toBe(body === '' ? 'close' : null);
      if (body !== '') continue;
      expect((await caller.end()).length).toBe(0);
      caller = await RawCaller.connect(market.baseUrl);
    }
    caller.destroy();
  });

  it('contains at most 8 KiB of interim responses', async () => {
    const interim = `HTTP/1.1 103 Early Hints\r\nLink: ${'x'.repeat(3_000)}\r\n\r\n`;
    const caller = await RawCaller.connect(market.baseUrl);
    const before = raw.peers.length;
    caller.send(requestText(`GET ${rawPath}`, { key: buyer }));
    const peer = await raw.peer(before);
    await peer.takeRequest();
    peer.send(`${interim.repeat(4)}HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello`);
    await caller.until((received) => received.toString().endsWith('hello'));
    expect(caller.received.toString().match(/HTTP\/1\.1 \d+/g)).toEqual([
      'HTTP/1.1 103',
      'HTTP/1.1 103',
      'HTTP/1.1 200',
    ]);
    caller.destroy();
  });

  it('is a clean error after an interim response if the service then fails', async () => {
    const response = await answer('HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nnonsense');
    expect([response.status, response.json<{ error: string }>().error]).toEqual([502, 'upstream_error']);
    expect(response.get('x-acf-amount')).toBe('0');
  });

  it('contains no interim response while the request is incomplete', async () => {
    const before = raw.peers.length;
    const caller = await RawCaller.connect(market.baseUrl);
    caller.send(requestText(`POST ${rawPath}`, { key: buyer, headers: ['Content-Length: 2'] }));
    const peer = await raw.peer(before);
    await peer.until((text) => text.includes('\r\n\r\n'));
    peer.send('HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello');
    await caller.until((received) => received.toString().endsWith('hello'));
    expect(caller.received.toString()).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    caller.destroy();
  });

  it('contains redirects within the endpoint as redirects within the proxy path, and no other path of the endpoint', async () => {
    const redirect = async (location: string): Promise<(string | null)[]> => {
      const reply = `HTTP/1.1 302 Found\r\nLocation: ${location}\r\nContent-Location: ${location}\r\nContent-Length: 0\r\n\r\n`;
      const response = await answer(reply, `GET ${rawPath}/a/b?q`);
      expect(response.status).toBe(302);
      return [response.get('location'), response.get('content-location')];
    };
    expect(await redirect(`${raw.url}/base/c?d#e`)).toEqual([`${rawPath}/c?d#e`, `${rawPath}/c?d#e`]);
    expect(await redirect('c')).toEqual([`${rawPath}/a/c`, `${rawPath}/a/c`]);
    expect(await redirect(`${raw.url}/baseless`)).toEqual([null, null]);
    expect(await redirect('https://other.example/')).toEqual(['https://other.example/', 'https://other.example/']);
    expect(await redirect(`http://gateway.test${echoPath}/dear`)).toEqual([null, null]);
  });

  it('may be a redirect that fetch follows, with the key, to the path that the service meant', async () => {
    const site = await startService((request, response) => {
      if (request.url === '/v1/old?x=1') response.writeHead(307, { Location: '/v1/new?x=%41' }).end();
      else response.end(request.url);
    });
    const path = await market.service({ endpoint: `${site.url}/v1` });
    const response = await market.request(`${path}/old?x=1`, { key: buyer });
    expect([response.redirected, response.status, await response.text()]).toEqual([true, 200, '/v1/new?x=%41']);
    await site.close();
  });

  it.each([
    ['HEAD with a length', `HEAD`, 'HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n', '1234'],
    ['HEAD of chunks', `HEAD`, 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', null],
    ['204', `GET`, 'HTTP/1.1 204 No Content\r\n\r\n', null],
    // RFC 9110 §8.6: no Content-Length in a 204, and some clients would wait for that body.
    ['204 with a forbidden length', `GET`, 'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n', null],
    ['304', `GET`, 'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n', null],
    ['304 with a length', `GET`, 'HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n', '77'],
    ['an empty body', `GET`, 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', '0'],
  ])('has no body if the response may have none: %s', async (_name, method, reply, length) => {
    const response = await answer(reply, `${method} ${rawPath}`);
    expect(response.status).toBe(Number(reply.slice(9, 12)));
    expect(response.body.length).toBe(0);
    expect(response.all('content-length')).toEqual(length === null ? [] : [length]);
    expect(response.get('transfer-encoding')).toBeNull();
    expect(response.get('x-acf-amount')).toBe('0');
  });
});

it('a caller that waits for 100 Continue gets it, and its body is forwarded', async () => {
  const caller = await RawCaller.connect(market.baseUrl);
  const headers = ['Expect: 100-continue', 'Content-Length: 5'];
  caller.send(requestText(`POST ${echoPath}`, { key: buyer, headers }));
  await caller.until((received) => received.toString().startsWith('HTTP/1.1 100 Continue\r\n\r\n'));
  caller.send('hello');
  const echoed = (await caller.response()).json<Echoed>();
  expect(echoed.body).toBe('hello');
  expect(echoed.headers).not.toContain('expect');
  caller.destroy();
});

it.each(['Content-Length: 100000', 'Transfer-Encoding: chunked'])(
  'a large response head passes completely: %s',
  async (framing) => {
    const names = Array.from({ length: 50 }, (_, i) => `X-Large-${i}`);
    const lines = names.map((name, i) => `${name}: ${String(i % 10).repeat(1000)}\r\n`).join('');
    const body = 'b'.repeat(100_000);
    const framed = framing.startsWith('C') ? body : `186a0\r\n${body}\r\n0\r\n\r\n`;
    const reply = `HTTP/1.1 200 OK\r\n${lines}${framing}\r\n\r\n${framed}`;
    const { response } = await forwarded(requestText(`GET ${rawPath}`, { key: buyer }), { reply });
    expect(names.map((name) => response.get(name)?.length)).toEqual(names.map(() => 1000));
    expect(response.body.toString()).toBe(body);
  },
);

describe('a dot segment', () => {
  it.each(['/..', '/.', '/a/../b', '/%2e%2e/b', '/.%2E', '/a/..%2fb', '/a%5c..%5cb', '/..;x=1/b', '/a\\..\\b'])(
    'gets 400 and costs nothing: %s',
    async (path) => {
      const poor = await market.buyer(0.002);
      const priced = await market.service({ endpoint: raw.url, price: 0.002 });
      const before = raw.peers.length;
      const caller = await RawCaller.connect(market.baseUrl);
      const response = await caller.exchange(`GET ${priced}${path}`, { key: poor });
      expect(response.status).toBe(400);
      expect(response.json()).toMatchObject({ error: 'invalid_request', status: 400 });
      expect(await market.records(poor)).toEqual([]);
      expect(await market.balance(poor)).toMatchObject({ balance: 0.002, held: 0 });
      expect(raw.peers.length).toBe(before);
      caller.destroy();
    },
  );
});

describe('a connection of the caller', () => {
  it('serves call after call, whatever the previous call was', async () => {
    // One in 64 responses without a body closes its connection by chance (src/http/unread.ts). Not in this test.
    const chance = vi.spyOn(Math, 'random').mockReturnValue(0.5);
    const path = await market.service({ endpoint: service.url, price: 0.1 });
    const odd = await startService(async (request, response) => {
      await bodyOf(request);
      response.statusCode = Number((request.url as string).slice(1));
      response.end(response.statusCode === 200 ? 'plain' : undefined);
    });
    const oddPath = await market.service({ endpoint: odd.url });
    const caller = await RawCaller.connect(market.baseUrl);
    const requests: [line: string, options: Parameters<RawCaller['exchange']>[1], status: number][] = [
      [`GET ${oddPath}/200`, {}, 200],
      [`GET ${oddPath}/204`, {}, 204],
      [`HEAD ${oddPath}/200`, {}, 200],
      [`GET ${oddPath}/304`, {}, 304],
      [`POST ${oddPath}/200`, { body: 'x'.repeat(100_000) }, 200],
      [`GET ${oddPath}/503`, {}, 503],
      [`GET ${path}/../x`, {}, 400],
      [`HEAD ${path}/../x`, {}, 400],
      [`GET /api/v1/proxy/00000000-0000-7000-8000-000000000000`, {}, 404],
      [`POST /api/v1/proxy/00000000-0000-7000-8000-000000000000`, { body: '{}' }, 404],
      [`GET ${path}`, { headers: ['X-ACF-Max-Amount: 0.05'] }, 412],
      [`GET /nothing/here`, {}, 404],
      [`GET ${path}/last`, {}, 200],
    ];
    for (const [line, options, status] of requests) {
      const response = await caller.exchange(line, { key: buyer, ...options });
      expect([line, response.status]).toEqual([line, status]);
      expect(caller.received.length).toBe(0);
    }
    expect(caller.gone).toBe(false);
    caller.destroy();
    chance.mockRestore();
    await odd.close();
  });

  it('is closed after a chunked request, whose response is complete', async () => {
    const caller = await RawCaller.connect(market.baseUrl);
    const head = requestText(`POST ${echoPath}`, { key: buyer, headers: ['Transfer-Encoding: chunked'] });
    caller.send(`${head}5\r\nhello\r\n0\r\n\r\n`);
    const response = await caller.response();
    expect(response.json<Echoed>().body).toBe('hello');
    expect(response.get('connection')).toBe('close');
    caller.destroy();
  });
});
