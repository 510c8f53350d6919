import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { HttpServer } from '../../src/http/server.ts';
import { until } from '../support/wait.ts';
import { newServer, noEvents } from './test-server.ts';

const TICK_MS = 2_000;

let server: HttpServer;
beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }));
afterEach(() => {
  server.close();
  vi.useRealTimers();
});

async function call(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await new Promise((resolve) => socket.once('data', resolve));
  return socket;
}

it('the server checks for slow callers while somebody is connected, and stops when the last one has gone', async () => {
  server = newServer({
    tickMs: TICK_MS,
    onCall: (_head, stream) => {
      stream.attach(noEvents);
      stream.begin(200, '', true, 0, true);
      stream.end();
    },
  });
  const port = await server.listen();
  expect(vi.getTimerCount()).toBe(0);
  for (let times = 0; times < 2; times++) {
    const sockets = [await call(port), await call(port)];
    await vi.advanceTimersByTimeAsync(10 * TICK_MS);
    expect(vi.getTimerCount()).toBe(1);
    for (const socket of sockets) socket.destroy();
    await until(async () => {
      await vi.advanceTimersByTimeAsync(10 * TICK_MS);
      return vi.getTimerCount() === 0;
    });
  }
});
