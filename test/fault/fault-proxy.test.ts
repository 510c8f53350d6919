import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../support/wait.ts';
import { FaultProxy } from './fault-proxy.ts';

let proxy: FaultProxy;
let server: Server;
/** Everything that reached the target, in order of arrival. */
let arrived: string;
const sockets: Socket[] = [];

beforeEach(async () => {
  arrived = '';
  server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      arrived += bytes;
      socket.write(`reply to ${bytes}`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  proxy = await FaultProxy.open((server.address() as { port: number }).port);
});

afterEach(async () => {
  await proxy.close();
  for (const socket of sockets.splice(0)) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

type Client = { readonly socket: Socket; received: string };

async function client(): Promise<Client> {
  const socket = connect(proxy.port, '127.0.0.1');
  sockets.push(socket);
  const of: Client = { socket, received: '' };
  socket.on('data', (bytes) => {
    of.received += bytes;
  });
  socket.on('error', () => {});
  await once(socket, 'connect');
  return of;
}

describe('the fault proxy', () => {
  it('buffers requests, and delivers them late even if their sender has gone', async () => {
    const gone = await client();
    gone.socket.write('a');
    await until(() => gone.received === 'reply to a');
    proxy.set({ kind: 'buffer', what: 'requests' });
    gone.socket.write('b');
    await new Promise<void>((resolve) => gone.socket.end(resolve));
    const other = await client();
    proxy.set({ kind: 'buffer', what: 'replies' });
    await until(() => arrived === 'ab');
    other.socket.write('c');
    await until(() => arrived === 'abc');
    expect(other.received).toBe('');
    proxy.set({ kind: 'pass' });
    await until(() => other.received === 'reply to c');
  });

  it('stalls the existing connections while new ones pass', async () => {
    const old = await client();
    old.socket.write('a');
    await until(() => arrived === 'a');
    proxy.set({ kind: 'strand' });
    old.socket.write('b');
    const young = await client();
    young.socket.write('c');
    await until(() => young.received === 'reply to c');
    proxy.set({ kind: 'pass' });
    await until(() => arrived === 'acb');
  });

  it('cuts the next reply in the middle, and no later reply', async () => {
    const cut = await client();
    proxy.set({ kind: 'cut reply', part: 0.5 });
    cut.socket.write('1234567');
    await until(() => cut.socket.destroyed);
    expect('reply to 1234567'.startsWith(cut.received)).toBe(true);
    expect(cut.received.length).toBeLessThanOrEqual(8);
    const whole = await client();
    whole.socket.write('x');
    await until(() => whole.received === 'reply to x');
  });

  it('refuses new connections and resets existing ones', async () => {
    const old = await client();
    proxy.set({ kind: 'refuse' });
    await until(() => old.socket.destroyed);
    // The reset may come while the client connects or right after.
    const young = connect(proxy.port, '127.0.0.1');
    young.on('error', () => {});
    await new Promise((resolve) => young.on('close', resolve));
    expect([arrived, young.bytesRead]).toEqual(['', 0]);
  });
});
