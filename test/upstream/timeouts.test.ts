import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { Exchange, eventually, newClient, OK } from './helpers.ts';
import { client, server, useServer } from './use-server.ts';

useServer();

/** Waits until the client has ended another call because of a silence three times as long as `ms`. */
async function longerThan(ms: number): Promise<void> {
  expect(await new Exchange(client, server.url, { headTimeoutMs: ms * 3 }).outcome()).toBe('head_timeout');
}

test('a call whose response head does not come fails at its timeout, not before, and its connection is closed', async () => {
  const since = performance.now();
  const exchange = new Exchange(client, server.url, { headTimeoutMs: 60 });
  expect(await exchange.outcome()).toBe('head_timeout');
  expect(performance.now() - since).toBeGreaterThanOrEqual(59);
  expect(exchange.error).toMatchObject({ requestStarted: true, headReceived: false });
  await server.peers[0]?.gone();
});

test.each([
  ['sending its head drop by drop', Array.from(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(1000)}`)],
  ['sending interim responses', Array.from({ length: 10 }, () => 'HTTP/1.1 102 Processing\r\n\r\n')],
])('the upstream cannot extend the timeout with %s', async (_name, drips) => {
  const exchange = new Exchange(client, server.url, { headTimeoutMs: 60 });
  const peer = await server.peer(0);
  await peer.takeRequest();
  const timer = setInterval(() => peer.send(drips.shift() ?? ''), 15);
  expect(await exchange.outcome()).toBe('head_timeout');
  clearInterval(timer);
  expect(drips.length).toBeGreaterThan(0);
});

test('a call fails when its response body stalls', async () => {
  const exchange = new Exchange(client, server.url, { idleBodyTimeoutMs: 60 });
  const peer = await server.peer(0);
  await peer.takeRequest();
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok');
  expect(await exchange.outcome()).toBe('body_timeout');
  expect(exchange.body).toBe('ok');
  expect(exchange.error).toMatchObject({ headReceived: true });
});

test('a call does not fail while its response body arrives, however slowly', async () => {
  const exchange = new Exchange(client, server.url, { idleBodyTimeoutMs: 60, headTimeoutMs: 60 });
  const peer = await server.peer(0);
  await peer.takeRequest();
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n');
  const since = performance.now();
  const timer = setInterval(() => peer.send('x'), 20);
  expect(await exchange.outcome()).toBe(200);
  clearInterval(timer);
  expect(performance.now() - since).toBeGreaterThan(120);
});

test('no timeout runs while the caller has paused the response', async () => {
  const exchange = new Exchange(client, server.url, { idleBodyTimeoutMs: 30 });
  const peer = await server.peer(0);
  await peer.takeRequest();
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok');
  await eventually(() => exchange.body === 'ok');
  exchange.call.pause();
  await longerThan(30);
  expect(exchange.events).not.toContain('error');
  exchange.call.resume();
  peer.send('ay');
  expect(await exchange.outcome()).toBe(200);
});

test('no timeout runs while the upstream waits for the caller', async () => {
  const exchange = new Exchange(client, server.url, { method: 'POST', bodyLength: 4, headTimeoutMs: 30 });
  exchange.call.write(Buffer.from('ab'));
  const peer = await server.peer(0);
  await longerThan(30);
  expect(exchange.events).not.toContain('error');
  exchange.call.write(Buffer.from('cd'));
  exchange.call.end();
  await peer.until((received) => received.endsWith('abcd'));
  peer.send(OK);
  expect(await exchange.outcome()).toBe(200);
});

test('a call fails when the upstream does not read its upload', async () => {
  const exchange = new Exchange(client, server.url, { method: 'POST', bodyLength: -1, headTimeoutMs: 60 });
  const peer = await server.peer(0);
  peer.socket.pause();
  while (exchange.call.write(Buffer.alloc(256 * 1024)));
  exchange.call.write(Buffer.alloc(8 * 1024 * 1024));
  expect(await exchange.outcome()).toBe('head_timeout');
  expect(exchange.call.requestSent).toBe(false);
});

test('a call does not fail while the upstream reads its upload, however slowly', async () => {
  const bodyLength = 24 * 1024 * 1024;
  const exchange = new Exchange(client, server.url, { method: 'POST', bodyLength, headTimeoutMs: 400 });
  const peer = await server.peer(0);
  peer.socket.removeAllListeners('data');
  let received = 0;
  let allowed = 0;
  peer.socket.on('data', ({ length }: Buffer) => {
    received += length;
    if (received >= allowed) peer.socket.pause();
  });
  const since = performance.now();
  const timer = setInterval(() => {
    allowed = received + 512 * 1024;
    peer.socket.resume();
  }, 25);
  exchange.call.write(Buffer.alloc(bodyLength));
  exchange.call.end();
  await eventually(() => received > bodyLength || exchange.error !== null);
  clearInterval(timer);
  expect(exchange.error).toBeNull();
  expect(performance.now() - since).toBeGreaterThan(800);
  peer.send(OK);
  expect(await exchange.outcome()).toBe(200);
});

test('a name that is not resolved in time and a service that does not accept in time are different failures', async () => {
  const stuck = newClient({ connectTimeoutMs: 50, lookup: () => new Promise(() => {}) });
  const since = performance.now();
  const exchange = new Exchange(stuck, 'http://slow.example');
  expect(await exchange.outcome()).toBe('dns_timeout');
  expect(performance.now() - since).toBeGreaterThanOrEqual(49);
  expect(exchange.error).toMatchObject({ requestStarted: false });
  expect(stuck.stats()).toMatchObject({ open: 0, origins: 0 });
});

test('a TLS handshake that is not answered fails with a connect timeout', async () => {
  const hasty = newClient({ connectTimeoutMs: 50 });
  const exchange = new Exchange(hasty, `https://127.0.0.1:${server.port}`);
  expect(await exchange.outcome()).toBe('connect_timeout');
  await (await server.peer(0)).gone();
});

test.skipIf(process.platform !== 'linux')(
  'a silent connection is probed by the operating system within a minute',
  async () => {
    const exchange = new Exchange(client, server.url);
    const peer = await server.peer(0);
    await peer.takeRequest();
    // Both ends of the connection are in this table. A line: number, local address, remote address, state, queues, timer, …
    const local = `0100007F:${(peer.socket.remotePort as number).toString(16).toUpperCase().padStart(4, '0')}`;
    const line = readFileSync('/proc/net/tcp', 'utf8')
      .split('\n')
      .map((text) => text.trim().split(/\s+/))
      // Not a former connection from the same port, which waits for its time to be up.
      .find((fields) => fields[1] === local && fields[3] === '01');
    const [kind, inTicks] = (line?.[5] ?? '').split(':');
    expect(kind).toBe('02');
    expect(Number.parseInt(inTicks as string, 16)).toBeLessThanOrEqual(6_000);
    peer.send(OK);
    await exchange.outcome();
  },
);
