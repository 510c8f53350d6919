import { describe, expect, test } from 'vitest';
import { Exchange, eventually, newClient, OK } from './helpers.ts';
import { client, server, useServer } from './use-server.ts';

useServer();

describe('the request that is sent', () => {
  test.each([
    ['GET', 0, ''],
    ['HEAD', 0, ''],
    ['DELETE', 0, ''],
    ['POST', 0, 'content-length: 0\r\n'],
    ['PUT', 0, 'content-length: 0\r\n'],
    ['PATCH', 0, 'content-length: 0\r\n'],
    ['POST', 5, 'content-length: 5\r\n'],
    ['DELETE', 5, 'content-length: 5\r\n'],
    ['POST', -1, 'transfer-encoding: chunked\r\n'],
  ])('is a %s with a body of %d', async (method, bodyLength, framing) => {
    const path = '/a%2f..//b?q=%20&\xe9';
    const exchange = new Exchange(client, server.url, {
      method,
      bodyLength,
      path,
      headerLines: 'x-a: 1\r\nX-B: \xe9\r\n',
    });
    const peer = await server.peer(0);
    const request = await peer.takeRequest();
    expect(request).toBe(
      `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1:${server.port}\r\nx-a: 1\r\nX-B: \xe9\r\n${framing}\r\n`,
    );
    exchange.call.destroy();
  });

  test('announces that trailers are welcome only if they are wanted, and delivers them', async () => {
    const exchange = new Exchange(client, server.url, { wantsTrailers: true });
    const peer = await server.peer(0);
    expect(await peer.takeRequest()).toContain('\r\nte: trailers\r\nconnection: TE\r\n');
    peer.send('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-A: 1\r\n\r\n');
    expect([await exchange.outcome(), exchange.trailers]).toEqual([200, ['X-A', '1']]);
    const next = new Exchange(client, server.url);
    expect(await peer.takeRequest()).not.toMatch(/\r\n(te|connection):/);
    peer.send('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    expect([await next.outcome(), next.trailers]).toEqual([200, []]);
  });

  test.each(['', 'a', 'http://x/', '/a b', '/a\r\nx: y', '/\u010a', '/\x7f', '/\0'])(
    'is refused with the path %j',
    (path) => {
      expect(() => new Exchange(client, server.url, { path })).toThrow('path');
      expect(client.stats()).toMatchObject({ origins: 0, open: 0 });
    },
  );

  test('contains a body of known length unchanged', async () => {
    const { call } = new Exchange(client, server.url, { method: 'POST', bodyLength: 10 });
    call.write(Buffer.from('hello'));
    call.write(Buffer.from(''));
    expect(call.requestStarted).toBe(false);
    const peer = await server.peer(0);
    await peer.until((received) => received.endsWith('\r\n\r\nhello'));
    expect(call).toMatchObject({ requestStarted: true, requestSent: false });
    call.write(Buffer.from('world'));
    call.end();
    await peer.until((received) => received.endsWith('\r\n\r\nhelloworld'));
    expect(call.requestSent).toBe(true);
    call.destroy();
    expect(call.requestSent).toBe(true);
  });

  test('has a chunked body if the length is unknown', async () => {
    const { call } = new Exchange(client, server.url, { method: 'POST', bodyLength: -1 });
    call.write(Buffer.from('hello'));
    call.write(Buffer.from(''));
    const peer = await server.peer(0);
    await peer.until((received) => received.endsWith('\r\n\r\n5\r\nhello\r\n'));
    call.write(Buffer.alloc(26, 'x'));
    call.end();
    await peer.until((received) => received.endsWith(`1a\r\n${'x'.repeat(26)}\r\n0\r\n\r\n`));
    call.destroy();
  });

  test('has only the last chunk if the body is empty and of unknown length', async () => {
    const { call } = new Exchange(client, server.url, { method: 'POST', bodyLength: -1 });
    call.end();
    const peer = await server.peer(0);
    await peer.until((received) => received.endsWith('chunked\r\n\r\n0\r\n\r\n'));
    expect(call).toMatchObject({ requestStarted: true, requestSent: true });
    call.destroy();
  });

  test("keeps the caller's chunk even if the caller overwrites it as soon as write returns", async () => {
    const { call } = new Exchange(client, server.url, { method: 'POST', bodyLength: 6 });
    const chunk = Buffer.from('abc');
    call.write(chunk);
    chunk.fill('?');
    const peer = await server.peer(0);
    await peer.until((received) => received.endsWith('abc'));
    chunk.write('def');
    call.write(chunk);
    chunk.fill('?');
    await peer.until((received) => received.endsWith('abcdef'));
    call.destroy();
  });

  test('has exactly the declared length: a longer or shorter body throws, as a programming error', async () => {
    const { call } = new Exchange(client, server.url, { method: 'POST', bodyLength: 3 });
    expect(() => call.end()).toThrow('less body');
    expect(() => call.write(Buffer.from('abcd'))).toThrow('more body');
    call.destroy();
    const bodyless = new Exchange(client, server.url);
    expect(() => bodyless.call.write(Buffer.from('a'))).toThrow('body');
    bodyless.call.destroy();
  });
});

describe('the response', () => {
  async function answer(wire: string, options = {}) {
    const exchange = new Exchange(client, server.url, options);
    const peer = await server.peer(server.peers.length);
    await peer.takeRequest();
    peer.send(wire);
    return { exchange, peer };
  }

  test('is reported as head, data, end', async () => {
    const { exchange } = await answer('HTTP/1.1 201 Made\r\nX-A: b\r\nContent-Length: 2\r\n\r\nok');
    expect(await exchange.outcome()).toBe(201);
    expect(exchange.head).toMatchObject({
      headers: ['X-A', 'b', 'Content-Length', '2'],
      contentLength: 2,
      hasBody: true,
    });
    expect(exchange.body).toBe('ok');
    expect(exchange.events).toEqual(['head', 'data', 'end']);
  });

  test('to HEAD has no body, whatever its head declares', async () => {
    const { exchange } = await answer('HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n', { method: 'HEAD' });
    expect(await exchange.outcome()).toBe(200);
    expect(exchange.head).toMatchObject({ contentLength: 99, hasBody: false });
    expect(client.stats()).toMatchObject({ idle: 1 });
  });

  test('ends with the connection if it has no length', async () => {
    const { exchange, peer } = await answer('HTTP/1.1 200 OK\r\n\r\nall of it');
    await eventually(() => exchange.body === 'all of it');
    expect(exchange.events).not.toContain('end');
    peer.socket.end();
    expect(await exchange.outcome()).toBe(200);
    expect(client.stats()).toMatchObject({ open: 0 });
  });

  test('is cut, not ended, by a reset if it has no length', async () => {
    const { exchange, peer } = await answer('HTTP/1.1 200 OK\r\n\r\nall of it');
    await eventually(() => exchange.body === 'all of it');
    peer.socket.resetAndDestroy();
    expect(await exchange.outcome()).toBe('reset');
    expect(exchange.error).toMatchObject({ headReceived: true, requestStarted: true });
  });

  test.each([
    ['a known length', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'],
    ['chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n'],
    ['chunks, but for the last line', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\n'],
    ['a head', 'HTTP/1.1 200 OK\r\nContent-'],
    ['nothing', ''],
  ])('that ends in the middle of %s is an error', async (_name, wire) => {
    const { exchange, peer } = await answer(wire);
    peer.socket.end();
    expect(await exchange.outcome()).toBe('reset');
    expect(exchange.error?.headReceived).toBe(wire.includes('\r\n\r\n'));
    expect(exchange.events).not.toContain('end');
  });

  test('that is malformed is an error, and its connection is closed', async () => {
    const { exchange, peer } = await answer('HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello');
    expect(await exchange.outcome()).toBe('malformed_response');
    expect(exchange.events).toEqual(['error']);
    await peer.gone();
  });

  test('may follow interim responses', async () => {
    const { exchange } = await answer(`HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n${OK}`);
    expect(await exchange.outcome()).toBe(200);
    expect(exchange.events).toEqual(['head', 'data', 'end']);
  });

  test('is not reported after destroy, not even after a destroy from within a callback', async () => {
    for (const event of ['onHead', 'onData'] as const) {
      const exchange = new Exchange(client, server.url);
      const original = exchange[event].bind(exchange) as (argument: never) => void;
      exchange[event] = (argument: unknown) => {
        original(argument as never);
        exchange.call.destroy();
      };
      const peer = await server.peer(server.peers.length);
      await peer.takeRequest();
      peer.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n2\r\nok\r\n0\r\n\r\n');
      await peer.gone();
      expect(exchange.events).toEqual(event === 'onHead' ? ['head'] : ['head', 'data']);
    }
  });

  test('makes every later method call do nothing once the response is complete', async () => {
    const { exchange } = await answer(OK);
    await exchange.outcome();
    const { call } = exchange;
    call.pause();
    call.resume();
    call.end();
    expect(call.write(Buffer.from('x'))).toBe(true);
    call.destroy();
    expect(client.stats()).toMatchObject({ idle: 1 });
    expect(exchange.events).toEqual(['head', 'data', 'end']);
  });
});

test('dispatch makes no callback before it returns', async () => {
  const refusing = newClient({ allowCidrs: [] });
  const forbidden = new Exchange(refusing, server.url);
  expect(forbidden.events).toEqual([]);
  expect(await forbidden.outcome()).toBe('address_forbidden');
  await refusing.close();
  const late = new Exchange(refusing, server.url);
  expect(late.events).toEqual([]);
  expect(await late.outcome()).toBe('busy');
});

test('an exception in a handler reaches the process, and does not affect any other call', async () => {
  const listeners = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  const caught: unknown[] = [];
  process.on('uncaughtException', (error) => caught.push(error));
  try {
    const bad = new Exchange(client, server.url);
    bad.onHead = () => {
      throw new Error('oops');
    };
    const good = new Exchange(client, server.url);
    for (const index of [0, 1]) {
      const peer = await server.peer(index);
      await peer.takeRequest();
      peer.send(OK);
    }
    expect(await good.outcome()).toBe(200);
    await eventually(() => caught.length > 0);
    expect(caught).toMatchObject([{ message: 'oops' }]);
    expect(bad.events).toEqual([]);
    expect(client.stats()).toMatchObject({ open: 1, idle: 1 });
  } finally {
    process.removeAllListeners('uncaughtException');
    for (const listener of listeners) process.on('uncaughtException', listener);
  }
});
