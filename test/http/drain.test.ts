import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { freePort } from '../../scripts/local/ports.mjs';
import type { CallerStream } from '../../src/gate/caller-io.ts';
import type { HttpServer } from '../../src/http/server.ts';
import { RawCaller, requestText } from '../integration/raw-caller.ts';
import { until } from '../support/wait.ts';
import { newServer, noEvents } from './test-server.ts';

let server: HttpServer;
afterEach(() => server.close());

async function serve(onCall: (stream: CallerStream) => void): Promise<Socket> {
  server = newServer({ onCall: (_head, stream) => onCall(stream) });
  const socket = connect(await server.listen(), '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  return socket;
}

describe('draining', () => {
  it('waits until a slow reader has the last chunk of a stream that has ended', async () => {
    let written = 0;
    const socket = await serve((stream) => {
      stream.attach(noEvents);
      stream.begin(200, '', true, -1, true);
      const piece = Buffer.alloc(15_000, 'x');
      // Writes until the socket is full; the addon then buffers the last piece.
      do written += piece.length;
      while (stream.write(piece));
      stream.end();
    });
    socket.pause();
    await until(() => written > 0);
    let drained = false;
    const draining = server.drain(20_000).then((cut) => {
      drained = true;
      return cut;
    });
    await new Promise(setImmediate);
    expect([drained, server.open]).toEqual([false, 1]);
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.resume();
    expect(await draining).toBe(0);
    server.close();
    await new Promise((resolve) => socket.once('close', resolve));
    const body = Buffer.concat(chunks).toString('latin1');
    expect(body.endsWith('\r\n0\r\n\r\n')).toBe(true);
    expect(body.replace(/[^x]/g, '').length).toBe(written);
  });

  it('loses no last bytes of an ended response whose writes all succeeded at once', async () => {
    const piece = Buffer.alloc(15_900, 'x');
    /**
     * Writes until a write fails or `atMost` were written, and ends the response. A write that fails has taken its piece, too.
     * @returns how many pieces were written, and the socket
     */
    const fill = async (atMost: number): Promise<[number, Socket]> => {
      let pieces = 0;
      const socket = await serve((stream) => {
        stream.attach(noEvents);
        stream.begin(200, '', true, -1, true);
        let hasRoom = true;
        for (; hasRoom && pieces < atMost; pieces++) hasRoom = stream.write(piece);
        stream.end();
      });
      socket.pause();
      await until(() => pieces > 0);
      return [pieces, socket];
    };
    for (let run = 0; run < 5; run++) {
      // The last write that succeeds fills the socket, and the addon mostly still buffers its bytes.
      const [toTheBrim, filled] = await fill(Number.POSITIVE_INFINITY);
      filled.destroy();
      server.close();
      const [pieces, socket] = await fill(toTheBrim - 1);
      const draining = server.drain(20_000);
      await new Promise(setImmediate);
      const chunks: Buffer[] = [];
      socket.on('data', (chunk) => chunks.push(chunk));
      // Closes the connection after the response, as a caller does that was told so by `Connection: close`.
      void until(() => Buffer.concat(chunks.slice(-2)).toString('latin1').endsWith('\r\n0\r\n\r\n')).then(
        () => socket.end(),
        () => socket.destroy(),
      );
      socket.resume();
      expect(await draining).toBe(0);
      server.close();
      await new Promise((resolve) => socket.once('close', resolve));
      const text = Buffer.concat(chunks).toString('latin1');
      expect([run, text.replace(/[^x]/g, '').length]).toEqual([run, pieces * piece.length]);
      expect(text.endsWith('\r\n0\r\n\r\n')).toBe(true);
    }
  });

  it('does not wait for idle connections', async () => {
    server = newServer({ onCall: (_head, stream) => stream.respond(200, '', 'ok') });
    const idle = await RawCaller.connect(`http://127.0.0.1:${await server.listen()}`);
    let drained = false;
    await server.drain(20_000).then(() => {
      drained = true;
    });
    expect([drained, idle.gone]).toEqual([true, false]);
    server.close();
    await idle.end();
  });

  it('ends at its deadline, and tells each open stream that the gateway cut it', async () => {
    let wasCut: boolean | null = null;
    const socket = await serve((stream) => {
      stream.attach({ ...noEvents, onCallerGone: () => (wasCut = stream.wasCut) });
    });
    await until(() => server.open === 1);
    expect(await server.drain(50)).toBe(1);
    server.close();
    expect(wasCut).toBe(true);
    await new Promise((resolve) => socket.once('close', resolve));
    expect(server.open).toBe(0);
  });

  it('continues to answer on open connections during a handover, and closes each with its next response', async () => {
    const onCall = (_head: unknown, stream: CallerStream): void => {
      stream.attach(noEvents);
      stream.respond(200, '', 'ok');
    };
    const port = await freePort();
    server = newServer({ onCall, port, sharesPort: true });
    await server.listen();
    const caller = await RawCaller.connect(`http://127.0.0.1:${port}`);
    expect((await caller.exchange('GET /')).get('connection')).toBeNull();
    const idle = await RawCaller.connect(`http://127.0.0.1:${port}`);
    await idle.exchange('GET /');

    // The server that takes over the port is listening already.
    const other = newServer({ onCall, port, sharesPort: true });
    expect(await other.listen()).toBe(port);
    let drained = false;
    const draining = server.drain(20_000, { handOver: true }).then((cut) => {
      drained = true;
      return cut;
    });
    await until(() => server.draining);
    expect((await caller.exchange('GET /')).get('connection')).toBe('close');
    await caller.end();
    expect(drained).toBe(false);
    idle.destroy();
    expect(await draining).toBe(0);
    const next = await RawCaller.connect(`http://127.0.0.1:${port}`);
    expect((await next.exchange('GET /')).get('connection')).toBeNull();
    next.destroy();
    other.close();
  });

  it.each([
    ['without a body', requestText('GET /')],
    ['with a body', requestText('POST /', { body: 'hello' })],
  ])(
    'ends the connection after a chunked response, and serves no other request on it: a request %s',
    async (_, text) => {
      let asked = 0;
      const onCall = (_head: unknown, stream: CallerStream): void => {
        asked++;
        stream.attach(noEvents);
        stream.begin(200, '', true, -1, true);
        stream.write(Buffer.from('hello'));
        stream.end();
      };
      server = newServer({ onCall, sharesPort: true });
      const caller = await RawCaller.connect(`http://127.0.0.1:${await server.listen()}`);
      expect((await caller.exchange('GET /')).get('connection')).toBeNull();
      const draining = server.drain(20_000, { handOver: true });
      await until(() => server.draining);
      caller.send(text);
      const last = await caller.response();
      expect([last.get('connection'), last.body.toString()]).toEqual(['close', 'hello']);
      caller.socket.on('error', () => {});
      caller.send(requestText('GET /'));
      expect((await caller.end()).toString()).toBe('');
      expect(asked).toBe(2);
      expect(await draining).toBe(0);
    },
  );

  it('ends at its deadline during a handover, too', async () => {
    server = newServer({ onCall: () => {}, sharesPort: true });
    const idle = await RawCaller.connect(`http://127.0.0.1:${await server.listen()}`);
    idle.send('GET ');
    expect(await server.drain(50, { handOver: true })).toBe(0);
    server.close();
    await idle.end();
  });
});
