// A response that says `Connection: close`: all of it arrives, and no later request on the connection is served.

import { createHash } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { CallerStream, RequestHead } from '../../src/gate/caller-io.ts';
import type { HttpServer } from '../../src/http/server.ts';
import { until } from '../support/wait.ts';
import { newServer, noEvents } from './test-server.ts';

type Answer = (stream: CallerStream, head: RequestHead) => void;

let server: HttpServer;
let answer: Answer;
/** The paths of all requests that reached the gateway's handler. */
let asked: string[] = [];

beforeAll(async () => {
  server = newServer({
    onCall: (head, stream) => {
      asked.push(head.path);
      answer(stream, head);
    },
  });
  await server.listen();
});
beforeEach(() => {
  asked = [];
});
afterAll(() => server.close());

const CHUNKED = 'POST /first HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n';
const SECOND = 'GET /second HTTP/1.1\r\nHost: x\r\n\r\n';

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

/** Sends a request, and reads everything up to the end of the connection. */
class Reader {
  readonly socket: Socket;
  readonly #pieces: Buffer[] = [];
  #ended = false;

  constructor(first: string, onData?: (all: string, socket: Socket) => void) {
    this.socket = connect({ port: server.port, host: '127.0.0.1' });
    this.socket.on('data', (piece) => {
      this.#pieces.push(piece);
      onData?.(Buffer.concat(this.#pieces).toString('latin1'), this.socket);
    });
    // A request on a connection that was closed gets a reset, which is an end too.
    this.socket.on('error', () => {});
    this.socket.on('close', () => {
      this.#ended = true;
    });
    this.socket.write(first);
  }

  async end(): Promise<string> {
    await until(() => this.#ended);
    return Buffer.concat(this.#pieces).toString('latin1');
  }
}

/** @returns the data of each chunk. Throws if the body is cut, or if anything follows its last chunk. */
function chunksOf(response: string): string[] {
  const chunks: string[] = [];
  let rest = response.slice(response.indexOf('\r\n\r\n') + 4);
  for (;;) {
    const [line = ''] = rest.split('\r\n', 1);
    const size = Number.parseInt(line, 16);
    if (size === 0) {
      if (rest !== '0\r\n\r\n') throw new Error(`bytes after the last chunk: ${JSON.stringify(rest.slice(0, 200))}`);
      return chunks;
    }
    if (!(size > 0) || rest.length < line.length + size + 4) throw new Error('cut');
    chunks.push(rest.slice(line.length + 2, line.length + 2 + size));
    rest = rest.slice(line.length + 2 + size + 2);
  }
}

const streamed =
  (...pieces: readonly string[]): Answer =>
  (stream) => {
    stream.attach(noEvents);
    stream.begin(200, '', true, -1, true);
    for (const piece of pieces) stream.write(Buffer.from(piece));
    stream.end();
  };

/** Like `streamed`, but writes each piece, and the end, in a turn of its own. */
const inTurns =
  (...pieces: readonly string[]): Answer =>
  (stream) => {
    stream.attach(noEvents);
    stream.begin(200, '', true, -1, true);
    const next = (i: number): void => {
      const piece = pieces[i];
      if (piece === undefined) {
        stream.end();
        return;
      }
      stream.write(Buffer.from(piece));
      setTimeout(next, 5, i + 1);
    };
    setImmediate(next, 0);
  };

describe('after the chunked response to a chunked request', () => {
  it.each([
    ['in one piece', streamed('hello'), 'hello'],
    ['of one byte', streamed('h'), 'h'],
    ['in pieces', streamed('a', 'bc', 'defghij', 'x'.repeat(40_000)), `abcdefghij${'x'.repeat(40_000)}`],
    ['in turns', inTurns('a', 'data: 1\n\n', 'y'.repeat(20_000)), `adata: 1\n\n${'y'.repeat(20_000)}`],
  ])('no other request is served, and the connection ends: %s', async (_name, given, body) => {
    answer = given;
    let sent = false;
    const reader = new Reader(CHUNKED, (all, socket) => {
      if (sent || !all.endsWith('\r\n0\r\n\r\n')) return;
      sent = true;
      socket.write(SECOND);
    });
    const response = await reader.end();
    expect(response).toMatch(/\r\nconnection: close\r\n/i);
    expect(chunksOf(response).join('')).toBe(body);
    expect(asked).toEqual(['/first']);
    expect(server.open).toBe(0);
  });

  it('no other request is served if the response ends with the last byte of its request', async () => {
    answer = (stream) => {
      stream.begin(200, '', true, -1, true);
      stream.attach({
        ...noEvents,
        onCallerBody: (_chunk, last) => {
          if (!last) return;
          stream.write(Buffer.from('all of it'));
          stream.end();
        },
      });
    };
    expect(chunksOf(await new Reader(CHUNKED).end()).join('')).toBe('all of it');
    expect(asked).toEqual(['/first']);
  });

  it('no other request is served, even if the caller sent Expect: 100-continue', async () => {
    answer = inTurns('hello');
    let response = '';
    const [head = '', body = ''] = CHUNKED.split(/(?<=\r\n\r\n)(?=5)/);
    const reader = new Reader(head.replace(/\r\n$/, 'Expect: 100-continue\r\n\r\n'), (all, socket) => {
      if (all === CONTINUE) socket.write(body);
      if (response !== '' || !all.endsWith('\r\n0\r\n\r\n')) return;
      response = all.slice(CONTINUE.length);
      socket.write(SECOND);
    });
    await until(() => response !== '');
    expect(response).toMatch(/^HTTP\/1\.1 200 OK\r\n.*connection: close\r\n/is);
    expect(chunksOf(response).join('')).toBe('hello');
    // The addon's timeout ends this connection. Meanwhile others are served.
    await new Reader(CHUNKED.replace('first', 'third')).end();
    expect(asked).toEqual(['/first', '/third']);
    reader.socket.destroy();
  });

  it('the server continues to serve when a response is aborted, or when its caller leaves in the middle', async () => {
    let gone = 0;
    let stream: CallerStream | undefined;
    answer = (opened) => {
      stream = opened;
      opened.attach({ ...noEvents, onCallerGone: () => gone++ });
      opened.begin(200, '', true, -1, true);
      opened.write(Buffer.from('hello'));
      opened.end();
      opened.abort();
    };
    const cut = await new Reader(CHUNKED).end();
    expect(cut).not.toContain('\r\n0\r\n\r\n');
    answer = (opened) => {
      stream = opened;
      opened.attach({ ...noEvents, onCallerGone: () => gone++ });
      opened.begin(200, '', true, -1, true);
      opened.write(Buffer.from('hello'));
    };
    const leaver = new Reader(CHUNKED, (_all, socket) => socket.destroy());
    await until(() => gone === 1);
    await leaver.end();
    stream?.end();
    answer = streamed('still here');
    expect(chunksOf(await new Reader(CHUNKED).end()).join('')).toBe('still here');
    expect(server.open).toBe(0);
  });
});

it('a server-sent event reaches the caller of a chunked request in full before the next event is written', async () => {
  let stream: CallerStream | undefined;
  answer = (opened) => {
    stream = opened;
    opened.attach(noEvents);
    opened.begin(200, '', true, -1, true);
    opened.write(Buffer.from('data: 1\n\n'));
  };
  let seen = '';
  const reader = new Reader(CHUNKED, (all) => {
    seen = all;
  });
  const got = (): string => seen.slice(seen.indexOf('\r\n\r\n') + 4).replace(/[0-9a-f]+\r\n([^\r]*)\r?\n?/g, '$1');
  await until(() => got() === 'data: 1\n\n');
  stream?.write(Buffer.from(': \n'));
  await until(() => got() === 'data: 1\n\n: \n');
  stream?.end();
  expect(chunksOf(await reader.end()).join('')).toBe('data: 1\n\n: \n');
});

describe('a caller that sent Expect: 100-continue', () => {
  it.each([
    ['chunked', 'Transfer-Encoding: chunked', '5\r\nhello\r\n0\r\n\r\n'],
    ['with a length', 'Content-Length: 5', 'hello'],
  ])('is told once to continue, before it sends a body %s', async (_framing, header, body) => {
    answer = (stream) => {
      const onCallerBody = (_chunk: Uint8Array, last: boolean): void => {
        if (last) stream.respond(200, '', 'done');
      };
      stream.attach({ ...noEvents, onCallerBody });
    };
    const head = `POST /first HTTP/1.1\r\nHost: x\r\n${header}\r\nExpect: 100-continue\r\n\r\n`;
    let hasContinued = false;
    const reader = new Reader(head, (all, socket) => {
      if (!hasContinued && all.endsWith(CONTINUE)) {
        hasContinued = true;
        socket.write(body);
      }
      if (all.endsWith('done')) socket.end();
    });
    const all = await reader.end();
    expect(all.split('100 Continue')).toHaveLength(2);
    expect(all.slice(CONTINUE.length)).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(asked).toEqual(['/first']);
  });
});

describe('a response with a length to a chunked request', () => {
  it.each([
    ['nothing', ''],
    ['one octet', 'h'],
    ['two octets', 'hi'],
    ['a lot', 'z'.repeat(100_000)],
  ])('arrives in full, and no other request is served after it: %s', async (_name, body) => {
    for (const respond of [true, false]) {
      asked = [];
      answer = (stream) => {
        stream.attach(noEvents);
        if (respond) {
          stream.respond(200, '', body);
          return;
        }
        stream.begin(200, '', true, body.length, true);
        // The first and the last byte go alone, because they need most care.
        for (const piece of body.length < 3 ? [...body] : [body[0], body.slice(1, -1), body.at(-1)]) {
          stream.write(Buffer.from(piece as string));
        }
        stream.end();
      };
      let sent = false;
      const reader = new Reader(CHUNKED, (all, socket) => {
        if (sent || !all.includes(`\r\n\r\n${body}`)) return;
        sent = true;
        socket.write(SECOND);
      });
      const response = await reader.end();
      expect(response.match(/\r\nconnection: close\r\n/gi)).toHaveLength(1);
      expect(response.match(/\r\ncontent-length: /gi)).toHaveLength(1);
      expect(response.slice(response.indexOf('\r\n\r\n') + 4)).toBe(body);
      expect(asked).toEqual(['/first']);
    }
  });
});

describe('a caller of a chunked request that reads nothing until the whole response is written', () => {
  /** Writes a piece per turn until the socket is full or `total` bytes are written, and ends the response. */
  const fill =
    (total: number, done: (bytes: Buffer) => void): Answer =>
    (stream) => {
      stream.attach(noEvents);
      stream.begin(200, '', true, -1, true);
      const all: Buffer[] = [];
      let length = 0;
      const next = (): void => {
        const piece = Buffer.alloc(Math.min(9_973, total - length), String(all.length % 10));
        all.push(piece);
        length += piece.length;
        if (stream.write(piece) && length < total) {
          setImmediate(next);
          return;
        }
        stream.end();
        done(Buffer.concat(all));
      };
      setImmediate(next);
    };

  const sha = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex');

  const readLate = async (total: number): Promise<number> => {
    let whole: Buffer | null = null;
    answer = fill(total, (bytes) => {
      whole = bytes;
    });
    const reader = new Reader(CHUNKED);
    reader.socket.pause();
    await until(() => whole !== null);
    reader.socket.resume();
    const body = chunksOf(await reader.end()).join('');
    const given = whole as unknown as Buffer;
    expect(body.length).toBe(given.length);
    expect(sha(Buffer.from(body, 'latin1'))).toBe(sha(given));
    return given.length;
  };

  it('gets every byte and the end, however full its socket is', async () => {
    const capacity = await readLate(64 * 1024 * 1024);
    expect(capacity).toBeLessThan(64 * 1024 * 1024);
    // Around the capacity: the last writes that fit the socket, and those that the addon buffers without reporting it.
    for (let short = -2; short < 10; short++) await readLate(capacity - short * 4_999);
    expect(server.open).toBe(0);
  });
});
