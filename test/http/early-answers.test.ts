// Responses that are sent before their request is complete: the caller gets all of the response although it is still sending.

import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CallerStream } from '../../src/gate/caller-io.ts';
import type { HttpServer } from '../../src/http/server.ts';
import { until } from '../support/wait.ts';
import { newServer, noEvents } from './test-server.ts';

const MAX_BODY_BYTES = 32 * 1024 * 1024;
const UPLOAD_BYTES = 8 * 1024 * 1024;

type Answer = (stream: CallerStream) => void;

let server: HttpServer;
let answer: Answer;
/** Used instead of `answer` by tests that make several calls at once. */
const answersByPath = new Map<string, Answer>();
beforeAll(async () => {
  server = newServer({
    onCall: (head, stream) => (answersByPath.get(head.path) ?? answer)(stream),
    maxRequestBodyBytes: MAX_BODY_BYTES,
  });
  await server.listen();
});
afterAll(() => server.close());

const CHUNKED = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
const LENGTH = `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${UPLOAD_BYTES}\r\n\r\n`;
const LENGTH_CLOSE = LENGTH.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');
const PIECE = Buffer.alloc(65_536, 'u');
const CHUNK = Buffer.concat([Buffer.from('10000\r\n'), PIECE, Buffer.from('\r\n')]);

/** Sends a body as fast as the gateway takes it, and reads the response at the same time. */
class Uploader {
  readonly socket: Socket;
  readonly #pieces: Buffer[] = [];
  sent = 0;
  closed = false;

  /** @param bytes  of the body to send, in whole pieces; then a chunked body ends, unless `bytes` is 0 or infinite */
  constructor(head: string, bytes: number) {
    const isChunked = head === CHUNKED;
    this.socket = connect(server.port, '127.0.0.1');
    this.socket.on('data', (piece) => this.#pieces.push(piece));
    // A caller that goes on sending on a closed connection gets a reset.
    this.socket.on('error', () => {});
    this.socket.on('close', () => {
      this.closed = true;
    });
    this.socket.write(head);
    const send = (): void => {
      while (this.sent < bytes) {
        this.sent += PIECE.length;
        if (!this.socket.write(isChunked ? CHUNK : PIECE)) return;
      }
      this.socket.off('drain', send);
      if (isChunked && bytes > 0 && Number.isFinite(bytes)) this.socket.write('0\r\n\r\n');
    };
    this.socket.on('drain', send);
    send();
  }

  async end(): Promise<{ readonly head: string; readonly body: string }> {
    await until(() => this.closed, 20_000);
    const all = Buffer.concat(this.#pieces).toString('latin1');
    const split = all.indexOf('\r\n\r\n') + 4;
    return { head: all.slice(0, split), body: all.slice(split) };
  }
}

/** @returns the data of a chunked body, or where the body was cut */
function dechunked(body: string): string {
  let data = '';
  for (let at = 0; ; ) {
    const line = body.indexOf('\r\n', at);
    const size = Number.parseInt(body.slice(at, line), 16);
    if (line < 0 || Number.isNaN(size)) return `cut after ${data.length}`;
    if (size === 0) return data;
    data += body.slice(line + 2, line + 2 + size);
    at = line + 2 + size + 2;
  }
}

/** Responds as soon as the first bytes of the request body arrive. */
const early =
  (give: Answer): Answer =>
  (stream) => {
    let given = false;
    stream.attach({
      ...noEvents,
      onCallerBody: () => {
        if (!given) give(stream);
        given = true;
      },
    });
  };

/** The same, but writes the response in pieces as the caller takes them. */
const streamed =
  (body: string, contentLength: number): Answer =>
  (stream) => {
    const bytes = Buffer.from(body);
    let at = 0;
    let begun = false;
    const pump = (): void => {
      while (at < bytes.length) {
        const piece = bytes.subarray(at, at + 65_536);
        at += piece.length;
        if (!stream.write(piece)) return;
      }
      stream.end();
    };
    stream.attach({
      ...noEvents,
      onCallerBody: () => {
        if (begun) return;
        begun = true;
        stream.begin(200, '', true, contentLength, true);
        pump();
      },
      onCallerWritable: pump,
    });
  };

const LARGE = 'answer '.repeat(300_000);
const atOnce = (body: string) => early((stream) => stream.respond(413, '', body));

describe('a response that is sent before its request is complete', () => {
  it.each([
    ['in chunks, to a chunked request', CHUNKED, streamed(LARGE, -1), LARGE],
    ['a few bytes in chunks', CHUNKED, streamed('no', -1), 'no'],
    ['of known length, to a chunked request', CHUNKED, streamed(LARGE, LARGE.length), LARGE],
    ['at once, to a chunked request', CHUNKED, atOnce(LARGE), LARGE],
    ['at once, to a request of known length', LENGTH, atOnce(LARGE), LARGE],
    ['in chunks, to a caller that said Connection: close', LENGTH_CLOSE, streamed(LARGE, -1), LARGE],
    ['of known length, to a caller that said Connection: close', LENGTH_CLOSE, streamed(LARGE, LARGE.length), LARGE],
    ['of one byte', LENGTH, atOnce('x'), 'x'],
    ['of no byte', LENGTH, atOnce(''), ''],
  ])('arrives in full while the caller is still sending: %s', async (_name, head, given, body) => {
    answer = given;
    for (let round = 0; round < 10; round++) {
      const response = await new Uploader(head, UPLOAD_BYTES).end();
      const isChunked = /\r\ntransfer-encoding: chunked\r\n/i.test(response.head);
      expect((isChunked ? dechunked(response.body) : response.body) === body, `round ${round}`).toBe(true);
      expect(response.head).toMatch(/\r\nconnection: close\r\n/i);
    }
    expect(server.open).toBe(0);
  });
});

it('a chunked response arrives in order if the last bytes of its request arrive between its first two pieces', async () => {
  answer = (stream) => {
    stream.begin(200, '', true, -1, true);
    stream.write(Buffer.from('abc'));
    stream.attach({
      ...noEvents,
      onCallerBody: (_chunk, last) => {
        if (!last) return;
        stream.write(Buffer.from('defghij'));
        stream.end();
      },
    });
  };
  const uploader = new Uploader('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello', 0);
  uploader.socket.once('data', () => uploader.socket.end());
  expect(dechunked((await uploader.end()).body)).toBe('abcdefghij');
});

describe('a response to a request that is never completed', () => {
  /** @returns how long the connection stayed open, in milliseconds */
  const stayed = async (uploader: Uploader): Promise<number> => {
    const startedAt = performance.now();
    await uploader.end();
    return performance.now() - startedAt;
  };

  it.each([
    ['in chunks', CHUNKED, streamed('no', -1), /\r\n0\r\n\r\n$/],
    ['with a length', LENGTH, atOnce('no'), /\r\n\r\nno$/],
  ])('arrives in full, and ends the connection, within 2.5 seconds: %s', async (_name, head, given, whole) => {
    answer = given;
    const uploader = new Uploader(head, 0);
    uploader.socket.write(head === CHUNKED ? CHUNK : PIECE);
    expect(await stayed(uploader)).toBeLessThan(2_500);
    expect((await uploader.end()).head + (await uploader.end()).body).toMatch(whole);
  });

  it('ends the connection of a caller that continues to send single bytes', async () => {
    answer = atOnce('no');
    let ms = 0;
    await until(async () => {
      const uploader = new Uploader(LENGTH, 0);
      let [last, longest] = [performance.now(), 0];
      const dripping = setInterval(() => {
        uploader.socket.write('u');
        longest = Math.max(longest, performance.now() - last);
        last = performance.now();
      }, 200);
      ms = await stayed(uploader);
      clearInterval(dripping);
      // Where the machine stood still, the caller dripped no bytes: then it tries again.
      return longest < 800;
    });
    expect(ms).toBeGreaterThan(4_000);
    expect(ms).toBeLessThan(8_000);
  });

  it('ends the connection of a caller that never stops sending, at the maximum size of request bodies', async () => {
    answer = streamed('no', -1);
    const uploader = new Uploader(CHUNKED, Number.POSITIVE_INFINITY);
    await uploader.end();
    expect(uploader.sent).toBeGreaterThan(MAX_BODY_BYTES);
    // The bytes that the system and the caller's own socket buffer come on top.
    expect(uploader.sent).toBeLessThan(2 * MAX_BODY_BYTES);
  });
});

it('a chunked response that announced the end of its connection is the last one, even if its request is completed later', async () => {
  let finish: () => void = () => {};
  const paths: string[] = [];
  answersByPath.set('/one', (stream) => {
    paths.push('/one');
    let begun = false;
    stream.attach({
      ...noEvents,
      onCallerBody: (_chunk, last) => {
        if (!begun) {
          begun = true;
          stream.begin(200, '', true, -1, true);
          stream.write(Buffer.from('begun'));
        }
        if (last) finish = () => stream.end();
      },
    });
  });
  answersByPath.set('/two', (stream) => {
    paths.push('/two');
    stream.respond(200, '', 'two');
  });
  const socket = connect(server.port, '127.0.0.1');
  let received = '';
  socket.on('data', (piece) => {
    received += piece.toString('latin1');
  });
  const closed = new Promise((resolve) => socket.on('close', resolve));
  socket.on('error', () => {});
  const initial = finish;
  socket.write('POST /one HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345');
  // The last bytes of what was written are kept back.
  await until(() => /connection: close/i.test(received));
  socket.write('67890');
  await until(() => finish !== initial);
  finish();
  await until(() => received.endsWith('0\r\n\r\n'));
  socket.write('GET /two HTTP/1.1\r\nHost: x\r\n\r\n');
  await closed;
  expect(paths).toEqual(['/one']);
  expect(received).not.toContain('two');
});

describe('a response sent before its request is complete, to a caller that then sends the rest and stops', () => {
  /** Every connection must be closed by then. The addon closes idle connections after 10 s, give or take 4. */
  const PATIENCE_MS = 30_000;
  const SMALL = 'small';
  const MEDIUM = 'm'.repeat(100_000);
  const CASES: readonly (readonly [name: string, given: Answer, body: string])[] = [
    ['/small', streamed(SMALL, SMALL.length), SMALL],
    ['/large', streamed(LARGE, LARGE.length), LARGE],
    ['/chunked-small', streamed(SMALL, -1), SMALL],
    ['/chunked-medium', streamed(MEDIUM, -1), MEDIUM],
  ];

  /** @returns all bytes that arrived until the gateway closed the connection, or null if it stayed open too long */
  function untilClosed(path: string, isTimeForRest: (received: string) => boolean): Promise<string | null> {
    const socket = connect(server.port, '127.0.0.1');
    const pieces: Buffer[] = [];
    let sent = false;
    socket.on('error', () => {});
    socket.on('data', (piece) => {
      pieces.push(piece);
      if (sent || !isTimeForRest(Buffer.concat(pieces).toString('latin1'))) return;
      sent = true;
      socket.write(Buffer.alloc(UPLOAD_BYTES - PIECE.length));
    });
    socket.write(LENGTH.replace('/', path));
    socket.write(PIECE);
    return new Promise((resolve) => {
      const patience = setTimeout(() => {
        resolve(null);
        socket.destroy();
      }, PATIENCE_MS);
      socket.on('close', () => {
        clearTimeout(patience);
        resolve(Buffer.concat(pieces).toString('latin1'));
      });
    });
  }

  // All at once, because the chunked responses take as long as the addon's timeout.
  it.each([
    ['the rest is sent after the head', (): boolean => true],
    [
      'the rest is sent after the whole response',
      (all: string, body: string): boolean => all.includes(body) && /(\r\n0\r\n\r\n|[^\n])$/.test(all),
    ],
  ])(
    'arrives in full, and its connection is closed: %s',
    async (_name, isTimeForRest) => {
      for (const [path, given] of CASES) answersByPath.set(path, given);
      const received = await Promise.all(
        CASES.map(([path, , body]) => untilClosed(path, (all) => isTimeForRest(all, body))),
      );
      for (const [i, [path, , body]] of CASES.entries()) {
        const all = received[i];
        expect(all, `${path} stayed open`).not.toBeNull();
        const split = (all as string).indexOf('\r\n\r\n') + 4;
        const rest = (all as string).slice(split);
        expect((path.startsWith('/chunked') ? dechunked(rest) : rest) === body, `${path} is whole`).toBe(true);
        expect((all as string).slice(0, split)).toMatch(/\r\nconnection: close\r\n/i);
      }
      expect(server.open).toBe(0);
    },
    PATIENCE_MS + 10_000,
  );
});
