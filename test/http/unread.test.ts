import { connect } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { CallerStream } from '../../src/gate/caller-io.ts';
import type { HttpServer } from '../../src/http/server.ts';
import { RawCaller } from '../integration/raw-caller.ts';
import { until } from '../support/wait.ts';
import { newServer, noEvents } from './test-server.ts';

let server: HttpServer;
let port: number;
let onCall: (stream: CallerStream) => void;
let answered = 0;
/** An upper bound on the bytes of all responses so far. */
let answeredBytes = 0;

beforeAll(async () => {
  server = newServer({
    onCall: (_head, stream) => {
      answered++;
      onCall(stream);
    },
  });
  port = await server.listen();
});
afterAll(() => server.close());
beforeEach(() => {
  answered = 0;
  answeredBytes = 0;
});

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const HEAD = 'HEAD / HTTP/1.1\r\nHost: x\r\n\r\n';
const CHUNKED = 'GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n';

const respond = (bytes: number) => (stream: CallerStream) => {
  answeredBytes += bytes + 100;
  stream.respond(200, '', 'x'.repeat(bytes));
};

/** Responds the way the proxy forwards a service's response. */
const forward = (bytes: number) => (stream: CallerStream) => {
  answeredBytes += bytes + 100;
  stream.attach(noEvents);
  stream.begin(200, '', true, bytes, bytes > 0);
  if (bytes > 0) stream.write(Buffer.alloc(bytes, 'x'));
  stream.end();
};

/**
 * Maximum bytes that a caller who never reads may get: what the system buffers for two sockets that nobody reads from, and some
 * more, because the gateway finds such a caller by chance.
 */
const MAX_UNREAD_BYTES = 16 * 1024 * 1024;

/** Sends one or many requests in each turn and never reads, until its connection is cut or it has asked for far too much. */
async function askOn(texts: (turn: number) => string): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.pause();
  let isClosed = false;
  socket.once('close', () => {
    isClosed = true;
  });
  // A socket that does not read learns of its end only by writing.
  for (let turn = 0; !isClosed && answeredBytes < 2 * MAX_UNREAD_BYTES; turn++) {
    socket.write(texts(turn));
    await new Promise(setImmediate);
  }
  socket.destroy();
  await until(() => server.open === 0);
}

describe('a caller that sends requests and never reads', () => {
  it.each<[string, (stream: CallerStream) => void]>([
    ['large responses of the gateway', respond(60_000)],
    ['small responses of the gateway', respond(7_000)],
    ['large responses of a service', forward(60_000)],
    ['small responses of a service', forward(7_000)],
  ])('is cut before %s fill the memory', async (_what, answer) => {
    onCall = answer;
    const ways = [() => GET, () => GET.repeat(64), () => CHUNKED, (turn: number) => (turn < 100 ? GET : CHUNKED)];
    for (const texts of ways) {
      answeredBytes = 0;
      await askOn(texts);
      expect(answeredBytes).toBeGreaterThan(0);
      expect(answeredBytes).toBeLessThan(MAX_UNREAD_BYTES);
    }
  });

  it.each([
    ['to HEAD', HEAD, respond(60_000)],
    ['without a body', GET, forward(0)],
  ])('is cut after a number of responses %s', async (_what, text, answer) => {
    onCall = answer;
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    socket.pause();
    socket.write(text.repeat(2_000));
    await until(() => answered > 0 && server.open === 0);
    expect(answered).toBeLessThan(2_000);
    socket.destroy();
  });
});

describe('a caller that reads', () => {
  it('keeps its connection and gets every response in full, however it is sent', async () => {
    const caller = await RawCaller.connect(`http://127.0.0.1:${port}`);
    for (let i = 0; i < 200; i++) {
      const bytes = [0, 1, 200, 8_000, 16_384, 60_000][i % 6] as number;
      onCall = (i % 2 === 0 ? respond : forward)(Math.max(1, bytes));
      const response = await caller.exchange('GET /');
      expect([response.status, response.body.length]).toEqual([200, Math.max(1, bytes)]);
      expect(response.get('connection')).toBeNull();
    }
    caller.destroy();
  });

  it.each([1, 2, 200, 16_384, 60_000, 300_000])(
    'gets all %i bytes of a response that ends its connection',
    async (bytes) => {
      for (const answer of [respond, forward]) {
        onCall = answer(bytes);
        const caller = await RawCaller.connect(`http://127.0.0.1:${port}`);
        caller.send(CHUNKED);
        const response = await caller.response(false);
        expect(response.all('content-length')).toEqual([String(bytes)]);
        expect([response.get('connection'), response.body.length]).toEqual(['close', bytes]);
        await caller.end();
        expect(caller.received.length).toBe(0);
      }
    },
  );

  it.each([
    ['HEAD', 200, respond(5), '5'],
    ['GET', 204, (stream: CallerStream) => stream.respond(204, '', ''), null],
    ['GET', 200, respond(0), '0'],
    ['HEAD', 200, (stream: CallerStream) => begun(stream, 200, 55), '55'],
    ['GET', 304, (stream: CallerStream) => begun(stream, 304, -1), null],
  ])('%s: gets a %i without a body that ends its connection', async (method, status, answer, length) => {
    onCall = answer;
    const caller = await RawCaller.connect(`http://127.0.0.1:${port}`);
    caller.send(CHUNKED.replace('GET', method));
    const response = await caller.response(true);
    expect([response.status, response.get('connection')]).toEqual([status, 'close']);
    expect(response.get('content-length')).toBe(length);
    expect(response.all('date')).toHaveLength(1);
    await caller.end();
    expect(caller.received.length).toBe(0);
  });
});

function begun(stream: CallerStream, status: number, contentLength: number): void {
  stream.attach(noEvents);
  stream.begin(status, '', true, contentLength, false);
  stream.end();
}
