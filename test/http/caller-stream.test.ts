import { createHash } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CallerEvents, CallerStream, RequestHead } from '../../src/gate/caller-io.ts';
import type { HttpServer } from '../../src/http/server.ts';
import { until } from '../support/wait.ts';
import { newServer, noEvents } from './test-server.ts';

type Handler = (head: RequestHead, stream: CallerStream) => void;
let handler: Handler = () => {};
let server: HttpServer;

beforeAll(async () => {
  server = newServer({ onCall: (head, stream) => handler(head, stream) });
  await server.listen();
});
afterAll(() => server.close());

/** Deterministic bytes in which any loss, repetition or reordering shows. */
function pattern(total: number): Buffer {
  const bytes = Buffer.allocUnsafe(total);
  for (let i = 0; i + 4 <= total; i += 4) bytes.writeUInt32LE((Math.imul(i, 2654435761) ^ (i >>> 3)) >>> 0, i);
  return bytes;
}

/** Streams `body` in chunks from one reused buffer, as the upstream client does, and pauses whenever write() returns false. */
function streamFrom(body: Buffer, chunkBytes: number, contentLength: number): Handler {
  return (_head, stream) => {
    const shared = Buffer.allocUnsafe(chunkBytes);
    let at = 0;
    let ended = false;
    const pump = (): void => {
      while (at < body.length) {
        const length = body.copy(shared, 0, at, at + chunkBytes);
        at += length;
        const more = stream.write(shared.subarray(0, length));
        shared.fill(0);
        if (!more) return;
      }
      if (!ended) {
        ended = true;
        stream.end();
      }
    };
    stream.attach({ ...noEvents, onCallerWritable: pump });
    stream.begin(200, '\r\nX-Test: 1', true, contentLength, true);
    pump();
  };
}

type Received = { readonly head: string; readonly body: Buffer };

/** Reads a response to its end, but pauses for 15 ms after every `stallEvery` bytes, at most `stalls` times. */
function readSlowly(socket: Socket, stallEvery: number, stalls: number): Promise<Received> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let sinceStall = 0;
    let left = stalls;
    socket.on('data', (chunk) => {
      chunks.push(chunk);
      sinceStall += chunk.length;
      if (sinceStall < stallEvery || left === 0) return;
      sinceStall = 0;
      left--;
      socket.pause();
      setTimeout(() => socket.resume(), 15);
    });
    socket.on('error', reject);
    socket.on('close', () => {
      const all = Buffer.concat(chunks);
      const split = all.indexOf('\r\n\r\n');
      resolve({ head: all.subarray(0, split).toString('latin1'), body: all.subarray(split + 4) });
    });
  });
}

function dechunk(body: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = body.indexOf('\r\n', at);
    if (lineEnd < 0) throw new Error('the chunked body is cut');
    const size = Number.parseInt(body.toString('latin1', at, lineEnd), 16);
    if (size === 0) {
      if (body.length !== lineEnd + 4) throw new Error('bytes after the last chunk');
      return Buffer.concat(parts);
    }
    parts.push(body.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
}

const sha = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

function request(text = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'): Socket {
  // A small receive window makes the server feel every stall.
  const socket = connect({ port: server.port, host: '127.0.0.1', highWaterMark: 4_096 } as never);
  socket.write(text);
  return socket;
}

describe('a reader slower than the service', () => {
  const body = pattern(12 * 1024 * 1024);

  it.each([
    ['with a length', 65_536, true],
    ['with a length, in odd pieces', 10_007, true],
    ['chunked', 65_536, false],
    ['chunked, in odd pieces', 17_003, false],
    ['chunked, in the largest pieces that fit a cork', 15_900, false],
    ['chunked, in pieces one byte too large for a cork', 15_901, false],
  ])('gets every byte, %s', async (_name, chunkBytes, known) => {
    handler = streamFrom(body, chunkBytes, known ? body.length : -1);
    const received = await readSlowly(request(), 256 * 1024, 30);
    const got = known ? received.body : dechunk(received.body);
    expect(received.head).toMatch(/^HTTP\/1\.1 200 OK\r\nX-Test: 1\r\n/);
    expect(got.length).toBe(body.length);
    expect(sha(got)).toBe(sha(body));
  });

  it.each([
    ['streamed', streamFrom(body, 65_536, body.length)],
    ['at once', (_head: RequestHead, stream: CallerStream) => stream.respond(200, '\r\nX-Test: 1', body)],
  ])('gets every byte of a response that ends the connection, %s', async (_name, answer) => {
    handler = answer;
    const chunked = request('GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n');
    const received = await readSlowly(chunked, 256 * 1024, 30);
    expect(received.head).toMatch(/\r\nconnection: close\r\n/);
    expect(received.body.length).toBe(body.length);
    expect(sha(received.body)).toBe(sha(body));
    expect(server.open).toBe(0);
  });

  it.each([
    ['that stays open', ''],
    ['that ends', 'Transfer-Encoding: chunked\r\n'],
  ])(
    'gets the last piece even if the socket is full, and the writer is notified once, on a connection %s',
    async (_, framing) => {
      let told = 0;
      handler = (_head, stream) => {
        stream.attach({ ...noEvents, onCallerWritable: () => told++ });
        stream.begin(200, '\r\nX-Test: 1', true, body.length, true);
        expect(stream.write(body)).toBe(false);
      };
      const asked = request(`GET / HTTP/1.1\r\nHost: x\r\n${framing}\r\n${framing === '' ? '' : '0\r\n\r\n'}`);
      const received = await readSlowly(asked, 256 * 1024, 30);
      expect(sha(received.body)).toBe(sha(body));
      await until(() => told > 0);
      expect([told, server.open]).toEqual([1, 0]);
    },
  );

  it('gets the last bytes even if the service sends nothing after them', async () => {
    let stream: CallerStream | undefined;
    let written = 0;
    const events: CallerEvents = { ...noEvents };
    handler = (_head, opened) => {
      stream = opened;
      opened.attach(events);
      opened.begin(200, '', true, -1, true);
      // Fills the socket until it takes no more, then stays silent and does not end.
      for (;;) {
        const chunk = body.subarray(written, written + 60_000);
        written += chunk.length;
        if (!opened.write(chunk)) return;
      }
    };
    const socket = request();
    let got = 0;
    socket.pause();
    await until(() => written > 0);
    const received: Buffer[] = [];
    socket.on('data', (chunk) => {
      received.push(chunk);
      got += chunk.length;
    });
    socket.resume();
    await until(() => got > written);
    stream?.end();
    await new Promise((resolve) => socket.once('close', resolve));
    const all = Buffer.concat(received);
    expect(sha(dechunk(all.subarray(all.indexOf('\r\n\r\n') + 4)))).toBe(sha(body.subarray(0, written)));
  });
});

describe('a response', () => {
  const answerOf = async (text?: string): Promise<string> => {
    const { head, body } = await readSlowly(request(text), Number.POSITIVE_INFINITY, 0);
    return `${head}\r\n\r\n${body.toString('latin1')}`;
  };

  it('never looks complete when it is cut', async () => {
    handler = (_head, stream) => {
      stream.attach(noEvents);
      stream.begin(200, '', true, -1, true);
      stream.write(Buffer.from('half'));
      setImmediate(() => stream.abort());
    };
    const answer = await answerOf();
    expect(answer).toContain('\r\n4\r\nhalf');
    expect(answer).not.toContain('\r\n0\r\n');
  });

  it('has one Content-Length when it is sent in one piece of known length', async () => {
    handler = (_head, stream) => {
      stream.attach(noEvents);
      stream.begin(200, 'A: b\r\n', true, 5, true);
      stream.write(Buffer.from('hello'));
      stream.end();
    };
    const answer = await answerOf();
    expect(answer.match(/content-length/gi)).toHaveLength(1);
    expect(answer).toMatch(/\r\n\r\nhello$/);
  });

  it.each([
    ['HEAD with a length', 'HEAD', 200, 55, /content-length: 55\r\n/i],
    ['304', 'GET', 304, -1, /^HTTP\/1\.1 304 Not Modified/],
    ['204', 'GET', 204, -1, /^HTTP\/1\.1 204 No Content/],
  ])('has no body: %s', async (_name, method, status, length, expected) => {
    handler = (_head, stream) => {
      stream.attach(noEvents);
      stream.begin(status, '\r\nA: b', true, length, false);
      stream.end();
    };
    const answer = await answerOf(`${method} / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    expect(answer).toMatch(expected);
    expect(answer).toMatch(/\r\n\r\n$/);
  });

  it.each([204, 304])('declares no length when it is a %i that is sent at once', async (status) => {
    handler = (_head, stream) => {
      stream.attach(noEvents);
      stream.respond(status, '\r\nETag: "a"', '');
    };
    const answer = await answerOf();
    expect(answer).toMatch(/ETag: "a"\r\n/);
    expect(answer).not.toMatch(/content-length/i);
  });

  it('keeps the bytes of a header that is not ASCII', async () => {
    handler = (_head, stream) => {
      stream.attach(noEvents);
      stream.begin(200, '\r\nX-Name: caf\u00e9\r\nX-Next: 1', false, 2, true);
      stream.write(Buffer.from('ok'));
    };
    expect(await answerOf()).toContain('X-Name: caf\u00e9\r\nX-Next: 1\r\n');
  });

  it('to a chunked request announces that the connection ends', async () => {
    handler = (_head, stream) => {
      stream.attach({ ...noEvents, onCallerBody: (_chunk, last) => last && stream.respond(200, '', 'ok') });
    };
    const answer = await answerOf(
      'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
    );
    expect(answer).toMatch(/connection: close\r\n/i);
  });
});

describe('a request body', () => {
  it('arrives in full even if the handler attaches late and pauses in between', async () => {
    const body = pattern(3 * 1024 * 1024);
    const received: Buffer[] = [];
    handler = (_head, stream) => {
      let pauses = 0;
      const events: CallerEvents = {
        ...noEvents,
        onCallerBody: (chunk, last) => {
          received.push(Buffer.from(chunk));
          if (last) stream.respond(200, '', 'ok');
          else if (pauses++ < 5) {
            stream.pauseBody();
            setImmediate(() => stream.resumeBody());
          }
        },
      };
      setTimeout(() => stream.attach(events), 20);
    };
    const socket = request(`POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`);
    socket.write(body);
    await readSlowly(socket, Number.POSITIVE_INFINITY, 0);
    expect(sha(Buffer.concat(received))).toBe(sha(body));
  });
});
