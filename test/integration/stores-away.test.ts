import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestPostgres, startTestRedis, type TestRedis, type TestStore } from '../support/stores.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/wait.ts';
import { type Key, Marketplace } from './marketplace.ts';
import { RawCaller, type RawResponse, requestText } from './raw-caller.ts';
import { PRICE, Scene } from './scene.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const COMMAND_TIMEOUT_MS = 500;
/** The command timeout and 300 ms on a machine with nothing else to do (measured: at most 664 ms). This one may be busy. */
const BOUNDED_MS = 3_000;
/** Of an outage, however many calls it refuses: gateway and writer have a handful of parts that each say so once. */
const MAX_LINES = 16;
const CALLS = 40;

let market: Marketplace;
let scene: Scene;
let proxy: TcpProxy;
let redis: TestRedis;
let postgres: TestStore;

async function open(settings: Readonly<Record<string, string>>): Promise<void> {
  market = await Marketplace.start(settings);
  scene = await Scene.open(market, async (peer) => {
    for (;;) {
      await peer.takeRequest();
      peer.send(OK);
    }
  });
  await market.credit(scene.buyer, 9, `more for ${scene.buyer.key_id}`);
  expect((await callOnce()).status).toBe(200);
  await market.settled();
}

const callOnce = async (key: Key = scene.buyer): Promise<RawResponse> => (await scene.call('GET', { key })).response();

function expectUnavailable(response: RawResponse): void {
  expect([response.status, response.json()]).toMatchObject([503, { error: 'unavailable' }]);
  expect(response.get('retry-after')).toMatch(/^[1-9]\d*$/);
}

/** Milliseconds that `work` took. */
async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

async function pageOf(path: string, key: Key): Promise<RawResponse> {
  const caller = await RawCaller.connect(market.baseUrl);
  caller.send(requestText(`GET ${path}`, { key }));
  const response = await caller.response();
  caller.destroy();
  return response;
}

type Fault = {
  readonly name: string;
  readonly begin: () => unknown;
  readonly end: () => unknown;
  readonly pageStatus?: number;
};

const heal = (): void => {
  proxy.delayMs = 0;
  proxy.set('pass');
  // What was swallowed will never be answered: a network would say so by a reset.
  proxy.cut();
};

describe('Redis', () => {
  beforeAll(async () => {
    redis = await startTestRedis({ appendonly: true, appendfsync: 'always' });
    proxy = await TcpProxy.open(redis.port);
    await open({ REDIS_URL: proxy.through(redis.url), REDIS_COMMAND_TIMEOUT_MS: String(COMMAND_TIMEOUT_MS) });
  });
  afterAll(async () => {
    await scene.close();
    await market.stop();
    await proxy.close();
    await redis.stop();
  });

  const faults: Fault[] = [
    { name: 'killed', begin: () => redis.kill(), end: () => redis.restart() },
    { name: 'stopped (SIGSTOP)', begin: () => redis.pause(), end: () => redis.resume() },
    { name: 'refusing', begin: () => proxy.refuse(), end: heal },
    { name: 'in a black hole', begin: () => proxy.set('swallow requests'), end: heal },
    { name: 'answering into a black hole', begin: () => proxy.set('swallow replies'), end: heal },
    {
      name: 'twice as slow as the command timeout',
      begin: () => {
        proxy.delayMs = 2 * COMMAND_TIMEOUT_MS;
      },
      end: () => {
        proxy.delayMs = 0;
      },
    },
  ];

  it.each(faults)('$name: bounded 503s, few log lines, recovery by itself, and right books', async ({ begin, end }) => {
    const { balance } = await market.balance(scene.buyer);
    const linesBefore = market.log.lines.length;
    let longest = 0;
    try {
      await begin();
      const callers = Array.from({ length: CALLS }, () =>
        timed(async () => expectUnavailable(await callOnce())).then((ms) => {
          longest = Math.max(longest, ms);
        }),
      );
      await Promise.all(callers);
      longest = Math.max(longest, await timed(async () => expectUnavailable(await callOnce())));
      longest = Math.max(
        longest,
        await timed(async () => expectUnavailable(await pageOf('/api/v1/balance/me', scene.buyer))),
      );
    } finally {
      await end();
    }
    await until(async () => (await callOnce()).status === 200);
    expect(longest).toBeLessThan(BOUNDED_MS);
    await until(async () => (await market.metric('tollgate_settlements_unconfirmed')) === 0);
    await market.settled();
    const answered = (await market.records(scene.buyer)).filter(({ outcome }) => outcome === 'completed').length;
    expect(10 - answered * PRICE).toBeCloseTo((await market.balance(scene.buyer)).balance, 6);
    expect((await market.balance(scene.buyer)).balance).toBeCloseTo(balance - PRICE, 6);
    expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
    const lines = market.log.lines.slice(linesBefore);
    expect(lines.length, lines.join('\n')).toBeLessThanOrEqual(MAX_LINES);
  });

  it('one that evicts is refused at start', async () => {
    await market.stores.redis.command('config', ['set', 'maxmemory-policy', 'allkeys-lru']);
    await expect(Marketplace.start({ REDIS_URL: redis.url })).rejects.toThrow('would evict money');
    await market.stores.redis.command('config', ['set', 'maxmemory-policy', 'noeviction']);
  });
});

describe('Postgres', () => {
  let unknown: Key;
  let unloaded: Key;

  beforeAll(async () => {
    postgres = await startTestPostgres();
    proxy = await TcpProxy.open(postgres.port);
    await open({ DATABASE_URL: proxy.through(postgres.url) });
  });
  afterAll(async () => {
    await scene.close();
    await market.stop();
    await proxy.close();
    await postgres.stop();
  });

  const faults: Fault[] = [
    { name: 'killed', begin: () => postgres.kill(), end: () => postgres.restart() },
    { name: 'refusing', begin: () => proxy.refuse(), end: heal },
    { name: 'in a black hole', begin: () => proxy.set('swallow requests'), end: heal },
    {
      name: 'slow',
      begin: () => {
        proxy.delayMs = 800;
      },
      end: heal,
      // Its two trips are within the bound.
      pageStatus: 200,
    },
  ];

  it.each(faults)(
    '$name: known keys call on, the rest is 503 in bounded time, recovery by itself',
    async ({ begin, end, pageStatus }) => {
      unknown = await market.anotherKey(scene.buyer);
      unloaded = await market.buyer(1);
      // Known to the gateway, but its wallet is not in Redis.
      await market.balance(unloaded);
      const { keys, redis: client } = market.stores;
      await client.command('del', [keys.wallet(keys.shardOf(unloaded.account_id), unloaded.account_id)]);
      await market.settled();
      const linesBefore = market.log.lines.length;
      const made = (await market.records(scene.buyer)).length;
      const longest: Record<string, number> = {};
      const measure = async (what: string, work: () => Promise<unknown>): Promise<void> => {
        longest[what] = Math.max(longest[what] ?? 0, await timed(work));
      };
      try {
        await begin();
        const known = async (): Promise<void> => expect((await callOnce()).status).toBe(200);
        await measure('call', known);
        await Promise.all([
          ...Array.from({ length: CALLS }, () =>
            measure('wallet to be loaded', async () => expectUnavailable(await callOnce(unloaded))),
          ),
          measure('page', async () => {
            const response = await pageOf('/api/v1/usage/me', scene.buyer);
            if (pageStatus === undefined) expectUnavailable(response);
            else expect(response.status).toBe(pageStatus);
          }),
          measure('call', known),
        ]);
      } finally {
        await end();
      }
      await until(async () => (await callOnce(unloaded)).status === 200);
      expect(Math.max(...Object.values(longest))).toBeLessThan(9_000);
      expect((await callOnce(unknown)).status).toBe(200);
      expect((await market.records(scene.buyer)).length).toBe(made + 2);
      expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
      const lines = market.log.lines.slice(linesBefore);
      expect(lines.length, lines.join('\n')).toBeLessThanOrEqual(MAX_LINES);
    },
  );
});
