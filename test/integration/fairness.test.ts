// What one account may take while others need it too. One stack for all.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../support/wait.ts';
import { deferred } from '../upstream/helpers.ts';
import { bodyOf, type Key, Marketplace, startService, type TestService } from './marketplace.ts';
import { RawCaller, requestText } from './raw-caller.ts';

let market: Marketplace;
let attacker: Key;
let other: Key;
let service: TestService;
/** Slow uploads that have reached the service. */
let uploading = 0;

beforeAll(async () => {
  market = await Marketplace.start({
    TRUSTED_PROXY_HOPS: '1',
    MAX_ACCOUNTS_PER_ADDRESS: '2',
    REDIS_COMMAND_TIMEOUT_MS: '5000',
  });
  service = await startService(async (request, response) => {
    if (request.headers['content-length'] === '100000') uploading++;
    await bodyOf(request).catch(() => {});
    response.end('served');
  });
  attacker = await market.buyer(5);
  other = await market.buyer(5);
});
afterAll(async () => {
  await market.stop();
  await service.close();
});

it('an account whose pages hang does not keep other accounts from getting pages', async () => {
  const unlocked = deferred();
  const locked = deferred();
  const lock = market.stores.sql.begin(async (tx) => {
    await tx`LOCK TABLE calls IN ACCESS EXCLUSIVE MODE`;
    locked.resolve();
    await unlocked.promise;
  });
  await locked.promise;
  const hanging = Array.from({ length: 12 }, () => market.request('/api/v1/usage/me', { key: attacker }));
  try {
    // A new account, so that its key must be looked up in Postgres too.
    const newcomer = await market.buyer(0);
    for (const key of [other, newcomer]) expect((await market.request('/api/v1/keys', { key })).status).toBe(200);
  } finally {
    unlocked.resolve();
    await lock;
  }
  expect((await Promise.all(hanging)).map(({ status }) => status)).toEqual(Array(12).fill(200));
});

it('the gateway serves the catalog and its own pages while pages of four accounts hang', async () => {
  const unlocked = deferred();
  const locked = deferred();
  const lock = market.stores.sql.begin(async (tx) => {
    await tx`LOCK TABLE calls IN ACCESS EXCLUSIVE MODE`;
    locked.resolve();
    await unlocked.promise;
  });
  await locked.promise;
  const owners = [attacker, other, await market.buyer(0), await market.buyer(0)];
  const hanging = owners.flatMap((key) => [1, 2, 3].map(() => market.request('/api/v1/usage/me', { key })));
  try {
    for (const path of [
      '/api/v1/discover',
      '/api/v1/openapi.json',
      '/',
      '/docs',
      '/llms.txt',
      '/.well-known/mcp/server.json',
    ]) {
      const before = performance.now();
      expect([path, (await market.request(path, { key: attacker })).status]).toEqual([path, 200]);
      expect(performance.now() - before).toBeLessThan(3_000);
    }
  } finally {
    unlocked.resolve();
    await lock;
  }
  await Promise.all(hanging);
});

it('requests for services whose statistics hang do not keep other accounts from getting pages', async () => {
  const paths = await Promise.all(Array.from({ length: 14 }, () => market.service({ endpoint: service.url })));
  const hasStats = async (path: string): Promise<boolean> =>
    'stats' in (await market.json<object>(path.replace('proxy', 'discover'), { key: attacker }));
  const unlocked = deferred();
  const locked = deferred();
  const lock = market.stores.sql.begin(async (tx) => {
    await tx`LOCK TABLE service_latencies IN ACCESS EXCLUSIVE MODE`;
    locked.resolve();
    await unlocked.promise;
  });
  await locked.promise;
  try {
    for (const path of paths) expect(await hasStats(path)).toBe(false);
    const before = performance.now();
    expect((await market.request('/api/v1/keys', { key: other })).status).toBe(200);
    expect(performance.now() - before).toBeLessThan(3_000);
  } finally {
    unlocked.resolve();
    await lock;
  }
  await until(() => hasStats(paths[13] as string));
});

it('600 slow uploads with 12 keys of one account leave room for other buyers, and nobody is charged for them', async () => {
  const path = await market.service({ endpoint: service.url, price: 0.001 });
  const keys = [attacker];
  while (keys.length < 12) keys.push(await market.anotherKey(attacker));
  const uploads = await Promise.all(
    Array.from({ length: 600 }, async (_, i) => {
      const caller = await RawCaller.connect(market.baseUrl);
      caller.send(requestText(`POST ${path}/`, { key: keys[i % 12], headers: ['Content-Length: 100000'] }));
      caller.send('a few octets');
      return caller;
    }),
  );
  const refused = (): RawCaller[] => uploads.filter(({ received }) => received.length > 0);
  // 384 of 512 connections are taken. The other calls wait in line for a second.
  await until(() => uploading === 384);
  for (let i = 0; i < 20; i++) {
    const response = await market.request(`${path}/`, { key: other, method: i % 2 === 0 ? 'GET' : 'POST' });
    expect([response.status, await response.text()]).toEqual([200, 'served']);
  }
  await until(() => refused().length === 216);
  expect(uploading).toBe(384);
  const answers = await Promise.all(refused().map((caller) => caller.response()));
  const errors = new Set(answers.map((answer) => answer.json<{ error: string }>().error));
  expect([...errors]).toEqual(['upstream_busy']);
  for (const upload of uploads) upload.destroy();
  await market.settled();
  expect(await market.balance(attacker)).toMatchObject({ balance: 5, held: 0 });
  expect((await market.balance(other)).balance).toBe(4.98);
  expect(await market.books()).toMatchObject({ drifting: [] });
});

it('an address can open a bounded number of accounts a day over all gateways, however it writes X-Forwarded-For', async () => {
  const second = await market.anotherGateway();
  const open = (forwarded: string, baseUrl = market.baseUrl): Promise<Response> =>
    fetch(`${baseUrl}/api/v1/keys`, {
      method: 'POST',
      headers: { 'X-Forwarded-For': forwarded },
      body: JSON.stringify({ owner_id: 'many', role: 'provider' }),
    });
  try {
    const answers = [
      await open('2600:1f18:1:2::1'),
      await open('9.9.9.9, 2600:1f18:1:2:a::ffff', second.baseUrl),
      await open('8.8.8.8, 2600:1F18:1:2:0:0:0:7', second.baseUrl),
      await open('2600:1f18:1:2::1'),
    ];
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 429, 429]);
    expect(Number(answers[3]?.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await answers[3]?.json()).toMatchObject({
      error: 'rate_limited',
      message: expect.stringContaining('2 accounts a day'),
    });
    expect((await open('2600:1f18:1:3::1')).status).toBe(201);
  } finally {
    await second.stop();
  }
});
