import { connect } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { HttpServer } from '../../src/http/server.ts';
import { newServer, noEvents } from './test-server.ts';

/** Every connection here must be closed by then. The addon's timeout is 10 s, give or take 4, and no byte may extend it. */
const PATIENCE_MS = 30_000;
const DRIP_MS = 500;

let server: HttpServer;
let port: number;
/** The paths of the calls whose `onCallerGone` was invoked. */
const gone: string[] = [];
beforeAll(async () => {
  server = newServer({
    // The gateway's default is a minute. The addon's own timeout would end a body sooner if the gateway did not extend it.
    idleCallerSeconds: 8,
    isCall: ({ path }) => path !== '/',
    onCall: (head, stream) => stream.attach({ ...noEvents, onCallerGone: () => void gone.push(head.path) }),
    onRequest: (_head, stream) => stream.respond(200, '', 'ok'),
  });
  port = await server.listen();
});
afterAll(() => server.close());

const DRIPS: readonly (readonly [name: string, first: string, drip: string])[] = [
  ['nothing at all', '', ''],
  ['empty lines', '', '\r\n'],
  ['half a request line', 'GET /', 'y'],
  ['half a field', 'GET / HTTP/1.1\r\nHost: x\r\nX: ', 'y'],
  ['one field after the other', 'GET / HTTP/1.1\r\nHost: x\r\n', 'X: y\r\n'],
  ['half of a second request', 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', 'G'],
];

/** @returns whether the gateway closed the connection in time */
async function isClosed(first: string, drip: string): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  // Writing to a connection that was just closed is an error: it is the end that this test waits for.
  socket.on('error', () => {});
  socket.resume();
  socket.write(first);
  const dripping = setInterval(() => socket.write(drip), DRIP_MS);
  const closed = await new Promise<boolean>((resolve) => {
    socket.once('close', () => resolve(true));
    setTimeout(() => resolve(false), PATIENCE_MS).unref();
  });
  clearInterval(dripping);
  socket.destroy();
  return closed;
}

// All at once, because each takes as long as the addon's timeout.
it('a connection that sends no complete request head is closed, even if it keeps sending single bytes', {
  timeout: PATIENCE_MS + 10_000,
}, async () => {
  const closed = await Promise.all(DRIPS.map(async ([name, first, drip]) => [name, await isClosed(first, drip)]));
  expect(closed).toEqual(DRIPS.map(([name]) => [name, true]));
});

const BODIES: readonly (readonly [path: string, first: string])[] = [
  ['/length', 'POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx'],
  ['/no-octet', 'POST /no-octet HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n'],
  ['/chunks', 'POST /chunks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab'],
];

it('a request body that stops arriving ends its call, as if the caller had left', {
  timeout: PATIENCE_MS + 10_000,
}, async () => {
  const closed = await Promise.all(BODIES.map(async ([path, first]) => [path, await isClosed(first, '')]));
  expect(closed).toEqual(BODIES.map(([path]) => [path, true]));
  expect(gone.sort()).toEqual(BODIES.map(([path]) => path).sort());
});
