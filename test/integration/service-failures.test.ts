import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { CHANNEL } from '../../src/catalog/sql.ts';
import { until } from '../support/wait.ts';
import type { Peer } from '../upstream/helpers.ts';
import { Marketplace } from './marketplace.ts';
import type { RawResponse } from './raw-caller.ts';
import { PRICE, Scene } from './scene.ts';

let market: Marketplace;
let scene: Scene;

beforeAll(async () => {
  market = await Marketplace.start({ UPSTREAM_ALLOW_CIDRS: '127.0.0.1/32', IDLE_BODY_SECONDS: '1' });
});
afterEach(() => scene.close());
afterAll(() => market.stop());

const BODY = 'x'.repeat(40_000);

function expectRefundedError(response: RawResponse, status: number, error: string): void {
  expect(response.status).toBe(status);
  expect(response.json()).toMatchObject({ error, status });
  expect(response.get('x-acf-amount')).toBe('0');
  expect(response.get('x-acf-free-tier')).toBe('false');
  expect(response.get('x-acf-balance')).toBe('1');
  expect(response.get('x-ratelimit-limit')).toBe('300');
}

describe('a service that cannot be reached', () => {
  it.each([
    ['refuses', (port: number) => `http://127.0.0.1:${port}`, true],
    ['lives at a forbidden address', (port: number) => `http://127.0.0.2:${port}`, false],
    ['lives at a private address', () => 'http://10.0.0.1/', false],
    ['has a name without an address', () => 'http://nothing.invalid/', false],
  ])('gives 502 and a refund if it %s', async (_name, endpoint, closed) => {
    scene = await Scene.open(market);
    const id = scene.path.split('/').at(-1);
    if (closed) await scene.service.close();
    // Written past the API, which would refuse a forbidden address. The rules may have changed since a service was listed.
    const moved = endpoint(scene.service.port);
    await market.stores.sql`
      WITH changed AS (
        UPDATE services SET endpoint = ${moved}, updated_at = clock_timestamp() WHERE id = ${id as string} RETURNING id)
      SELECT pg_notify(${CHANNEL}, id::text) FROM changed`;
    await until(async () => {
      const listed = await market.json<{ endpoint: string }>(`/api/v1/services/${id}`, { key: market.provider });
      return listed.endpoint === moved;
    });
    const response = await (await scene.call()).response();
    expectRefundedError(response, 502, 'upstream_error');
    await scene.expectEnd({ outcome: 'refunded:upstream_error', status: 502 });
    expect(response.body.toString()).not.toMatch(/127\.0\.0|10\.0\.0|ECONN|invalid\b.*address/);
    if (!closed) expect(scene.service.peers).toEqual([]);
  });
});

describe('a service that fails before its response', () => {
  type Script = (peer: Peer) => void;
  const reply =
    (text: string): Script =>
    (peer) => {
      peer.send(text);
      peer.socket.end();
    };
  it.each<[string, Script]>([
    ['closes', (peer) => peer.socket.end()],
    ['resets', (peer) => peer.socket.resetAndDestroy()],
    ['closes within the head', reply('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n')],
    ['closes between head and body', reply('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n')],
    ['closes between head and chunks', reply('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')],
    ['closes within its first chunk size', reply('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1')],
    ['does not speak HTTP', reply('SSH-2.0-OpenSSH_9.2\r\n')],
    ['has a bad status', reply('HTTP/1.1 2000 OK\r\n\r\n')],
    ['has two lengths', reply('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk')],
    ['has two framings', reply('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok')],
    ['has a bad header', reply('HTTP/1.1 200 OK\r\nX Y: 1\r\nContent-Length: 2\r\n\r\nok')],
    [
      'has a header that would inject another',
      reply('HTTP/1.1 200 OK\r\nX: a\nX-ACF-Amount: 0\r\nContent-Length: 0\r\n\r\n'),
    ],
    ['has a head without end', reply(`HTTP/1.1 200 OK\r\nX: ${'y'.repeat(70_000)}\r\n\r\n`)],
    ['switches protocols', reply('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n')],
    ['starts with a bad chunk', reply('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n')],
  ])('gives 502 and a refund if it %s', async (_name, script) => {
    scene = await Scene.open(market, async (peer) => {
      await peer.takeRequest();
      script(peer);
    });
    const response = await (await scene.call('POST', { body: 'once' })).response();
    expectRefundedError(response, 502, 'upstream_error');
    const { request_bytes, response_bytes } = await scene.expectEnd({
      outcome: 'refunded:upstream_error',
      status: 502,
    });
    expect([request_bytes, response_bytes]).toEqual([4, 0]);
    // A POST is not sent twice, because the first one may have had its effect.
    expect(scene.service.peers).toHaveLength(1);
  });

  it.each<[string, (peer: Peer) => unknown]>([
    ['is silent', () => {}],
    ['begins its head and stops', (peer) => peer.send('HTTP/1.1 200 OK\r\nX-')],
    ['sends only interim responses', (peer) => peer.send('HTTP/1.1 103 Early Hints\r\n\r\n')],
  ])('gives 504 after its timeout and a refund if it %s', async (_name, script) => {
    scene = await Scene.open(market, script, { timeout_seconds: 1 });
    const response = await (await scene.call()).response();
    expectRefundedError(response, 504, 'upstream_timeout');
    await scene.expectEnd({ outcome: 'refunded:upstream_timeout', status: 504 });
    // The gateway closes the connection, so that the service does not work for nobody.
    await (await scene.service.peer(0)).gone();
  });
});

describe('a service that answers', () => {
  it.each([500, 502, 503, 599])('with %i: its response passes and the call is refunded', async (status) => {
    scene = await Scene.open(market, async (peer) => {
      await peer.takeRequest();
      peer.send(`HTTP/1.1 ${status} Sorry\r\nContent-Length: 5\r\nRetry-After: 7\r\nX-Why: it\r\n\r\nsorry`);
    });
    const response = await (await scene.call()).response();
    expect([response.status, response.body.toString()]).toEqual([status, 'sorry']);
    expect([response.get('x-why'), response.get('retry-after')]).toEqual(['it', '7']);
    expect([response.get('x-acf-amount'), response.get('x-acf-balance')]).toEqual(['0', '1']);
    await scene.expectEnd({ outcome: 'refunded:upstream_5xx', status });
  });

  it.each([200, 301, 400, 404, 429, 499])('with %i is paid for the call', async (status) => {
    scene = await Scene.open(market, async (peer) => {
      await peer.takeRequest();
      peer.send(`HTTP/1.1 ${status} Well\r\nContent-Length: 2\r\nRetry-After: 7\r\n\r\nok`);
    });
    const response = await (await scene.call()).response();
    expect([response.status, response.get('x-acf-amount')]).toEqual([status, String(PRICE)]);
    expect(response.get('retry-after')).toBe('7');
    await scene.expectEnd({ outcome: 'completed', status, amount: PRICE });
  });

  it('with more bytes than declared: the caller gets the declared bytes, and the connection is not used again', async () => {
    scene = await Scene.open(market, async (peer) => {
      await peer.takeRequest();
      peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged');
    });
    const response = await (await scene.call()).response();
    expect(response.body.toString()).toBe('ok');
    await scene.expectEnd({ outcome: 'completed', status: 200, amount: PRICE });
    const again = await (await scene.call()).response();
    expect(again.body.toString()).toBe('ok');
    expect(scene.service.peers).toHaveLength(2);
  });

  it('and then closes the connection: the next caller does not notice, and pays once', async () => {
    scene = await Scene.open(market, async (peer, index) => {
      await peer.takeRequest();
      peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      if (index > 0) return;
      // The next request on this connection gets a reset.
      await peer.takeRequest();
      peer.socket.resetAndDestroy();
    });
    for (let i = 0; i < 2; i++) expect((await (await scene.call()).response()).status).toBe(200);
    const records = await market.records(scene.buyer);
    expect(records.map(({ outcome }) => outcome)).toEqual(['completed', 'completed']);
    expect(await market.balance(scene.buyer)).toMatchObject({ balance: 0.8, held: 0 });
    expect(scene.service.peers).toHaveLength(2);
  });
});

describe('a service that dies within the body', () => {
  const chunk = `${BODY.length.toString(16)}\r\n${BODY}\r\n`;
  const known = `HTTP/1.1 200 OK\r\nContent-Length: ${2 * BODY.length}\r\n\r\n${BODY}`;
  const chunked = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`;
  it.each<[string, string, (peer: Peer) => void]>([
    ['with a length, by closing', known, (peer) => peer.socket.end()],
    ['with a length, by a reset', known, (peer) => peer.socket.resetAndDestroy()],
    ['with a length, by silence', known, () => {}],
    ['in chunks, by closing', chunked, (peer) => peer.socket.end()],
    ['in chunks, by a reset', chunked, (peer) => peer.socket.resetAndDestroy()],
    ['in chunks, by silence', chunked, () => {}],
    ['in chunks, by nonsense', chunked, (peer) => peer.send('nonsense\r\n')],
    [
      'in chunks, within a chunk',
      chunked,
      (peer) => {
        peer.send('ff\r\nabc');
        peer.socket.end();
      },
    ],
  ])('gives the caller a visibly cut response and a refund: %s', async (_name, begin, die) => {
    scene = await Scene.open(market, async (peer) => {
      await peer.takeRequest();
      peer.send(begin);
    });
    const caller = await scene.call();
    const head = await caller.head();
    expect([head.status, head.get('x-acf-amount')]).toEqual([200, String(PRICE)]);
    await caller.until((received) => received.length >= BODY.length);
    die(await scene.service.peer(0));
    const rest = (await caller.end()).toString('latin1');
    if (begin === known) expect(rest.length).toBeLessThan(2 * BODY.length);
    else expect(rest).not.toContain('\r\n0\r\n');
    const record = await scene.expectEnd({ outcome: 'refunded:upstream_cut', status: 200 });
    expect(record.response_bytes).toBeGreaterThanOrEqual(BODY.length);
    await (await scene.service.peer(0)).gone();
  });

  it('gives the free slot back', async () => {
    let healthy = false;
    scene = await Scene.open(
      market,
      async (peer) => {
        for (;;) {
          await peer.takeRequest();
          peer.send(healthy ? 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok' : chunked);
          if (!healthy) peer.socket.end();
        }
      },
      { free_calls: 1 },
    );
    const cut = await scene.call();
    expect((await cut.head()).get('x-acf-free-tier')).toBe('true');
    await cut.end();
    await market.settled();
    healthy = true;
    const again = await (await scene.call()).response();
    expect([again.get('x-acf-free-tier'), again.get('x-acf-amount')]).toEqual(['true', '0']);
    const paid = await (await scene.call()).response();
    expect([paid.get('x-acf-free-tier'), paid.get('x-acf-amount')]).toEqual(['false', String(PRICE)]);
  });
});
