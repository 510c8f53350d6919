import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LiveStreams } from '../../src/traffic/live-streams.ts';
import { Looks } from '../../src/traffic/looks.ts';
import { nameOf } from '../../src/traffic/name.ts';
import { REPORTING_KEY, Reporter } from '../../src/traffic/reporter.ts';
import {
  authorization,
  echo,
  type Key,
  Marketplace,
  startService,
  type TestService,
} from '../integration/marketplace.ts';
import { oneRedis } from '../support/redis-kind.ts';
import { until } from '../support/wait.ts';

type Traffic = {
  totals: { workers: number; open: number; calls_per_second: number; p99_ms: number | null };
  workers: { instance: string; calls: { completed: number; refused: Record<string, number> } }[];
};
type Instances = {
  instances: { instance: string; role: string; pid: number; version: string; shards: number | null }[];
  silent: { instance: string; lease_age_seconds: number }[];
  shards: number;
};

let market: Marketplace;
let other: { readonly baseUrl: string; stop(): Promise<unknown> };
let service: TestService;
/** Tests ask until something is so: more often than one key may. */
let admins: Key[];
let turn = 0;
const anAdmin = (): Key => admins[turn++ % admins.length] as Key;

beforeAll(async () => {
  market = await Marketplace.start({ DRAIN_SECONDS: '20' });
  const body = { owner_id: 'operator', role: 'admin' };
  admins = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const key = await market.json<Key>('/api/v1/keys', { key: market.admin, method: 'POST', body });
      const change = { key: market.admin, method: 'PATCH', body: { rate_limit: 300 } };
      await market.json(`/api/v1/keys/${key.key_id}`, change);
      return key;
    }),
  );
  other = await market.anotherGateway();
  service = await startService(echo);
});
afterAll(async () => {
  await other.stop();
  await market.stop();
  await service.close();
});

const look = (): Promise<Traffic> => market.json('/api/v1/admin/traffic', { key: anAdmin() });
const instances = (): Promise<Instances> => market.json('/api/v1/admin/instances', { key: anAdmin() });
const reportsInRedis = async (): Promise<number> =>
  ((await market.stores.redis.command('keys', [`${REPORTING_KEY}*`])) as string[]).length;

/** A stream's events as they come. */
async function* events(baseUrl: string, signal?: AbortSignal): AsyncGenerator<{ event: string; data: Traffic }> {
  const headers = { Authorization: authorization(market.admin), Accept: 'text/event-stream' };
  const response = await fetch(`${baseUrl}/api/v1/admin/traffic`, { headers, signal: signal ?? null });
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  let text = '';
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString();
    const parts = text.split('\n\n');
    text = parts.pop() ?? '';
    for (const part of parts) {
      const [, event = '', data = ''] = /^event: (\w+)\ndata: (.*)$/.exec(part) ?? [];
      yield { event, data: JSON.parse(data) as Traffic };
    }
  }
}

describe('the live traffic', () => {
  it('causes no work while nobody looks: no process writes to Redis', async () => {
    const key = await market.buyer(1);
    await market.request(await market.service({ endpoint: service.url }), { key });
    expect(await reportsInRedis()).toBe(0);
    expect((await look()).totals.workers).toBe(2);
    expect(await reportsInRedis()).toBeGreaterThan(2);
    // Ten seconds after the last look all are silent, and what they wrote expires.
    await until(async () => (await reportsInRedis()) === 0);
  });

  it('contains the calls of both gateways, by outcome, with rate and p99', async () => {
    const path = await market.service({ endpoint: service.url, price: 0.001 });
    const key = await market.buyer(1);
    await until(async () => (await fetch(`${other.baseUrl}${path.replace('proxy', 'services')}`)).ok);
    await look();
    const headers = { Authorization: authorization(key) };
    for (const at of [market.baseUrl, other.baseUrl, other.baseUrl]) {
      expect((await fetch(at + path, { headers })).status).toBe(200);
      expect((await fetch(at + path)).status).toBe(401);
    }
    const seen = await until(async () => {
      const now = await look();
      const isComplete = now.workers.every(
        ({ calls: { completed, refused } }) => completed > 0 && refused.unauthorized,
      );
      return now.totals.p99_ms !== null && isComplete && now;
    });
    expect(seen.workers).toHaveLength(2);
    expect(new Set(seen.workers.map(({ instance }) => instance)).size).toBe(2);
    expect(seen.totals.calls_per_second).toBeGreaterThan(0);
  });

  it('is sent as one event a second, for one token of the rate limit', async () => {
    const remaining = async (): Promise<number> =>
      Number((await market.request('/api/v1/keys/me', { key: market.admin })).headers.get('x-ratelimit-remaining'));
    const before = await remaining();
    const leaving = new AbortController();
    const seen: Traffic[] = [];
    const began = performance.now();
    for await (const { event, data } of events(market.baseUrl, leaving.signal)) {
      expect(event).toBe('traffic');
      if (seen.push(data) === 4) break;
    }
    leaving.abort();
    expect(performance.now() - began).toBeGreaterThan(2_500);
    expect(seen.at(-1)?.totals.workers).toBe(2);
    // The stream and the look at what remains; the bucket refills meanwhile.
    expect(before - (await remaining())).toBeLessThanOrEqual(2);
  });

  it.skipIf(oneRedis('stops it and starts it again'))(
    'says that Redis is away, and continues when Redis is back',
    async () => {
      const leaving = new AbortController();
      const stream = events(market.baseUrl, leaving.signal);
      expect((await stream.next()).value).toMatchObject({ event: 'traffic' });
      await market.redis.stop();
      await until(async () => (await stream.next()).value?.event === 'unavailable');
      await market.redis.restart();
      await until(async () => (await stream.next()).value?.event === 'traffic');
      leaving.abort();
    },
    40_000,
  );

  it('is available to admins only', async () => {
    const key = await market.buyer(0);
    expect((await market.request('/api/v1/admin/traffic', { key })).status).toBe(403);
    expect((await market.request('/api/v1/admin/instances', { key })).status).toBe(403);
  });
});

describe('the instances', () => {
  it('are the gateways and the writer, with version and shards', async () => {
    // Each says every few seconds that it is there.
    const roles = async () => (await instances()).instances.map(({ role }) => role);
    await until(async () => isDeepStrictEqual(await roles(), ['gateway', 'gateway', 'writer']));
    const { instances: found, shards } = await instances();
    expect(found.every(({ pid, version }) => pid === process.pid && /^\d/.test(version))).toBe(true);
    expect(found.find(({ role }) => role === 'writer')?.shards).toBe(shards);
  });

  it('are not reported as absent when Redis has lost their data, and they have not written it again', async () => {
    const redis = {
      answers: [[], ['a'], [null]] as unknown[],
      command: async () => redis.answers.shift(),
    };
    const reporter = { looked() {}, since: performance.now() };
    await new Looks({ sql: market.stores.sql, redis, reporter }).read();
    expect(redis.answers).toEqual([]);
  });

  it('show a killed process for a few seconds at most, and its lease as silent', async () => {
    let isKilled = false;
    const { redis, keys } = market.stores;
    const dying = new Reporter({
      redis: { command: async (name, args) => (isKilled ? null : redis.command(name, args)) },
      name: nameOf('gateway', 'a-killed-one', 7),
    });
    await redis.command('hset', [keys.lease[0] as string, 'a-killed-one.2', String(Date.now() - 5_000)]);
    dying.looked();
    const isThere = async (): Promise<boolean> =>
      (await instances()).instances.some(({ instance }) => instance === 'a-killed-one');
    await until(isThere);
    isKilled = true;
    await until(async () => !(await isThere()), 8_000);
    const { silent } = await instances();
    expect(silent.find(({ instance }) => instance === 'a-killed-one')?.lease_age_seconds).toBeGreaterThan(4);
    await dying.stop();
  });

  it('no longer include a gateway that drains, whose streams end well before the drain deadline', async () => {
    const third = await market.anotherGateway();
    await until(async () => (await instances()).instances.length === 4);
    const stream = events(third.baseUrl);
    await stream.next();
    const began = performance.now();
    const [stopped] = await Promise.all([
      third.stop(),
      (async () => {
        for await (const _ of stream);
      })(),
    ]);
    expect(stopped).toMatchObject({ callsCut: 0 });
    expect(performance.now() - began).toBeLessThan(5_000);
    await until(async () => (await instances()).instances.length === 3, 3_000);
  });
});

describe('a stream of events', () => {
  it('ends after its maximum time, and the number of open streams is bounded', async () => {
    const streams = new LiveStreams({ maxStreams: 1, maxMs: 1_500 });
    const first = streams.pieces(async () => 'x');
    expect(streams.isFull).toBe(false);
    await first.next();
    expect(streams.isFull).toBe(true);
    expect((await first.next()).done).toBe(false);
    expect((await first.next()).done).toBe(true);
    expect(streams.isFull).toBe(false);
    streams.end();
    expect(streams.isFull).toBe(true);
  });
});
