import { createHash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, it, vi } from 'vitest';
import { HttpServer } from '../../src/http/server.ts';
import { loadUws } from '../../src/http/uws.ts';
import { until } from '../support/wait.ts';
import { patternBytes } from '../upstream/helpers.ts';
import { bodyOf, type Key, Marketplace, startService, type TestService } from './marketplace.ts';
import { RawCaller, requestText } from './raw-caller.ts';

// Calls that the addon would cut after 10 s of silence. The tests have to wait that long, so they wait concurrently.
vi.setConfig({ maxConcurrency: 20 });
const LONGER_THAN_THE_ADDON_MS = 12_500;

const LARGE = patternBytes(12_000_000);

let market: Marketplace;
let service: TestService;
let buyer: Key;
let path: string;

beforeAll(async () => {
  market = await Marketplace.start();
  service = await startService(async (request, response) => {
    if (request.url === '/reads-late') await wait(LONGER_THAN_THE_ADDON_MS);
    if (request.url === '/answers-first/' || request.url === '/streams/') {
      if (request.url === '/streams/') response.setHeader('Content-Type', 'text/event-stream');
      response.write('first');
      request.resume().on('error', () => {});
      return;
    }
    if (request.url === '/large') {
      response.end(LARGE);
      return;
    }
    if (request.url === '/chunked') {
      response.write(LARGE.subarray(0, 1000));
      response.end(LARGE.subarray(1000));
      return;
    }
    const body = await bodyOf(request).catch(() => null);
    if (body === null) return;
    if (request.url === '/thinks') await wait(LONGER_THAN_THE_ADDON_MS);
    if (request.url === '/pauses') {
      response.write('first');
      await wait(LONGER_THAN_THE_ADDON_MS);
    }
    response.end(createHash('sha256').update(body).digest('hex'));
  });
  buyer = await market.buyer(1);
  path = await market.service({ endpoint: service.url });
});
afterAll(async () => {
  await market.stop();
  await service.close();
});

const sha = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

describe.concurrent("a call that takes longer than the addon's timeout is not cut", () => {
  it.for<[string, number]>([
    ['GET', 0],
    ['POST of a small body', 10],
    ['POST of a large body', 3_000_000],
  ])('while the service thinks: %s', async ([method, length], { expect }) => {
    const caller = await RawCaller.connect(market.baseUrl);
    const body = patternBytes(length);
    const line = `${method.slice(0, 4).trim()} ${path}/thinks`;
    caller.send(requestText(line, { key: buyer, headers: length === 0 ? [] : [`Content-Length: ${length}`] }));
    caller.send(body);
    const response = await caller.response();
    expect([response.status, response.body.toString()]).toEqual([200, sha(body)]);
    caller.destroy();
  });

  it('while the service does not read the upload', async ({ expect }) => {
    const caller = await RawCaller.connect(market.baseUrl);
    const body = patternBytes(9_000_000);
    const headers = [`Content-Length: ${body.length}`];
    caller.send(requestText(`POST ${path}/reads-late`, { key: buyer, headers }));
    caller.send(body);
    const response = await caller.response();
    expect([response.status, response.body.toString()]).toEqual([200, sha(body)]);
    caller.destroy();
  });

  it('while the service pauses within its response', async ({ expect }) => {
    const caller = await RawCaller.connect(market.baseUrl);
    const response = await caller.exchange(`GET ${path}/pauses`, { key: buyer });
    expect([response.status, response.body.toString()]).toEqual([200, `first${sha(Buffer.alloc(0))}`]);
    caller.destroy();
  });

  it.for(['large', 'chunked'])('while the caller does not read a response that is %s', async (kind, { expect }) => {
    const caller = await RawCaller.connect(market.baseUrl);
    caller.send(requestText(`GET ${path}/${kind}`, { key: buyer }));
    await caller.until((received) => received.length > 0);
    caller.socket.pause();
    await wait(LONGER_THAN_THE_ADDON_MS);
    caller.socket.resume();
    expect(sha((await caller.response()).body)).toBe(sha(LARGE));
    caller.destroy();
  });

  it.for([
    ['a length', true],
    ['chunks', false],
  ] as const)('while the caller uploads a little at a time, with %s', async ([_name, known], { expect }) => {
    const caller = await RawCaller.connect(market.baseUrl);
    const pieces = 26;
    const body = patternBytes(pieces * 100);
    const headers = [known ? `Content-Length: ${body.length}` : 'Transfer-Encoding: chunked'];
    caller.send(requestText(`POST ${path}/sum`, { key: buyer, headers }));
    for (let i = 0; i < pieces; i++) {
      const piece = body.subarray(i * 100, i * 100 + 100);
      caller.send(known ? piece : Buffer.concat([Buffer.from('64\r\n'), piece, Buffer.from('\r\n')]));
      await wait(LONGER_THAN_THE_ADDON_MS / pieces);
    }
    if (!known) caller.send('0\r\n\r\n');
    const response = await caller.response();
    expect([response.status, response.body.toString()]).toEqual([200, sha(body)]);
    caller.destroy();
  });

  it('but a body sent too slowly is a free 408, or is cut and charged if the service has answered already', async ({
    expect,
  }) => {
    const dripper = await market.buyer(1);
    const [dear, streams] = await Promise.all(
      ['/answers-first', '/streams'].map((url) => market.service({ endpoint: service.url + url, price: 0.25 })),
    );
    const callers = await Promise.all(
      [dear, dear, streams].map(async (listing, i) => {
        const caller = await RawCaller.connect(market.baseUrl);
        const target = i === 0 ? '/waits' : '/';
        caller.send(requestText(`POST ${listing}${target}`, { key: dripper, headers: ['Content-Length: 100000'] }));
        const dripping = setInterval(() => caller.send(patternBytes(100)), 500);
        caller.socket.once('close', () => clearInterval(dripping));
        return caller;
      }),
    );
    const [waiting, answered, stream] = callers as [RawCaller, RawCaller, RawCaller];
    const refused = await waiting.response();
    expect([refused.status, refused.json<{ error: string }>().error]).toEqual([408, 'body_too_slow']);
    expect([refused.get('connection'), refused.get('x-acf-amount')]).toEqual(['close', '0']);
    expect((await answered.end()).toString('latin1')).toMatch(/^HTTP\/1\.1 200 [\s\S]*rst$/);
    await until(async () => (await market.balance(dripper)).held === 0.25);
    expect(stream.gone).toBe(false);
    stream.destroy();
    const outcomes = (await market.records(dripper)).map(({ outcome, status, amount }) => [outcome, status, amount]);
    expect(outcomes.sort()).toEqual([
      ['completed', 200, 0.25],
      ['completed', 200, 0.25],
      ['refunded:body_too_slow', 408, 0],
    ]);
  });

  it.for<[string, string]>([
    ['sends no more of its request', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf'],
    ['takes no more of its response', 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'],
  ])('but a call whose caller %s is cut in the end', async ([_what, request], { expect }) => {
    let gone = false;
    const server = new HttpServer({
      uws: loadUws(process.env),
      host: '127.0.0.1',
      port: 0,
      trustedProxyHops: 0,
      idleCallerSeconds: 1,
      maxRequestBodyBytes: 1_048_576,

      isCall: () => true,
      onCall: (head, stream) => {
        stream.attach({ onCallerBody: () => {}, onCallerGone: () => (gone = true), onCallerWritable: () => {} });
        if (head.bodyLength !== 0) return;
        stream.begin(200, '', true, -1, true);
        while (stream.write(LARGE.subarray(0, 10_000)));
      },
      onRequest: () => {},
      onPreflight: () => {},
      log: market.log,
    });
    const port = await server.listen();
    const caller = await RawCaller.connect(`http://127.0.0.1:${port}`);
    caller.send(request);
    caller.socket.pause();
    await until(() => gone, 20_000);
    expect(server.open).toBe(0);
    caller.destroy();
    server.close();
  });
});
