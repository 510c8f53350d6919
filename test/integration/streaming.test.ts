import { createHash, type Hash } from 'node:crypto';
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/wait.ts';
import { deferred, patternBytes, rawServer } from '../upstream/helpers.ts';
import { authorization, bodyOf, type Key, Marketplace, startService, type TestService } from './marketplace.ts';
import { RawCaller, requestText } from './raw-caller.ts';

const BODY = patternBytes(9 * 1024 * 1024, 7);
/** Bytes that the kernel may buffer for two connections (receive buffers grow to 32 MB), and a few for the gateway. */
const KERNEL_BYTES = 64 * 1024 * 1024;
const GZIPPED = gzipSync(Buffer.from('the same bytes, '.repeat(1000)));
const sha = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

let market: Marketplace;
let service: TestService;
let buyer: Key;
let path: string;
/** Open event streams, by path. */
const streams = new Map<string, ServerResponse>();

const { promise: mayRead, resolve: readNow } = deferred();

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = request.url ?? '';
  if (url.startsWith('/events')) {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    streams.set(url, response);
  } else if (url.startsWith('/download')) {
    const [, , , length, offset] = url.split('/').map(Number) as [number, number, number, number, number];
    const body = BODY.subarray(offset, offset + length);
    if (url.includes('/known/')) response.setHeader('Content-Length', body.length);
    // Pieces of odd sizes, so that no two boundaries coincide by accident.
    for (let at = 0; at < body.length; at += 70_003) {
      if (!response.write(body.subarray(at, at + 70_003))) await new Promise((go) => response.once('drain', go));
    }
    response.end();
  } else if (url === '/echo') {
    request.pipe(response);
  } else if (url === '/gzip') {
    await bodyOf(request);
    response.writeHead(200, { 'Content-Encoding': 'gzip', 'Content-Type': 'text/plain' });
    response.end(GZIPPED);
  } else {
    if (url === '/sum-later') await mayRead;
    const hash = createHash('sha256');
    let length = 0;
    for await (const chunk of request) {
      hash.update(chunk as Buffer);
      length += (chunk as Buffer).length;
    }
    response.end(`${length} ${hash.digest('hex')}`);
  }
}

beforeAll(async () => {
  market = await Marketplace.start({
    MAX_REQUEST_BODY_BYTES: String(128 * 1024 * 1024),
    REDIS_COMMAND_TIMEOUT_MS: '5000',
  });
  service = await startService((request, response) => {
    serve(request, response).catch(() => response.destroy());
  });
  buyer = await market.buyer(100);
  path = await market.service({ endpoint: service.url, price: 0.01 });
});
afterAll(async () => {
  await market.stop();
  await service.close();
});

type Sent = { readonly status: number; readonly response: IncomingMessage };

/** A call by node:http, which reads the response at its own pace. */
function send(
  target: string,
  { method = 'GET', headers = {}, write = (out: NodeJS.WritableStream): unknown => out.end() } = {},
): Promise<Sent> {
  return new Promise((resolve, reject) => {
    const all = { Authorization: authorization(buyer), ...headers };
    // A window of a few KB makes the gateway feel every stall.
    const options = { method, headers: all, highWaterMark: 4_096, agent: false };
    const out = httpRequest(market.baseUrl + path + target, options, (response) =>
      resolve({ status: response.statusCode ?? 0, response }),
    );
    out.on('error', reject);
    write(out);
  });
}

async function digest(response: AsyncIterable<Uint8Array>): Promise<{ length: number; sha: string }> {
  const hash: Hash = createHash('sha256');
  let length = 0;
  for await (const chunk of response) {
    hash.update(chunk);
    length += chunk.length;
  }
  return { length, sha: hash.digest('hex') };
}

/** Stops reading after every 256 KB, until the gateway has stopped writing. */
class StallingReader implements AsyncIterable<Uint8Array> {
  stalls = 0;
  readonly #response: IncomingMessage;

  constructor(response: IncomingMessage) {
    this.#response = response;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    let sinceStall = 0;
    for await (const chunk of this.#response) {
      yield chunk as Buffer;
      sinceStall += (chunk as Buffer).length;
      if (sinceStall < 256 * 1024) continue;
      sinceStall = 0;
      this.stalls++;
      await this.#quiet();
    }
  }

  /** Whether nothing has arrived for many turns of the event loop. */
  async #quiet(): Promise<void> {
    const { socket } = this.#response;
    for (let quiet = 0, seen = -1; quiet < 20; ) {
      await turn();
      quiet = socket.bytesRead === seen ? quiet + 1 : 0;
      seen = socket.bytesRead;
    }
  }
}

describe('an event stream', () => {
  it('arrives event by event: the caller has each event before the service sends the next one', async () => {
    const caller = await RawCaller.connect(market.baseUrl);
    caller.send(requestText(`GET ${path}/events/1`, { key: buyer }));
    const stream = await until(() => streams.get('/events/1'));
    for (let i = 0; i < 50; i++) {
      stream.write(`id: ${i}\ndata: ${'x'.repeat(i * 10)}\n\n`);
      await caller.until((received) => received.includes(`id: ${i}\ndata: ${'x'.repeat(i * 10)}\n\n`));
      if (i === 0) expect((await caller.head()).get('content-type')).toBe('text/event-stream');
      caller.received = Buffer.alloc(0);
    }
    stream.end();
    await caller.until((received) => received.toString().endsWith('0\r\n\r\n'));
    caller.destroy();
  });

  it('is one call, which is charged when it ends', async () => {
    const reader = await market.buyer(1);
    const caller = await RawCaller.connect(market.baseUrl);
    caller.send(requestText(`GET ${path}/events/2`, { key: reader }));
    const stream = await until(() => streams.get('/events/2'));
    stream.write('data: 1\n\n');
    expect((await caller.head()).get('x-acf-amount')).toBe('0.01');
    expect(await market.balance(reader)).toMatchObject({ balance: 0.99, held: 0.01 });
    stream.end('data: 2\n\n');
    const [record] = await market.records(reader);
    expect(record).toMatchObject({ outcome: 'completed', amount: 0.01, response_bytes: 18 });
    caller.destroy();
  });
});

describe('a download', () => {
  it('reaches readers that stall many times in full, both with a length and in chunks', async () => {
    // Several readers at once: no reader may get bytes that wait for another.
    const readers = ['known', 'chunked', 'known', 'chunked'].map(async (framing, i) => {
      const length = BODY.length - 1_000_000;
      const { response } = await send(`/download/${framing}/${length}/${i * 250_007}`);
      const reader = new StallingReader(response);
      const expected = BODY.subarray(i * 250_007, i * 250_007 + length);
      expect(await digest(reader)).toEqual({ length, sha: sha(expected) });
      expect(reader.stalls).toBeGreaterThan(20);
    });
    await Promise.all(readers);
  });

  it("does not fill the gateway's memory when the caller does not read", async () => {
    let sent = 0;
    const endless = await startService((_request, response) => {
      const piece = Buffer.alloc(65_536, 1);
      const go = (): void => {
        while (!response.destroyed) {
          sent += piece.length;
          if (!response.write(piece)) return;
        }
      };
      response.on('drain', go);
      go();
    });
    const caller = await RawCaller.connect(market.baseUrl);
    caller.send(requestText(`GET ${await market.service({ endpoint: endless.url })}`, { key: buyer }));
    await caller.head();
    caller.socket.pause();
    const stopped = await settledNumber(() => sent);
    expect(stopped).toBeLessThan(KERNEL_BYTES);
    caller.destroy();
    await endless.close();
  });

  it('with a Content-Encoding is neither decoded nor encoded by the gateway', async () => {
    const { response } = await send('/gzip', { headers: { 'Accept-Encoding': 'gzip' } });
    const body = await bodyOf(response);
    expect(response.headers['content-encoding']).toBe('gzip');
    expect(body.equals(GZIPPED)).toBe(true);
    expect(gunzipSync(body).length).toBe(16_000);
  });
});

/** Returns the number once it has not changed over looks of half a second. */
async function settledNumber(read: () => number): Promise<number> {
  let seen = -1;
  let quiet = 0;
  return until(() => {
    quiet = read() === seen ? quiet + 1 : 0;
    seen = read();
    return quiet >= 50 ? seen : null;
  });
}

describe('an upload', () => {
  it.each([
    ['with a length', { 'Content-Length': String(BODY.length) }],
    ['in chunks', { 'Transfer-Encoding': 'chunked' }],
  ])('of many megabytes arrives with every byte: %s', async (_name, headers) => {
    const { status, response } = await send('/sum', { method: 'POST', headers, write: (out) => out.end(BODY) });
    expect(status).toBe(200);
    expect((await bodyOf(response)).toString()).toBe(`${BODY.length} ${sha(BODY)}`);
  });

  it.each([
    ['with a length', 'Content-Length: 30000', (piece: Buffer) => piece],
    [
      'in chunks',
      'Transfer-Encoding: chunked',
      (piece: Buffer) => Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]),
    ],
  ])('sent in small pieces reaches the service piece by piece: %s', async (_name, header, frame) => {
    const raw = await rawServer();
    const target = await market.service({ endpoint: raw.url });
    const caller = await RawCaller.connect(market.baseUrl);
    caller.send(requestText(`POST ${target}`, { key: buyer, headers: [header] }));
    const peer = await raw.peer(0);
    await peer.takeRequest();
    let wire = '';
    for (let at = 0; at < 30_000; at += 1000) {
      caller.send(frame(BODY.subarray(at, at + 1000)));
      const tail = BODY.toString('latin1', at + 900, at + 1000);
      await peer.until((received) => received.includes(tail));
      wire += peer.received;
      peer.received = '';
    }
    if (header.startsWith('Transfer')) caller.send('0\r\n\r\n');
    const body = wire
      .replace(/^3e8\r\n/, '')
      .replaceAll('\r\n3e8\r\n', '')
      .replace(/\r\n$/, '');
    expect(sha(Buffer.from(body, 'latin1'))).toBe(sha(BODY.subarray(0, 30_000)));
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    expect((await caller.response()).status).toBe(200);
    caller.destroy();
    await raw.close();
  });

  /** Offers 132 MB that nobody reads yet. @returns how many bytes were accepted, and how the upload ends */
  async function offerTooMuch(target: string): Promise<{ taken: number; finish(): Promise<void> }> {
    const total = 14 * BODY.length;
    const expected = createHash('sha256');
    const caller = await RawCaller.connect(market.baseUrl);
    caller.send(requestText(`POST ${path}${target}`, { key: buyer, headers: [`Content-Length: ${total}`] }));
    let offered = 0;
    const offer = (): void => {
      while (offered < total) {
        const at = offered % BODY.length;
        const piece = BODY.subarray(at, at + 65_536);
        expected.update(piece);
        offered += piece.length;
        if (!caller.socket.write(piece)) return;
      }
    };
    caller.socket.on('drain', offer);
    offer();
    const taken = await settledNumber(() => offered);
    const finish = async (): Promise<void> => {
      const response = await caller.response();
      expect(response.body.toString()).toBe(`${total} ${expected.digest('hex')}`);
      caller.destroy();
    };
    return { taken, finish };
  }

  it('to a service that does not read is slowed down by backpressure, and loses no bytes', async () => {
    const { taken, finish } = await offerTooMuch('/sum-later');
    expect(taken).toBeLessThan(KERNEL_BYTES);
    readNow();
    await finish();
  });

  it('is slowed down by backpressure while the call is being admitted, and loses no bytes', async () => {
    const admitted = await market.metric('tollgate_calls_admitted_total');
    market.redis.pause();
    const { taken, finish } = await offerTooMuch('/sum');
    expect(await market.metric('tollgate_calls_admitted_total')).toBe(admitted);
    expect(taken).toBeLessThan(KERNEL_BYTES);
    market.redis.resume();
    await finish();
  });

  it('may be answered before it ends, which ends the call', async () => {
    const raw = await rawServer();
    const target = await market.service({ endpoint: raw.url, price: 0.01 });
    const early = await market.buyer(1);
    const caller = await RawCaller.connect(market.baseUrl);
    caller.send(requestText(`POST ${target}`, { key: early, headers: ['Content-Length: 100000'] }));
    caller.send('the beginning');
    const peer = await raw.peer(0);
    await peer.until((received) => received.endsWith('the beginning'));
    peer.send('HTTP/1.1 403 No\r\nContent-Length: 4\r\n\r\nnope');
    const response = await caller.response();
    expect([response.status, response.body.toString()]).toEqual([403, 'nope']);
    expect(response.get('connection')).toBe('close');
    const [record] = await market.records(early);
    expect(record).toMatchObject({ outcome: 'completed', status: 403, amount: 0.01, request_bytes: 13 });
    // The gateway discards the rest of the upload, closes the connection, and serves no request behind it.
    caller.send('x'.repeat(100_000 - 'the beginning'.length));
    caller.send(requestText(`POST ${path}/sum`, { key: early, body: 'next' }));
    expect((await caller.end()).toString()).toBe('');
    expect(await market.records(early)).toHaveLength(1);
    await raw.close();
  });

  it.each([
    ['with a length', { 'Content-Length': String(BODY.length) }],
    ['in chunks', { 'Transfer-Encoding': 'chunked' }],
  ])('that is echoed while it is sent comes back with every byte: %s', async (_name, headers) => {
    const { response } = await send('/echo', { method: 'POST', headers, write: (out) => out.end(BODY) });
    expect(await digest(response)).toEqual({ length: BODY.length, sha: sha(BODY) });
  });
});

it('a caller that reads only after it has sent everything gets a complete echo', async () => {
  const caller = await RawCaller.connect(market.baseUrl);
  const body = Buffer.concat([BODY, BODY, BODY]);
  const headers = [`Content-Length: ${body.length}`, 'Connection: close'];
  caller.socket.pause();
  caller.send(requestText(`POST ${path}/echo`, { key: buyer, headers }));
  await new Promise<void>((resolve) => caller.socket.write(body, () => resolve()));
  caller.socket.resume();
  expect(sha((await caller.response()).body)).toBe(sha(body));
});

it('fifty simultaneous streams of all kinds do not mix their bytes', async () => {
  const calls = Array.from({ length: 50 }, async (_, i) => {
    const body = patternBytes(150_000 + i * 1009, i + 1);
    const length = 200_000 + i * 1013;
    if (i % 5 < 2) {
      const { response } = await send(`/download/${i % 5 === 0 ? 'known' : 'chunked'}/${length}/${i}`);
      return expect(await digest(response)).toEqual({ length, sha: sha(BODY.subarray(i, i + length)) });
    }
    const headers = i % 2 === 0 ? { 'Content-Length': String(body.length) } : { 'Transfer-Encoding': 'chunked' };
    const target = i % 5 === 2 ? '/sum' : '/echo';
    const { response } = await send(target, { method: 'POST', headers, write: (out) => out.end(body) });
    if (target === '/echo') return expect(await digest(response)).toEqual({ length: body.length, sha: sha(body) });
    return expect((await bodyOf(response)).toString()).toBe(`${body.length} ${sha(body)}`);
  });
  await Promise.all(calls);
  await market.settled();
  expect(await market.balance(buyer)).toMatchObject({ held: 0 });
  expect(await market.books()).toMatchObject({ drifting: [], total: '0' });
});
