import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestPostgres, startTestRedis, type TestRedis, type TestStore } from '../support/stores.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/wait.ts';
import { type Key, Marketplace } from './marketplace.ts';
import { RawCaller, type RawResponse, requestText } from './raw-caller.ts';
import { PRICE, Scene } from './scene.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const COMMAND_TIMEOUT_MS = 500;
/** What an answer may take longer than the timeout it waits for. */
const ANSWER_MS = 300;
/** Bounds for answers while Postgres is away (docs/operating.md, Limits): of a call whose key or wallet must be loaded, and of a page. */
const LOAD_TIMEOUT_MS = 2_000;
const PAGE_TIMEOUT_MS = 5_000;
/** From the return of a store until everything is as before. */
const RECOVERY_MS = 2_000;
/**
 * Tests run on machines with two busy processors, where any single answer may be read late. So of the answers of an outage
 * one in ten may be later than its bound, and none by more than this. Few callers at once: it is the gateway that is measured.
 */
const LATE_MS = 1_000;
const LATE_SHARE = 0.1;
const CALLERS = 4;
/**
 * How long Redis is away: during the first timeouts, about when a silent connection is given up, and after several attempts. Each
 * fault takes one in turn, and on demand (`ALL_OUTAGES=1`) all: together they are half a minute of waiting.
 */
const OUTAGES_MS = [700, 1_600, 2_700];
/** Share of a processor that gateway, writer and this test may use together while nobody calls. A loop that spins takes 1. */
const IDLE_CPU = 0.5;
/** Of an outage, however many calls it refuses: gateway and writer have a handful of parts that each say so once. */
const MAX_LINES = 16;
const CALLS = 40;

let market: Marketplace;
let scene: Scene;
/** Calls answered with 200. */
let served = 0;
let proxy: TcpProxy;
let redis: TestRedis;
let postgres: TestStore;

async function open(settings: Readonly<Record<string, string>>): Promise<void> {
  served = 0;
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

async function callOnce(key: Key = scene.buyer): Promise<RawResponse> {
  const response = await (await scene.call('GET', { key })).response();
  if (response.status === 200) served++;
  return response;
}

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

/** Nearly all within the bound, and none far beyond it. */
function expectWithin(boundMs: number, tookMs: readonly number[]): void {
  const sorted = tookMs.map(Math.round).sort((a, b) => a - b);
  expect(sorted[Math.ceil(sorted.length * (1 - LATE_SHARE)) - 1], sorted.join(' ')).toBeLessThanOrEqual(boundMs);
  expect(sorted.at(-1)).toBeLessThanOrEqual(boundMs + LATE_MS);
}

/** Share of a processor that this process takes in half a second in which it is asked for nothing. */
async function idleCpu(): Promise<number> {
  const [before, began] = [process.cpuUsage(), performance.now()];
  await until(() => performance.now() - began >= 500);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / (performance.now() - began);
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
  readonly isSlow?: boolean;
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
      name: 'in a hole, with no reset after it',
      begin: () => proxy.set('forget'),
      end: () => proxy.set('pass'),
    },
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

  const unconfirmed = (): Promise<number> => market.metric('tollgate_settlements_unconfirmed');
  const statusOf = async (path: string): Promise<number> => (await market.request(path, { key: scene.buyer })).status;

  /** One outage. @returns what each answer took, and what recovery took after Redis was back */
  async function outage({ begin, end }: Fault, outageMs: number): Promise<{ answers: number[]; recovery: number }> {
    const answers: number[] = [];
    const refused = async (ask: () => Promise<RawResponse>): Promise<void> => {
      answers.push(await timed(async () => expectUnavailable(await ask())));
    };
    const began = performance.now();
    try {
      await begin();
      const page = (): Promise<RawResponse> => pageOf('/api/v1/balance/me', scene.buyer);
      await Promise.all([refused(page), ...Array.from({ length: CALLERS }, () => refused(callOnce))]);
      await until(async () => {
        await refused(callOnce);
        return performance.now() - began >= outageMs;
      });
    } finally {
      await end();
    }
    const recovery = await timed(async () => {
      await until(async () => (await callOnce()).status === 200);
      for (const path of ['/readyz', '/api/v1/balance/me']) await until(async () => (await statusOf(path)) === 200);
      await until(async () => (await unconfirmed()) === 0);
    });
    return { answers, recovery };
  }

  const outagesOf = (i: number): number[] =>
    process.env.ALL_OUTAGES === '1' ? OUTAGES_MS : [OUTAGES_MS[i % OUTAGES_MS.length] as number];

  it.each(faults.map((fault, i) => ({ ...fault, outages: outagesOf(i) })))(
    '$name: 503 within the command timeout + 300 ms, all well within 2 s of its return, right books',
    async ({ outages, ...fault }) => {
      const answers: number[] = [];
      const recoveries: number[] = [];
      for (const ms of outages) {
        const round = await outage(fault, ms);
        answers.push(...round.answers);
        recoveries.push(Math.round(round.recovery));
      }
      expectWithin(COMMAND_TIMEOUT_MS + ANSWER_MS, answers);
      expect(Math.max(...recoveries), recoveries.join(' ')).toBeLessThanOrEqual(RECOVERY_MS);
      await market.settled();
      const answered = (await market.records(scene.buyer)).filter(({ outcome }) => outcome === 'completed').length;
      expect((await market.balance(scene.buyer)).balance).toBeCloseTo(10 - answered * PRICE, 6);
      expect(answered).toBe(served);
      expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
    },
  );

  it.each(faults)('$name: few log lines for many callers, and an idle processor', async ({ begin, end }) => {
    const linesBefore = market.log.lines.length;
    let cpu: number;
    try {
      await begin();
      await Promise.all(Array.from({ length: CALLS }, async () => expectUnavailable(await callOnce())));
      cpu = await idleCpu();
    } finally {
      await end();
    }
    await until(async () => (await callOnce()).status === 200);
    expect(cpu).toBeLessThan(IDLE_CPU);
    const lines = market.log.lines.slice(linesBefore);
    expect(lines.length, lines.join('\n')).toBeLessThanOrEqual(MAX_LINES);
    await until(async () => (await unconfirmed()) === 0);
  });

  it('one that evicts is refused at start', async () => {
    await market.stores.redis.command('config', ['set', 'maxmemory-policy', 'allkeys-lru']);
    await expect(Marketplace.start({ REDIS_URL: redis.url })).rejects.toThrow('would evict money');
    await market.stores.redis.command('config', ['set', 'maxmemory-policy', 'noeviction']);
  });
});

describe('Postgres', () => {
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
    { name: 'standing still', begin: () => proxy.set('hold'), end: () => proxy.set('pass') },
    {
      name: 'slow',
      begin: () => {
        proxy.delayMs = 800;
      },
      end: () => {
        proxy.delayMs = 0;
      },
      isSlow: true,
    },
  ];

  /** A buyer whose key the gateway knows, but whose wallet is not in Redis. */
  async function unloadedBuyer(): Promise<Key> {
    const buyer = await market.buyer(1);
    await market.balance(buyer);
    const { keys, redis: client } = market.stores;
    await client.command('del', [keys.wallet(keys.shardOf(buyer.account_id), buyer.account_id)]);
    return buyer;
  }

  it.each(faults)(
    '$name: known keys call on, the rest is 503 within its timeout + 300 ms, all well within 2 s of its return',
    async ({ begin, end, isSlow }) => {
      const [unknown, another] = [await market.anotherKey(scene.buyer), await market.anotherKey(scene.buyer)];
      const unloaded = await unloadedBuyer();
      await market.settled();
      const linesBefore = market.log.lines.length;
      const made = (await market.records(scene.buyer)).length;
      const took: Record<'call' | 'key' | 'wallet' | 'page', number[]> = { call: [], key: [], wallet: [], page: [] };
      const measure = async (what: keyof typeof took, work: () => Promise<unknown>): Promise<void> => {
        took[what].push(await timed(work));
      };
      const several = (what: keyof typeof took, work: () => Promise<unknown>, count = CALLERS): Promise<unknown>[] =>
        Array.from({ length: count }, () => measure(what, work));
      const known = async (): Promise<void> => expect((await callOnce()).status).toBe(200);
      // A slow Postgres answers those who find a connection open in time; making one takes it several trips.
      const asked = async (answer: Promise<RawResponse>): Promise<void> => {
        const response = await answer;
        if (response.status !== 200 || isSlow !== true) expectUnavailable(response);
      };
      let cpu: number;
      try {
        await begin();
        await measure('call', known);
        await Promise.all([
          ...several('call', known),
          ...several('wallet', async () => expectUnavailable(await callOnce(unloaded))),
          ...several('key', () => asked(callOnce(unknown))),
          ...several('page', () => asked(pageOf('/api/v1/usage/me', scene.buyer))),
        ]);
        cpu = await idleCpu();
      } finally {
        await end();
      }
      const recovery = await timed(async () => {
        await until(async () => (await callOnce(unloaded)).status === 200);
        await until(async () => (await callOnce(another)).status === 200);
        await until(async () => (await market.request('/api/v1/usage/me', { key: scene.buyer })).status === 200);
        await market.settled();
      });
      expectWithin(ANSWER_MS, took.call);
      expectWithin(LOAD_TIMEOUT_MS + ANSWER_MS, took.wallet);
      expectWithin(LOAD_TIMEOUT_MS + ANSWER_MS, took.key);
      expectWithin(PAGE_TIMEOUT_MS + ANSWER_MS, took.page);
      expect(recovery).toBeLessThanOrEqual(RECOVERY_MS);
      expect(cpu).toBeLessThan(IDLE_CPU);
      // All calls of that account, by whichever of its keys, and the one of the other.
      expect((await market.records(scene.buyer)).length - made).toBe(CALLERS + 1);
      expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
      const lines = market.log.lines.slice(linesBefore);
      expect(lines.length, lines.join('\n')).toBeLessThanOrEqual(MAX_LINES);
    },
  );
});
