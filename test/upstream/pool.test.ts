import { afterEach, beforeEach, expect, test } from 'vitest';
import { Destination, parseEndpoint, type UpstreamClient } from '../../src/upstream/index.ts';
import { Exchange, eventually, newClient, OK, type RawServer, type RequestOptions, rawServer } from './helpers.ts';

let server: RawServer;
let client: UpstreamClient;

beforeEach(async () => {
  server = await rawServer();
});
afterEach(async () => {
  await client.close();
  await server.close();
});

/** Starts `count` calls, and waits until the `reaching` requests that can reach the server have arrived. */
async function start(count: number, reaching: number, options: RequestOptions = {}): Promise<Exchange[]> {
  const exchanges = Array.from({ length: count }, () => new Exchange(client, server.url, options));
  for (let index = 0; index < reaching; index++) {
    const peer = await server.peer(index);
    await peer.until((received) => received.includes('\r\n\r\n'));
  }
  return exchanges;
}

async function answer(index: number): Promise<void> {
  const peer = await server.peer(index);
  await peer.takeRequest();
  peer.send(OK);
}

test('connections to an origin are bounded; further calls wait in order, and fail as busy when the line is full', async () => {
  client = newClient({ maxConnectionsPerOrigin: 2, maxWaitingPerOrigin: 2 });
  const destination = new Destination(parseEndpoint(server.url).origin);
  expect(destination.isFullFor('a')).toBe(false);
  const exchanges = await start(5, 2, { destination });
  expect(client.stats()).toMatchObject({ open: 2, active: 2, waiting: 2 });
  expect(destination.isFullFor('a')).toBe(true);
  expect(await exchanges[4]?.outcome()).toBe('busy');
  expect(exchanges[4]?.error).toMatchObject({ requestStarted: false, headReceived: false });
  await answer(0);
  await exchanges[0]?.outcome();
  expect(destination.isFullFor('a')).toBe(false);
  await answer(0);
  expect(await exchanges[2]?.outcome()).toBe(200);
  expect(exchanges[3]?.events).toEqual([]);
  await answer(0);
  expect(await exchanges[3]?.outcome()).toBe(200);
  await answer(1);
  expect(await exchanges[1]?.outcome()).toBe(200);
  expect(server.peers.length).toBe(2);
  expect(client.stats()).toMatchObject({ open: 2, idle: 2, waiting: 0 });
});

test('a call does not wait longer than its limit', async () => {
  client = newClient({ maxConnectionsPerOrigin: 1, maxWaitMs: 30 });
  const [first, second] = await start(2, 1);
  expect(await second?.outcome()).toBe('busy');
  await answer(0);
  expect(await first?.outcome()).toBe(200);
});

test('a call that is given up while it waits leaves the line', async () => {
  client = newClient({ maxConnectionsPerOrigin: 1 });
  const [first, second, third] = await start(3, 1);
  second?.call.destroy();
  expect(client.stats()).toMatchObject({ waiting: 1 });
  await answer(0);
  await first?.outcome();
  await answer(0);
  expect(await third?.outcome()).toBe(200);
  expect(second?.events).toEqual([]);
});

test('a call that is given up while it connects leaves its connection to others', async () => {
  client = newClient({ maxConnectionsPerOrigin: 1 });
  const first = new Exchange(client, server.url);
  const second = new Exchange(client, server.url);
  first.call.destroy();
  await answer(0);
  expect(await second.outcome()).toBe(200);
  expect(first.events).toEqual([]);
});

test('a body that is written while its call waits is sent later, and then the caller is told to continue', async () => {
  client = newClient({ maxConnectionsPerOrigin: 1 });
  const [first] = await start(1, 1);
  const second = new Exchange(client, server.url, { method: 'POST', bodyLength: 10 });
  expect(second.call.write(Buffer.from('hello'))).toBe(false);
  const { promise: writable } = second.writable;
  await answer(0);
  await first?.outcome();
  await writable;
  second.call.write(Buffer.from('world'));
  second.call.end();
  const peer = await server.peer(0);
  await peer.until((received) => received.endsWith('helloworld'));
  peer.send(OK);
  expect(await second.outcome()).toBe(200);
});

test('a closed connection makes room for the next waiting call', async () => {
  client = newClient({ maxConnectionsPerOrigin: 1 });
  const [first, second] = await start(2, 1);
  server.peers[0]?.socket.end();
  expect(await first?.outcome()).toBe('reset');
  await answer(1);
  expect(await second?.outcome()).toBe(200);
});

test('origins without a connection are forgotten, and idle connections over all origins are bounded', async () => {
  client = newClient({ maxIdleConnections: 2, lookup: async () => [{ address: '127.0.0.1', family: 4 }] });
  for (let host = 1; host <= 4; host++) {
    const exchange = new Exchange(client, `http://h${host}.example:${server.port}`);
    await answer(host - 1);
    expect(await exchange.outcome()).toBe(200);
  }
  expect(client.stats()).toMatchObject({ origins: 2, open: 2, idle: 2 });
  await server.peers[0]?.gone();
  await server.peers[1]?.gone();
  expect(server.peers[2]?.isGone).toBe(false);
});

test('connections over all origins are bounded: idle ones are closed, then calls wait for their own origin or fail as busy', async () => {
  client = newClient({ maxConnections: 2, lookup: async () => [{ address: '127.0.0.1', family: 4 }] });
  const url = (host: number): string => `http://h${host}.example:${server.port}`;
  const first = new Exchange(client, url(1));
  await answer(0);
  expect(await first.outcome()).toBe(200);
  const second = new Exchange(client, url(2));
  const third = new Exchange(client, url(3));
  await (await server.peer(0)).gone();
  expect(await new Exchange(client, url(4)).outcome()).toBe('busy');
  expect(client.stats()).toMatchObject({ origins: 2, open: 2, active: 2 });
  const next = new Exchange(client, url(2));
  expect(client.stats().waiting).toBe(1);
  await answer(1);
  await answer(1);
  expect([await second.outcome(), await next.outcome()]).toEqual([200, 200]);
  await answer(2);
  expect(await third.outcome()).toBe(200);
});

test('without a line, a destination is full exactly while all its connections are in use', async () => {
  client = newClient({ maxConnectionsPerOrigin: 1, maxWaitingPerOrigin: 0 });
  const destination = new Destination(parseEndpoint(server.url).origin);
  const [exchange] = await start(1, 1, { destination });
  expect(destination.isFullFor('a')).toBe(true);
  await answer(0);
  expect(await exchange?.outcome()).toBe(200);
  expect(client.stats().idle).toBe(1);
  expect(destination.isFullFor('a')).toBe(false);
});

test('all connections of one origin stay open after a burst has ended', async () => {
  const burst = 1_100;
  const answering = await rawServer(async (peer) => {
    for (;;) {
      await peer.takeRequest();
      peer.send(OK);
    }
  });
  client = newClient({ maxConnectionsPerOrigin: burst });
  for (let round = 0; round < 2; round++) {
    // From many accounts: one alone may not have all connections.
    const exchanges = Array.from(
      { length: burst },
      (_, i) => new Exchange(client, answering.url, { account: `a${i}` }),
    );
    for (const exchange of exchanges) expect(await exchange.outcome()).toBe(200);
  }
  // The connections of the first burst serve the second one.
  expect(client.stats()).toMatchObject({ open: answering.peers.length, idle: answering.peers.length });
  expect(answering.peers.length).toBeLessThanOrEqual(burst);
  await client.close();
  await answering.close();
});

test('close waits for calls under way, accepts no new calls, and closes idle connections', async () => {
  client = newClient();
  const [idle, busy] = await start(2, 2);
  await answer(0);
  await idle?.outcome();
  const closed = client.close();
  await server.peers[0]?.gone();
  expect(await new Exchange(client, server.url).outcome()).toBe('busy');
  expect(client.stats()).toMatchObject({ open: 1, active: 1 });
  await answer(1);
  expect(await busy?.outcome()).toBe(200);
  await closed;
  expect(client.stats()).toEqual({ origins: 0, open: 0, connecting: 0, idle: 0, active: 0, waiting: 0 });
});

test('close lets waiting calls finish', async () => {
  client = newClient({ maxConnectionsPerOrigin: 1 });
  const [first, second] = await start(2, 1);
  const closed = client.close();
  await answer(0);
  expect(await first?.outcome()).toBe(200);
  await answer(0);
  expect(await second?.outcome()).toBe(200);
  await closed;
});

test('the addresses of a name are tried in order', async () => {
  const lookup = async () => [
    { address: '127.0.0.2', family: 4 },
    { address: '127.0.0.1', family: 4 },
  ];
  client = newClient({ lookup });
  const exchange = new Exchange(client, `http://two.example:${server.port}`);
  await answer(0);
  expect(await exchange.outcome()).toBe(200);
});

test.each([
  ['connect_failed', async () => [{ address: '127.0.0.2', family: 4 }]],
  ['address_forbidden', async () => [{ address: '10.0.0.1', family: 4 }]],
  ['dns_failed', async () => Promise.reject(new Error('ENOTFOUND'))],
])('%s makes only the call fail for which the connection was made', async (code, lookup) => {
  client = newClient({ lookup, maxConnectionsPerOrigin: 2 });
  const exchanges = Array.from({ length: 4 }, () => new Exchange(client, `http://down.example:${server.port}`));
  for (const exchange of exchanges) {
    expect(await exchange.outcome()).toBe(code);
    expect(exchange.error).toMatchObject({ requestStarted: false, headReceived: false });
  }
  await eventually(() => client.stats().origins === 0);
});

test('destinations with the same key share connections, even as different objects; destinations with other keys do not', async () => {
  client = newClient({ maxConnectionsPerOrigin: 1, maxWaitingPerOrigin: 0 });
  const { origin } = parseEndpoint(server.url);
  const [listed, listedAgain, other] = [
    new Destination(origin, 'a'),
    new Destination(origin, 'a'),
    new Destination(origin, 'b'),
  ];
  const call = (destination: Destination) => new Exchange(client, server.url, { destination });
  const first = call(listed);
  await (await server.peer(0)).until((received) => received.includes('\r\n\r\n'));
  expect(await call(listedAgain).outcome()).toBe('busy');
  expect(await call(listed).outcome()).toBe('busy');
  const second = call(other);
  await answer(0);
  await answer(1);
  expect([await first.outcome(), await second.outcome()]).toEqual([200, 200]);

  // Their pool goes when its last connection closes. The two destinations share the next pool again.
  (await server.peer(0)).socket.destroy();
  await eventually(() => client.stats().open === 1);
  const third = call(listedAgain);
  await (await server.peer(2)).until((received) => received.includes('\r\n\r\n'));
  expect(await call(listed).outcome()).toBe('busy');
  await answer(2);
  expect(await third.outcome()).toBe(200);
});
