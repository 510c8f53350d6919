import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type Server, type TLSSocket, type TlsOptions } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { UpstreamClient, UpstreamErrorCode, UpstreamOptions } from '../../src/upstream/index.ts';
import { Authority, type Identity } from './certificates.ts';
import { Exchange, eventually, newClient, OK, patternBytes } from './helpers.ts';

let authority: Authority;
const identities: Record<string, Identity> = {};
const clients: UpstreamClient[] = [];
const servers: Server[] = [];

beforeAll(() => {
  authority = new Authority();
  identities.good = authority.issue('DNS:good.example,IP:127.0.0.1');
  identities.other = authority.issue('DNS:other.example');
});
afterAll(() => authority.remove());
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
  await Promise.all(servers.splice(0).map((server) => once(server.close(), 'close')));
});

function client(options: Partial<UpstreamOptions> = {}): UpstreamClient {
  const made = newClient({
    tlsCa: authority.certificate,
    lookup: async () => [{ address: '127.0.0.1', family: 4 }],
    ...options,
  });
  clients.push(made);
  return made;
}

type TlsServer = { port: number; sockets: TLSSocket[]; resumed: boolean[] };

/** Starts a TLS server that answers every request with OK, or as `onRequest` does. */
async function serve(
  options: TlsOptions,
  onRequest: (socket: TLSSocket, chunk: Buffer) => unknown = (socket) => socket.write(OK),
): Promise<TlsServer> {
  const sockets: TLSSocket[] = [];
  const resumed: boolean[] = [];
  const server = createServer(options, (socket) => {
    sockets.push(socket);
    resumed.push(socket.isSessionReused());
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => onRequest(socket, chunk));
  });
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, sockets, resumed };
}

test('a call over TLS sends the name (SNI) and offers only http/1.1, and its connection is used again', async () => {
  const { port, sockets } = await serve({ ...identities.good, ALPNProtocols: ['h2', 'http/1.1'] });
  const upstream = client();
  for (let i = 0; i < 2; i++) {
    const exchange = new Exchange(upstream, `https://good.example:${port}`);
    expect(await exchange.outcome()).toBe(200);
    expect(exchange.body).toBe('ok');
  }
  expect(sockets.length).toBe(1);
  expect(sockets[0]).toMatchObject({ servername: 'good.example', alpnProtocol: 'http/1.1' });
  expect(['TLSv1.2', 'TLSv1.3']).toContain(sockets[0]?.getProtocol());
});

test('a certificate for an address must name that address, and no SNI is sent', async () => {
  const { port, sockets } = await serve({ ...identities.good });
  expect(await new Exchange(client(), `https://127.0.0.1:${port}`).outcome()).toBe(200);
  expect(sockets[0]?.servername).toBe(false);
});

describe('the connection is refused, and no request sent, when', () => {
  test.each<[string, () => TlsOptions, Partial<UpstreamOptions>, string, UpstreamErrorCode]>([
    ['the authority is unknown', () => ({ ...identities.good }), { tlsCa: '' }, 'good.example', 'tls_untrusted'],
    ['the certificate is for another name', () => ({ ...identities.other }), {}, 'good.example', 'tls_wrong_name'],
    ['the certificate is not for this address', () => ({ ...identities.other }), {}, '127.0.0.1', 'tls_wrong_name'],
    [
      'the server speaks only TLS 1.1',
      () => ({ ...identities.good, maxVersion: 'TLSv1.1', minVersion: 'TLSv1' }),
      {},
      'good.example',
      'tls_failed',
    ],
    [
      'the server speaks only h2',
      () => ({ ...identities.good, ALPNProtocols: ['h2'] }),
      {},
      'good.example',
      'tls_failed',
    ],
  ])('%s', async (_name, tls, options, host, code) => {
    const { port, sockets } = await serve(tls(), () => {
      throw new Error('a request reached the server');
    });
    const exchange = new Exchange(client(options), `https://${host}:${port}`);
    expect(await exchange.outcome()).toBe(code);
    expect(exchange.error).toMatchObject({ requestStarted: false, headReceived: false });
    for (const socket of sockets) await eventually(() => socket.destroyed);
  });
});

test('a peer that does not speak TLS, or that hangs up, makes the handshake fail', async () => {
  const { createServer: createTcpServer } = await import('node:net');
  const server = createTcpServer((socket) =>
    socket.resume().end('HTTP/1.1 400 Bad Request\r\n\r\n'),
  ) as unknown as Server;
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  expect(await new Exchange(client(), `https://good.example:${port}`).outcome()).toBe('tls_failed');
});

test.each(['TLSv1.2', 'TLSv1.3'] as const)('a second connection resumes the session (%s)', async (version) => {
  const { port, resumed } = await serve({ ...identities.good, minVersion: version, maxVersion: version }, (socket) =>
    socket.end('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok'),
  );
  const upstream = client();
  for (let i = 0; i < 3; i++) {
    expect(await new Exchange(upstream, `https://good.example:${port}`).outcome()).toBe(200);
  }
  expect(resumed).toEqual([false, true, true]);
});

test('a session is not resumed for another name', async () => {
  const { port, resumed } = await serve({ ...identities.good }, (socket) =>
    socket.end('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok'),
  );
  const upstream = client();
  expect(await new Exchange(upstream, `https://good.example:${port}`).outcome()).toBe(200);
  expect(await new Exchange(upstream, `https://other.example:${port}`).outcome()).toBe('tls_wrong_name');
  expect(resumed).not.toContain(true);
});

test('when the first address does not answer, the second one still gets its share of the time', async () => {
  const { port } = await serve({ ...identities.good });
  const { createServer: createTcpServer } = await import('node:net');
  const sockets: { destroy(): void }[] = [];
  const silent = createTcpServer((socket) => sockets.push(socket)) as unknown as Server;
  servers.push(silent);
  silent.listen(port, '127.0.0.2');
  await once(silent, 'listening');
  const lookup = async () => [
    { address: '127.0.0.2', family: 4 },
    { address: '127.0.0.1', family: 4 },
  ];
  const exchange = new Exchange(client({ lookup, connectTimeoutMs: 400 }), `https://good.example:${port}`);
  expect(await exchange.outcome()).toBe(200);
  for (const socket of sockets) socket.destroy();
});

test('bodies of several MB pass both ways over TLS, with pauses, without damage', async () => {
  const body = patternBytes(3_000_000, 7);
  const wire = Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`), body]);
  const received: Buffer[] = [];
  const { port, sockets } = await serve({ ...identities.good }, (_socket, chunk) => received.push(chunk));
  const exchange = new Exchange(client(), `https://good.example:${port}`, { method: 'POST', bodyLength: body.length });
  let isPaused = false;
  exchange.onChunk = (chunk) => {
    expect(isPaused).toBe(false);
    exchange.chunks.push(Buffer.from(chunk));
    isPaused = true;
    exchange.call.pause();
    setImmediate(() => {
      isPaused = false;
      exchange.call.resume();
    });
  };
  for (let at = 0; at < body.length; at += 100_000) {
    if (!exchange.call.write(body.subarray(at, at + 100_000))) await exchange.writable.promise;
  }
  exchange.call.end();
  await eventually(() => received.reduce((sum, { length }) => sum + length, 0) > body.length);
  const request = Buffer.concat(received);
  expect(request.subarray(request.indexOf('\r\n\r\n') + 4).equals(body)).toBe(true);
  sockets[0]?.write(wire);
  expect(await exchange.outcome()).toBe(200);
  expect(Buffer.concat(exchange.chunks).equals(body)).toBe(true);
});

describe('while a call over TLS is paused', () => {
  async function paused(respond: (socket: TLSSocket) => unknown) {
    const { port, sockets } = await serve({ ...identities.good }, respond);
    const exchange = new Exchange(client(), `https://good.example:${port}`);
    exchange.onHead = () => exchange.call.pause();
    await eventually(() => sockets.length === 1);
    return { exchange, socket: sockets[0] as TLSSocket };
  }

  test('the upstream has to wait', async () => {
    const length = 64 * 1024 * 1024;
    const { exchange, socket } = await paused((to) => {
      to.write(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`);
      to.write(Buffer.alloc(length));
    });
    let left = -1;
    await eventually(() => {
      const isSteady = left === socket.writableLength && left > 0;
      left = socket.writableLength;
      return isSteady;
    });
    expect(left).toBeGreaterThan(16 * 1024 * 1024);
    expect(exchange.events).toEqual([]);
    exchange.call.destroy();
  });

  test("the upstream's end of the connection loses no data", async () => {
    const body = patternBytes(200_000);
    const { exchange, socket } = await paused((to) => {
      to.write('HTTP/1.1 200 OK\r\n\r\n');
      to.end(body);
    });
    await eventually(() => socket.writableFinished);
    expect(exchange.events).toEqual([]);
    exchange.call.resume();
    await exchange.ended.promise;
    expect(exchange.error).toBeNull();
    expect(Buffer.concat(exchange.chunks).equals(body)).toBe(true);
  });
});
