import { describe, expect, test, vi } from 'vitest';
import { Exchange, eventually, newClient, OK, type Peer } from './helpers.ts';
import { client, server, useServer } from './use-server.ts';

useServer();

/** Makes one call on the connection with this number, and answers it with these octets. */
async function exchangeOn(index: number, wire: string, options = {}): Promise<Peer> {
  const exchange = new Exchange(client, server.url, options);
  const peer = await server.peer(index);
  await peer.takeRequest();
  peer.send(wire);
  expect(await exchange.outcome()).toBe(200);
  return peer;
}

describe('a connection is used again after', () => {
  test.each([
    ['a known length', OK],
    ['a length of 0', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'],
    ['chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n'],
    ['chunks and trailers', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA: b\r\n\r\n'],
    ['HTTP/1.0 with keep-alive', 'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok'],
    ['a long enough Keep-Alive', 'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=60\r\nContent-Length: 0\r\n\r\n'],
  ])('%s', async (_name, wire) => {
    await exchangeOn(0, wire);
    await exchangeOn(0, wire);
    expect(server.peers.length).toBe(1);
    expect(client.stats()).toMatchObject({ open: 1, idle: 1 });
  });
});

describe('a connection is closed after', () => {
  test.each([
    ['Connection: close', 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok'],
    ['HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok'],
    ['octets behind a known length', `${OK}x`],
    ['a second response', `${OK}${OK}`],
    ['octets behind the last chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n\r\n'],
    [
      'a Keep-Alive that is too short to count on',
      'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\nok',
    ],
  ])('%s, and the response is delivered', async (_name, wire) => {
    const peer = await exchangeOn(0, wire);
    expect(client.stats()).toMatchObject({ open: 0, origins: 0 });
    await peer.gone();
    await exchangeOn(1, OK);
  });

  test('a response to HEAD that has a body', async () => {
    await exchangeOn(0, OK, { method: 'HEAD' });
    expect(client.stats()).toMatchObject({ open: 0 });
  });

  test('octets that arrive while it is idle', async () => {
    const peer = await exchangeOn(0, OK);
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil');
    await eventually(() => client.stats().open === 0);
    await exchangeOn(1, OK);
  });

  test('the upstream has ended it while it was idle', async () => {
    const peer = await exchangeOn(0, OK);
    peer.socket.end();
    await eventually(() => client.stats().open === 0);
    await exchangeOn(1, OK);
  });

  test('its idle time', async () => {
    const brief = newClient({ keepAliveMs: 40 });
    const exchange = new Exchange(brief, server.url);
    const peer = await server.peer(0);
    await peer.takeRequest();
    peer.send(OK);
    await exchange.outcome();
    expect(brief.stats()).toMatchObject({ idle: 1 });
    const since = performance.now();
    await peer.gone();
    expect(performance.now() - since).toBeGreaterThanOrEqual(39);
    expect(brief.stats()).toMatchObject({ open: 0, origins: 0 });
  });

  test('a call that its caller has given up', async () => {
    const exchange = new Exchange(client, server.url);
    const peer = await server.peer(0);
    await peer.takeRequest();
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok');
    await eventually(() => exchange.body === 'ok');
    exchange.call.destroy();
    await peer.gone();
    expect(exchange.events).toEqual(['head', 'data']);
  });
});

test('the most recently used connection is used first', async () => {
  const exchanges = [0, 1, 2].map(() => new Exchange(client, server.url));
  for (const index of [0, 1, 2]) await (await server.peer(index)).takeRequest();
  for (const index of [2, 0, 1]) {
    server.peers[index]?.send(OK);
    await eventually(() => exchanges.some(({ body }) => body === 'ok'));
    await eventually(() => client.stats().idle === [2, 0, 1].indexOf(index) + 1);
  }
  await exchangeOn(1, OK);
  await exchangeOn(1, OK);
});

describe('a response that comes before the end of the request', () => {
  async function early(wire: string) {
    const exchange = new Exchange(client, server.url, { method: 'POST', bodyLength: 10 });
    exchange.call.write(Buffer.from('hello'));
    const peer = await server.peer(0);
    await peer.until((received) => received.endsWith('hello'));
    peer.received = '';
    peer.send(wire);
    return { exchange, peer };
  }

  test('is delivered, and its connection is closed', async () => {
    const { exchange, peer } = await early('HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno');
    expect(await exchange.outcome()).toBe(413);
    expect(exchange.body).toBe('no');
    expect(exchange.call.requestSent).toBe(false);
    expect(exchange.call.write(Buffer.from('world'))).toBe(true);
    exchange.call.end();
    await peer.gone();
    expect(client.stats()).toMatchObject({ open: 0 });
  });

  test('does not stop the caller from sending the rest', async () => {
    const { exchange, peer } = await early('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok');
    await eventually(() => exchange.body === 'ok');
    exchange.call.write(Buffer.from('world'));
    exchange.call.end();
    await peer.until((received) => received === 'world');
    peer.send('ay');
    expect(await exchange.outcome()).toBe(200);
    expect(exchange.body).toBe('okay');
    expect(client.stats()).toMatchObject({ idle: 1 });
  });

  test('stops the upload if it is an error that closes the connection (RFC 9112, 9.6)', async () => {
    const { exchange, peer } = await early('HTTP/1.1 401 No\r\nConnection: close\r\nContent-Length: 4\r\n\r\nno');
    await eventually(() => exchange.body === 'no');
    expect(exchange.call.write(Buffer.from('world'))).toBe(true);
    exchange.call.end();
    peer.send('pe');
    expect(await exchange.outcome()).toBe(401);
    expect(exchange.call.requestSent).toBe(false);
    await peer.gone();
    expect(peer.received).toBe('');
  });
});

describe('a reused connection that turns out to be dead', () => {
  /** Leaves one idle connection to the server. */
  async function warm(): Promise<Peer> {
    return exchangeOn(0, OK);
  }

  test.each(['GET', 'HEAD', 'PUT', 'DELETE'])('is replaced once for %s', async (method) => {
    const stale = await warm();
    const exchange = new Exchange(client, server.url, { method });
    await stale.takeRequest();
    stale.socket.end();
    const fresh = await server.peer(1);
    await fresh.takeRequest();
    fresh.send(method === 'HEAD' ? 'HTTP/1.1 200 OK\r\n\r\n' : OK);
    expect(await exchange.outcome()).toBe(200);
    expect(exchange.events.filter((event) => event !== 'data')).toEqual(['head', 'end']);
  });

  test('leaves its request unsent while the new connection is being opened', async () => {
    const lookup = vi.fn(async () => [{ address: '127.0.0.1', family: 4 }]);
    const named = newClient({ lookup });
    const url = `http://a.example:${server.port}`;
    const first = new Exchange(named, url);
    const stale = await server.peer(0);
    await stale.takeRequest();
    stale.send(OK);
    expect(await first.outcome()).toBe(200);
    // From now on, a new connection needs a look-up, which never ends.
    lookup.mockReturnValue(new Promise(() => {}));
    const now = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 120_000);
    try {
      const exchange = new Exchange(named, url);
      await stale.takeRequest();
      expect(exchange.call.requestSent).toBe(true);
      stale.socket.end();
      await stale.gone();
      expect(lookup).toHaveBeenCalledTimes(2);
      expect(exchange.call.requestSent).toBe(false);
      exchange.call.destroy();
    } finally {
      now.mockRestore();
    }
  });

  test('is also replaced after a reset', async () => {
    const stale = await warm();
    const exchange = new Exchange(client, server.url);
    await stale.takeRequest();
    stale.socket.resetAndDestroy();
    const fresh = await server.peer(1);
    await fresh.takeRequest();
    fresh.send(OK);
    expect(await exchange.outcome()).toBe(200);
  });

  test('is not replaced a second time', async () => {
    const stale = await warm();
    const exchange = new Exchange(client, server.url);
    await stale.takeRequest();
    stale.socket.end();
    const fresh = await server.peer(1);
    await fresh.takeRequest();
    fresh.socket.end();
    expect(await exchange.outcome()).toBe('reset');
    expect(server.peers.length).toBe(2);
  });

  test.each(['POST', 'PATCH'])('is not replaced for %s: the upstream may have acted on it', async (method) => {
    const stale = await warm();
    const exchange = new Exchange(client, server.url, { method });
    await stale.takeRequest();
    stale.socket.end();
    expect(await exchange.outcome()).toBe('reset');
    expect(exchange.error).toMatchObject({ requestStarted: true, headReceived: false });
    expect(server.peers.length).toBe(1);
  });

  test('is not replaced once a part of a body was sent', async () => {
    const stale = await warm();
    const exchange = new Exchange(client, server.url, { method: 'PUT', bodyLength: 5 });
    exchange.call.write(Buffer.from('he'));
    await stale.until((received) => received.endsWith('he'));
    stale.socket.end();
    expect(await exchange.outcome()).toBe('reset');
    expect(server.peers.length).toBe(1);
  });

  test('is not replaced once a part of the response has arrived', async () => {
    const stale = await warm();
    const exchange = new Exchange(client, server.url);
    await stale.takeRequest();
    stale.send('HTTP');
    stale.socket.end();
    expect(await exchange.outcome()).toBe('reset');
    expect(server.peers.length).toBe(1);
  });

  test('is replaced even for POST if it was reset before the request, because nothing was sent', async () => {
    const stale = await warm();
    // The reset reaches the client's kernel now, but the client has not heard of it when it sends the request.
    stale.socket.resetAndDestroy();
    await new Promise<void>((resolve) => setImmediate(() => resolve()));
    const exchange = new Exchange(client, server.url, { method: 'POST', bodyLength: 5 });
    exchange.call.write(Buffer.from('hello'));
    exchange.call.end();
    const fresh = await server.peer(1);
    await fresh.until((received) => received.endsWith('hello'));
    fresh.send(OK);
    expect(await exchange.outcome()).toBe(200);
  });

  test('a first connection is never replaced', async () => {
    const exchange = new Exchange(client, server.url);
    const peer = await server.peer(0);
    await peer.takeRequest();
    peer.socket.end();
    expect(await exchange.outcome()).toBe('reset');
    expect(server.peers.length).toBe(1);
  });
});
