import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Authority } from './certificates.ts';
import { Exchange, newClient, patternBytes } from './helpers.ts';

/*
 * All connections of the process read into one buffer. Here many connections carry different octets at the same time, in every
 * framing, with pauses in between. If one overwrote octets of another, a body would differ.
 */

function answer(request: IncomingMessage, response: ServerResponse): void {
  const number = Number(request.url?.slice(1));
  const body = bodyOf(number);
  if (number % 2 === 0) response.setHeader('content-length', body.length);
  // Sends the body in pieces, so that reads of different connections interleave.
  let at = 0;
  const next = () => {
    const end = at + 1 + ((at + number) % 9_000);
    response.write(body.subarray(at, end));
    at = end;
    if (at < body.length) setImmediate(next);
    else response.end();
  };
  next();
}

function bodyOf(number: number): Buffer {
  return patternBytes(20_000 + ((number * 7_919) % 180_000), number + 1);
}

let authority: Authority;
beforeAll(() => {
  authority = new Authority();
});
afterAll(() => authority.remove());

test.each(['http', 'https'])('interleaved %s traffic on many connections does not get mixed up', async (scheme) => {
  const server =
    scheme === 'http' ? createServer(answer) : createTlsServer({ ...authority.issue('IP:127.0.0.1') }, answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = newClient({
    maxConnectionsPerOrigin: 100,
    maxWaitingPerOrigin: 1000,
    tlsCa: authority.certificate,
  });
  const exchanges = Array.from({ length: 300 }, (_, number) => {
    const exchange = new Exchange(client, `${scheme}://127.0.0.1:${port}`, {
      account: `a${number}`,
      path: `/${number}`,
    });
    if (number % 3 === 0) pauseAtEveryChunk(exchange);
    return exchange;
  });
  for (const [number, exchange] of exchanges.entries()) {
    expect(await exchange.outcome()).toBe(200);
    expect(Buffer.concat(exchange.chunks).equals(bodyOf(number)), `body ${number}`).toBe(true);
  }
  expect(client.stats()).toMatchObject({ open: 100, idle: 100 });
  await client.close();
  await once(server.close(), 'close');
});

function pauseAtEveryChunk(exchange: Exchange): void {
  exchange.onChunk = (chunk) => {
    exchange.chunks.push(Buffer.from(chunk));
    exchange.call.pause();
    setImmediate(() => exchange.call.resume());
  };
}
