import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { authorization, echo, type Key, Marketplace, startService, type TestService } from './marketplace.ts';
import { RawCaller, type RawResponse } from './raw-caller.ts';

let market: Marketplace;
let service: TestService;
let buyer: Key;
let path: string;
let forwarded = 0;

beforeAll(async () => {
  market = await Marketplace.start();
  service = await startService((request, response) => {
    forwarded++;
    void echo(request, response);
  });
  buyer = await market.buyer(1);
  path = await market.service({ endpoint: service.url, price: 0.01 });
});
afterAll(async () => {
  await market.stop();
  await service.close();
});

/** Headers that the `ws` package and browsers send (RFC 6455 §4.1). */
const WEBSOCKET = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];

/** Sends a call. @returns the response, and whether the connection ended with it */
async function answerTo(line: string, headers: readonly string[], body?: string): Promise<RawResponse> {
  const caller = await RawCaller.connect(market.baseUrl);
  try {
    const response = await caller.exchange(line, { key: buyer, headers, ...(body === undefined ? {} : { body }) });
    if (response.status === 426) expect((await caller.end()).length).toBe(0);
    return response;
  } finally {
    caller.destroy();
  }
}

describe('a call that asks for another protocol', () => {
  it.each([
    ['a WebSocket handshake', `GET`, WEBSOCKET],
    ['in capitals, without Connection', 'GET', ['Upgrade: WebSocket']],
    ['that a proxy in front has told to close', 'GET', ['Connection: close', 'Upgrade: websocket']],
    ['h2c', 'GET', ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA']],
    ['h2c with a version, second in a list', 'DELETE', ['Upgrade: TLS/1.0 , H2C/1']],
    ['first in a list', 'GET', ['Upgrade: websocket,x']],
    ['in a second line', 'GET', ['Upgrade: x', 'Upgrade: h2c']],
  ])('gets 426 and is not charged: %s', async (_how, method, headers) => {
    const balance = await market.balance(buyer);
    const before = forwarded;
    const response = await answerTo(`${method} ${path}/a`, headers);
    expect([response.status, response.json<{ error: string }>().error]).toEqual([426, 'upgrade_not_supported']);
    // RFC 9110 §15.5.22: the 426 names the protocol the server wants instead; §7.8: Upgrade is also named in Connection.
    expect(response.get('upgrade')).toBe('HTTP/1.1');
    expect(response.all('connection').map((value) => value.toLowerCase())).toEqual(['upgrade', 'close']);
    expect([response.get('x-ratelimit-limit'), response.get('x-acf-usage-id')]).toEqual(['300', null]);
    expect(forwarded).toBe(before);
    expect(await market.balance(buyer)).toEqual(balance);
    expect(await market.records(buyer)).toEqual([]);
  });

  it('gets 426 even if it has a body, which is not read', async () => {
    expect((await answerTo(`POST ${path}`, ['Upgrade: h2c'], 'x'.repeat(1000))).status).toBe(426);
  });

  it('counts against the rate limit, like every refused request', async () => {
    const slow = await market.buyer(1);
    const body = { rate_limit: 1 };
    await market.json(`/api/v1/keys/${slow.key_id}`, { key: market.admin, method: 'PATCH', body });
    for (const status of [426, 429]) {
      const caller = await RawCaller.connect(market.baseUrl);
      expect((await caller.exchange(`GET ${path}`, { key: slow, headers: WEBSOCKET })).status).toBe(status);
      caller.destroy();
    }
  });

  it.each(['x', 'TLS/1.0', 'websockets', 'h2', 'xh2c', 'h2c-14', ''])(
    'is served when it asks for %s',
    async (other) => {
      expect((await answerTo(`GET ${path}`, [`Upgrade: ${other}`])).status).toBe(200);
    },
  );

  it.skipIf(!existsSync('/usr/bin/curl'))('gets 426 from curl --http2 too (skipped without curl)', async () => {
    const args = [
      '--http2',
      '-s',
      '-w',
      '%{http_code}',
      '-o',
      '/dev/null',
      '-H',
      `Authorization: ${authorization(buyer)}`,
    ];
    const url = market.baseUrl + path;
    const status = async (...options: string[]): Promise<string> =>
      (await promisify(execFile)('/usr/bin/curl', [...args, ...options, url])).stdout;
    expect(await status()).toBe('426');
    expect(await status('--http1.1')).toBe('200');
  });
});

it('a page requested with an Upgrade is answered in HTTP/1.1, as RFC 9110 §7.8 allows', async () => {
  for (const headers of [WEBSOCKET, ['Upgrade: h2c']]) {
    expect((await answerTo('GET /api/v1/balance/me', headers)).status).toBe(200);
  }
});
