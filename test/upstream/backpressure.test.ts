import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { Exchange, eventually, OK, patternBytes } from './helpers.ts';
import { client, server, useServer } from './use-server.ts';

useServer();

const BODY = patternBytes(6 * 1024 * 1024 + 12_345);
const sha256 = (...parts: Uint8Array[]) =>
  parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest('hex');
const CHECKSUM = sha256(BODY);

/** The body in chunks of odd sizes, from 1 octet to 200 KB. */
function chunked(body: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0, size = 1; at < body.length; at += size, size = (size * 7 + 3) % 200_000) {
    const chunk = body.subarray(at, at + size);
    parts.push(Buffer.from(`${chunk.length.toString(16)};n=${at}\r\n`), chunk, Buffer.from('\r\n'));
  }
  return Buffer.concat([...parts, Buffer.from('0\r\nX-Sum: 1\r\n\r\n')]);
}

const DOWNLOADS: [framing: string, head: string, wire: Buffer][] = [
  ['known length', `Content-Length: ${BODY.length}\r\n`, BODY],
  ['chunks', 'Transfer-Encoding: chunked\r\n', chunked(BODY)],
  ['the end of the connection', '', BODY],
];

describe('a caller that pauses often gets every octet of a body framed by', () => {
  test.each(DOWNLOADS)('%s', async (_framing, head, wire) => {
    const exchange = new Exchange(client, server.url);
    const hash = createHash('sha256');
    let isPaused = false;
    let reads = 0;
    exchange.onChunk = (chunk) => {
      expect(isPaused, 'data while paused').toBe(false);
      hash.update(chunk);
      // Pauses irregularly, and often in the middle of a read with many chunks.
      if (++reads % 3 !== 0) return;
      isPaused = true;
      exchange.call.pause();
      const resume = () => {
        isPaused = false;
        exchange.call.resume();
      };
      if (reads % 2 === 0) setImmediate(resume);
      else queueMicrotask(resume);
    };
    const peer = await server.peer(0);
    await peer.takeRequest();
    peer.send(`HTTP/1.1 200 OK\r\n${head}\r\n`);
    peer.send(wire);
    if (head === '') peer.socket.end();
    expect(await exchange.outcome()).toBe(200);
    expect(hash.digest('hex')).toBe(CHECKSUM);
    expect(client.stats()).toMatchObject({ idle: head === '' ? 0 : 1 });
  });
});

describe('while a call is paused', () => {
  async function download(wire: string | Buffer) {
    const exchange = new Exchange(client, server.url);
    const peer = await server.peer(0);
    await peer.takeRequest();
    peer.send(wire);
    return { exchange, peer };
  }

  test('the socket is not read, so the upstream has to wait', async () => {
    const { exchange, peer } = await download(`HTTP/1.1 200 OK\r\nContent-Length: ${64 * 1024 * 1024}\r\n\r\n`);
    await exchange.headed.promise;
    exchange.call.pause();
    peer.send(Buffer.alloc(64 * 1024 * 1024));
    let left = -1;
    await eventually(() => {
      const isSteady = left === peer.socket.writableLength && left > 0;
      left = peer.socket.writableLength;
      return isSteady;
    });
    // The socket buffers of both ends take 48 MiB at most; the rest stays with the upstream.
    expect(left).toBeGreaterThan(16 * 1024 * 1024);
    expect(exchange.events).toEqual(['head']);
    exchange.call.destroy();
    await peer.gone();
  });

  test('neither data nor the end is delivered, even if both have been read', async () => {
    const exchange = new Exchange(client, server.url);
    exchange.onHead = () => exchange.call.pause();
    const peer = await server.peer(0);
    await peer.takeRequest();
    peer.send(OK);
    // A later call on another connection has ended by now, so the paused call had enough time to be delivered.
    const other = new Exchange(client, server.url);
    const otherPeer = await server.peer(1);
    await otherPeer.takeRequest();
    otherPeer.send(OK);
    await other.outcome();
    expect(exchange.events).toEqual([]);
    exchange.call.resume();
    expect(exchange.events).toEqual([]);
    await exchange.ended.promise;
    expect(exchange.events).toEqual(['data', 'end']);
    expect(client.stats()).toMatchObject({ idle: 2 });
  });

  test('at the last octet, the connection is not free until resume; then it can be used again', async () => {
    const exchange = new Exchange(client, server.url);
    exchange.onChunk = () => exchange.call.pause();
    const peer = await server.peer(0);
    await peer.takeRequest();
    peer.send(OK);
    await eventually(() => exchange.events.includes('data'));
    expect(client.stats()).toMatchObject({ active: 1, idle: 0 });
    exchange.call.resume();
    expect(await exchange.outcome()).toBe(200);
    expect(client.stats()).toMatchObject({ active: 0, idle: 1 });
    const next = new Exchange(client, server.url);
    await peer.takeRequest();
    peer.send(OK);
    expect(await next.outcome()).toBe(200);
  });

  test("the upstream's end of the connection loses no data", async () => {
    const body = BODY.subarray(0, 100_000);
    const { exchange, peer } = await download('HTTP/1.1 200 OK\r\n\r\n');
    await exchange.headed.promise;
    exchange.call.pause();
    peer.send(body);
    peer.socket.end();
    await new Promise((resolve) => peer.socket.once('finish', resolve));
    expect(exchange.events).toEqual(['head']);
    exchange.call.resume();
    expect(await exchange.outcome()).toBe(200);
    expect(sha256(...exchange.chunks)).toBe(sha256(body));
  });

  test('a complete response can be read, but its connection, which the upstream has ended, is not used again', async () => {
    const exchange = new Exchange(client, server.url);
    exchange.onChunk = () => exchange.call.pause();
    const peer = await server.peer(0);
    await peer.takeRequest();
    peer.socket.end(OK);
    await eventually(() => exchange.events.includes('data'));
    exchange.call.resume();
    expect(await exchange.outcome()).toBe(200);
    await eventually(() => client.stats().open === 0);
  });

  test('a reset is reported, at the latest after resume', async () => {
    const { exchange, peer } = await download('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok');
    await eventually(() => exchange.body === 'ok');
    exchange.call.pause();
    peer.socket.resetAndDestroy();
    await eventually(() => peer.socket.closed);
    exchange.call.resume();
    expect(await exchange.outcome()).toBe('reset');
  });

  test('the call can be given up', async () => {
    const { exchange, peer } = await download('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok');
    await eventually(() => exchange.body === 'ok');
    exchange.call.pause();
    exchange.call.destroy();
    await peer.gone();
    expect(client.stats()).toMatchObject({ open: 0 });
  });

  test('the call can be paused before it has a connection', async () => {
    const exchange = new Exchange(client, server.url);
    exchange.call.pause();
    const peer = await server.peer(0);
    await peer.takeRequest();
    peer.send(OK);
    const other = new Exchange(client, server.url);
    const otherPeer = await server.peer(1);
    await otherPeer.takeRequest();
    otherPeer.send(OK);
    await other.outcome();
    expect(exchange.events).toEqual([]);
    exchange.call.resume();
    expect(await exchange.outcome()).toBe(200);
  });
});

describe('a slow upstream gets every octet of a body', () => {
  test.each([
    ['of known length', BODY.length],
    ['of unknown length', -1],
  ])('%s', async (_name, bodyLength) => {
    const exchange = new Exchange(client, server.url, { method: 'POST', bodyLength });
    const peer = await server.peer(0);
    peer.socket.pause();
    // Writes as the HTTP edge does: from one buffer that is refilled for each chunk, in odd sizes, stopping when `write` says so.
    const memory = Buffer.alloc(300_000);
    let writes = 0;
    let stops = 0;
    for (let at = 0, size = 1; at < BODY.length; at += size, size = (size * 5 + 11) % 300_000) {
      const chunk = memory.subarray(0, Math.min(size, BODY.length - at));
      BODY.copy(chunk, 0, at);
      writes++;
      const hasRoom = exchange.call.write(chunk);
      memory.fill(0);
      if (hasRoom) continue;
      stops++;
      setImmediate(() => peer.socket.resume());
      await exchange.writable.promise;
      if (stops % 2 === 0) peer.socket.pause();
    }
    expect(stops).toBeGreaterThan(1);
    expect(stops).toBeLessThan(writes);
    expect(exchange.events).toEqual(Array(stops).fill('writable'));
    peer.socket.resume();
    exchange.call.end();
    const ending = bodyLength < 0 ? '\r\n0\r\n\r\n' : '';
    await peer.until((received) => received.length > BODY.length && received.endsWith(ending));
    await eventually(() => exchange.call.requestSent);
    const start = peer.received.indexOf('\r\n\r\n') + 4;
    const wire = Buffer.from(peer.received.slice(start), 'latin1');
    expect(sha256(bodyLength < 0 ? dechunked(wire) : wire)).toBe(CHECKSUM);
    peer.received = '';
    peer.send(OK);
    expect(await exchange.outcome()).toBe(200);
    expect(client.stats()).toMatchObject({ idle: 1 });
  });
});

test('uploads that stall at the same time do not get mixed up', async () => {
  const bodies = [1, 2, 3].map((seed) => patternBytes(8 * 1024 * 1024, seed));
  const exchanges = bodies.map(
    ({ length }) => new Exchange(client, server.url, { method: 'POST', bodyLength: length }),
  );
  const peers = await Promise.all(exchanges.map((_, index) => server.peer(index)));
  await Promise.all(peers.map((peer) => peer.takeRequest()));
  for (const { socket } of peers) socket.pause();
  // Chunks of 60 000 octets are large enough for the scratch buffer, which all uploads share while the kernel takes all of it.
  for (let at = 0; at < 8 * 1024 * 1024; at += 60_000) {
    for (const [index, { call }] of exchanges.entries()) call.write(bodies[index]?.subarray(at, at + 60_000) as Buffer);
  }
  const received = peers.map(() => [] as Buffer[]);
  for (const [index, { socket }] of peers.entries()) {
    socket.on('data', (chunk: Buffer) => received[index]?.push(chunk));
    socket.resume();
  }
  await eventually(() => exchanges.every(({ call }) => call.requestSent));
  const lengthOf = (chunks: Buffer[]) => chunks.reduce((sum, { length }) => sum + length, 0);
  await eventually(() => received.every((chunks) => lengthOf(chunks) === 8 * 1024 * 1024));
  // The order in which connections are made is not certain.
  expect(received.map((chunks) => sha256(...chunks)).sort()).toEqual(bodies.map((body) => sha256(body)).sort());
  for (const { call } of exchanges) call.destroy();
});

function dechunked(wire: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = wire.indexOf('\r\n', at);
    const size = Number.parseInt(wire.toString('latin1', at, lineEnd), 16);
    if (size === 0) return Buffer.concat(parts);
    parts.push(wire.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 4 + size;
  }
}
