import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { oneRedis } from '../support/redis-kind.ts';
import { timed } from '../support/timed.ts';
import { until } from '../support/wait.ts';
import { type Key, Marketplace } from './marketplace.ts';
import { RawCaller, type RawResponse, requestText } from './raw-caller.ts';
import { PRICE, Scene } from './scene.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const COMMAND_TIMEOUT_MS = 500;
/** Bound for any single answer: 300 ms more than the command timeout, and 1 s for a busy machine (stores-away.test.ts). */
const BOUNDED_MS = COMMAND_TIMEOUT_MS + 1_300;

let market: Marketplace;
let scene: Scene;
/** Number of calls before the test. */
let made: number;

beforeEach(async () => {
  market = await Marketplace.start({ REDIS_COMMAND_TIMEOUT_MS: String(COMMAND_TIMEOUT_MS) });
  scene = await Scene.open(
    market,
    async (peer) => {
      for (;;) {
        await peer.takeRequest();
        peer.send(OK);
      }
    },
    { free_calls: 1 },
  );
  // The free call is used, and everything that a call needs is loaded. A call that a busy machine refuses is refunded.
  made = 0;
  await until(async () => {
    made++;
    return (await (await scene.call()).response()).get('x-acf-free-tier') === 'true';
  });
  await market.settled();
});
afterEach(async () => {
  await scene.close();
  await market.stop();
});

function expectUnavailable(response: RawResponse): void {
  expect(response.status).toBe(503);
  expect(response.json()).toMatchObject({ error: 'unavailable', status: 503 });
  expect(response.get('retry-after')).toMatch(/^[1-9]\d*$/);
  expect(response.get('x-ratelimit-limit')).toBe('300');
  expect(response.get('x-ratelimit-remaining')).toBe('0');
  expect(response.get('x-acf-amount')).toBeNull();
}

/** @returns how long they took */
const refusedCalls = async (count: number): Promise<number> => {
  const tookMs = await timed(async () => {
    const callers = await Promise.all(Array.from({ length: count }, () => scene.call()));
    for (const caller of callers) expectUnavailable(await caller.response());
  });
  expect(tookMs).toBeLessThan(BOUNDED_MS);
  return tookMs;
};

const statusOf = async (path: string, key?: Key): Promise<number> => (await market.request(path, { key })).status;

describe('while Redis does not answer', () => {
  it('calls get 503 with Retry-After in bounded time, and are not charged later', async () => {
    market.redis.pause();
    try {
      await refusedCalls(20);
      expect(await statusOf('/healthz')).toBe(200);
    } finally {
      market.redis.resume();
    }
    // Redis executes the commands it had received, and each admission is cancelled by its id.
    await until(async () => (await market.metric('tollgate_settlements_unconfirmed')) === 0);
    const records = await market.records(scene.buyer);
    expect(records.length).toBeLessThanOrEqual(made + 20);
    const outcomes = new Set(records.map(({ outcome, amount, status }) => `${outcome} ${amount} ${status}`));
    outcomes.delete('completed 0 200');
    expect([...outcomes].filter((outcome) => outcome !== 'refunded:unavailable 0 503')).toEqual([]);
    expect(await market.balance(scene.buyer)).toMatchObject({ balance: 1, held: 0 });
    expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
    // Only the first call reached the service.
    expect(scene.service.peers).toHaveLength(1);
    const again = await (await scene.call()).response();
    expect([again.status, again.get('x-acf-amount'), again.get('x-acf-balance')]).toEqual([200, '0.1', '0.9']);
  });

  it('a call under way finishes, and is charged once when Redis is back', async () => {
    const slow = await Scene.open(market);
    const caller = await slow.call();
    const peer = await slow.service.peer(0);
    await peer.takeRequest();
    market.redis.pause();
    try {
      peer.send(OK);
      expect((await caller.response()).get('x-acf-amount')).toBe(String(PRICE));
      // At least one attempt to settle the call fails before Redis is back.
      await until(() => market.log.lines.filter((line) => line.includes('no reply from redis')).length >= 1);
    } finally {
      market.redis.resume();
    }
    await until(async () => (await market.metric('tollgate_settlements_unconfirmed')) === 0);
    await slow.expectEnd({ outcome: 'completed', status: 200, amount: PRICE });
    expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
    await slow.close();
  });

  it('the gateway is not ready, although its connection is open; it is ready once Redis answers', async () => {
    market.redis.pause();
    try {
      await until(async () => (await statusOf('/readyz')) === 503);
    } finally {
      market.redis.resume();
    }
    await until(async () => (await statusOf('/readyz')) === 200);
  });

  it('pages get 503 with Retry-After in bounded time', async () => {
    market.redis.pause();
    try {
      const caller = await RawCaller.connect(market.baseUrl);
      for (const path of ['/api/v1/balance/me', '/api/v1/usage/me', '/api/v1/discover']) {
        const tookMs = await timed(async () => {
          caller.send(requestText(`GET ${path}`, { key: scene.buyer }));
          expectUnavailable(await caller.response());
        });
        expect(tookMs).toBeLessThan(BOUNDED_MS);
      }
      caller.destroy();
    } finally {
      market.redis.resume();
    }
  });
});

describe.skipIf(oneRedis('stops it and starts it again'))('when Redis is gone', () => {
  it('calls get 503 at once and the gateway is not ready, until Redis is back', async () => {
    await market.redis.stop();
    await until(async () => (await statusOf('/readyz')) === 503);
    expect(await refusedCalls(5)).toBeLessThan(COMMAND_TIMEOUT_MS);
    expect(await statusOf('/healthz')).toBe(200);
    await market.redis.restart();
    await until(async () => (await statusOf('/readyz')) === 200);
    expect((await (await scene.call()).response()).status).toBe(200);
  });
});

describe.skipIf(oneRedis('stops it and starts it again'))('when Redis comes back with its data', () => {
  it('a call that ended meanwhile is settled exactly once', async () => {
    const settings = { REDIS_COMMAND_TIMEOUT_MS: String(COMMAND_TIMEOUT_MS) };
    const durable = await Marketplace.start(settings, { durableRedis: true });
    const [paid, failed] = [await Scene.open(durable), await Scene.open(durable)];
    const callers = [await paid.call(), await failed.call()];
    const peers = [await paid.service.peer(0), await failed.service.peer(0)];
    for (const peer of peers) await peer.takeRequest();
    await durable.redis.stop();
    await until(async () => (await durable.request('/readyz')).status === 503);
    peers[0]?.send(OK);
    peers[1]?.socket.resetAndDestroy();
    expect((await callers[0]?.response())?.status).toBe(200);
    expect((await callers[1]?.response())?.status).toBe(502);
    expect(await durable.metric('tollgate_settlements_unconfirmed')).toBe(2);
    await durable.redis.restart();
    await until(async () => (await durable.metric('tollgate_settlements_unconfirmed')) === 0);
    // Settlements have a connection of their own; the questions below need the other one too.
    await until(async () => (await durable.request('/readyz')).status === 200);
    await paid.expectEnd({ outcome: 'completed', status: 200, amount: PRICE });
    await failed.expectEnd({ outcome: 'refunded:upstream_error', status: 502 });
    expect(await durable.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
    await Promise.all([paid.close(), failed.close()]);
    await durable.stop();
  });
});

describe.skipIf(oneRedis('restarts it'))('when Redis comes back empty', () => {
  it('balances, free calls used, limits and revoked keys are what Postgres has', async () => {
    expect((await (await scene.call()).response()).get('x-acf-balance')).toBe('0.9');
    const revoked = await market.anotherKey(scene.buyer);
    await market.request(`/api/v1/keys/${revoked.key_id}`, { key: market.admin, method: 'DELETE' });
    await market.settled();
    await market.redis.restart();
    await until(async () => (await statusOf('/readyz')) === 200);
    // All at the same time, so that each wallet is loaded once.
    const callers = await Promise.all(Array.from({ length: 10 }, () => scene.call()));
    const answers = await Promise.all(callers.map((caller) => caller.response()));
    const seen = answers.map((answer) => [answer.status, answer.get('x-acf-amount'), answer.get('x-acf-free-tier')]);
    // The free call is used up. Nine calls empty the balance, and the tenth lacks the money.
    expect(seen.sort()).toEqual([...Array(9).fill([200, '0.1', 'false']), [402, null, null]]);
    expect(answers[0]?.get('x-ratelimit-limit')).toBe('300');
    expect(await statusOf(scene.path, revoked)).toBe(401);
    await market.settled();
    expect(await market.balance(scene.buyer)).toMatchObject({ balance: 0, held: 0 });
    expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
  });
});
